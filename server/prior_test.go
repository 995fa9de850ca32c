package server

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest"
)

// violation returns the first field that an error names, and what it says of it.
func violation(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok && len(bad.GetFieldViolations()) > 0 {
			v := bad.GetFieldViolations()[0]
			return v.GetField() + ": " + v.GetDescription()
		}
	}
	return fmt.Sprint(err)
}

// A prior study must exist and mean the same.
func TestPriorStudiesAreChecked(t *testing.T) {
	s := serviceWith(t, fakeDesigner{suggest: suggest.NewRandom().Suggest})
	runs(t, s, nil)
	for name, tc := range map[string]struct {
		change func(*dparetov1.StudySpec)
		want   string
	}{
		"missing":   {func(a *dparetov1.StudySpec) { a.PriorStudies = []string{"studies/none"} }, "prior_studies[0]: studies/none does not exist"},
		"malformed": {func(a *dparetov1.StudySpec) { a.PriorStudies = []string{"none"} }, "prior_studies[0]: "},
		"twice":     {func(a *dparetov1.StudySpec) { a.PriorStudies = []string{"studies/runs", "studies/runs"} }, "prior_studies[1]: studies/runs occurs twice"},
		"domain":    {func(a *dparetov1.StudySpec) { a.Parameters[0].GetDoubleDomain().Max = 0.5 }, "parameter x is"},
		"extra parameter": {func(a *dparetov1.StudySpec) {
			a.Parameters = append(a.Parameters, &dparetov1.ParameterSpec{Id: "a", Scale: dparetov1.Scale_SCALE_LINEAR, Domain: a.GetParameters()[0].GetDomain()})
		}, "parameter a is not one of its"},
		"fewer objectives": {func(a *dparetov1.StudySpec) { a.Metrics = a.GetMetrics()[:1] }, "objective error of it is missing here"},
		"transform":        {func(a *dparetov1.StudySpec) { a.Metrics[1].Transform = dparetov1.Transform_TRANSFORM_LOGIT }, "objective error is"},
	} {
		for _, validateOnly := range []bool{false, true} {
			asked := runSpec()
			asked.PriorStudies = []string{"studies/runs"}
			tc.change(asked)
			_, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "next", Study: &dparetov1.Study{Spec: asked}, ValidateOnly: validateOnly})
			if got := violation(err); !strings.Contains(got, tc.want) || !strings.HasPrefix(got, "study.spec.prior_studies[") {
				t.Errorf("%s: %s, want %s", name, got, tc.want)
			}
		}
	}
}

// The trials of a prior study are read by the ids of parameters and metrics, while they
// come, and no more once the study is deleted.
func TestPriorStudies(t *testing.T) {
	s := serviceWith(t, fakeDesigner{suggest: suggest.NewRandom().Suggest})
	runs(t, s, func(asked *dparetov1.StudySpec) { slices.Reverse(asked.GetParameters()) })
	asked := runSpec()
	checkpoints(asked)
	asked.PriorStudies = []string{"studies/runs"}
	resp, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "next", Study: &dparetov1.Study{Spec: asked}})
	if err != nil {
		t.Fatal(err)
	}
	prior := func() []suggest.Evaluation {
		snapshot, err := s.snapshot(t.Context(), "next", resp.GetStudy().GetUid())
		if err != nil {
			t.Fatal(err)
		}
		if len(snapshot.history.Evaluations) > 0 {
			t.Errorf("evaluations %v", snapshot.history.Evaluations)
		}
		return snapshot.history.Prior
	}
	if got := prior(); len(got) != 0 {
		t.Errorf("prior %v", got)
	}
	trial := askRun(t, s)
	report(t, s, trial, errorAt(1, 0.5))
	completeRun(t, s, trial, errorAt(0, 0.25))
	x, epochs := trial.GetParameters()["x"].GetDoubleValue(), float64(trial.GetParameters()["epochs"].GetIntValue())
	got := prior()
	if len(got) != 2 || !slices.Equal(got[0].Point, []float64{x, 1}) || !slices.Equal(got[1].Point, []float64{x, epochs}) ||
		!slices.Equal(got[0].Values, []float64{x, 0.5}) || math.Abs(got[1].Values[0]-x*epochs) > 1e-12 || got[0].Run <= 1 || got[1].Run != got[0].Run {
		t.Errorf("prior %v of %v", got, trial.GetParameters())
	}
	// Another trial is added to what is there already.
	completeRun(t, s, askRun(t, s), errorAt(0, 0.5))
	if more := prior(); len(more) != 3 || &more[0].Point[0] != &got[0].Point[0] || more[2].Run <= 1 || more[2].Run == more[0].Run {
		t.Errorf("prior %v after %v", more, got)
	}
	if _, err := s.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: "studies/runs"}); err != nil {
		t.Fatal(err)
	}
	if got := prior(); len(got) != 0 {
		t.Errorf("prior %v of a deleted study", got)
	}
}

// Runs of prior studies have positive numbers, which no two have in common, and no run
// of the study itself.
func TestPriorRuns(t *testing.T) {
	s := serviceWith(t, fakeDesigner{suggest: suggest.NewRandom().Suggest})
	create := func(id string, priors ...string) *dparetov1.Study {
		asked := runSpec()
		checkpoints(asked)
		asked.PriorStudies = priors
		resp, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: asked}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := s.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: resp.GetStudy().GetName(), Trial: &dparetov1.Trial{
				Parameters: map[string]*dparetov1.Value{
					"x":      {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0.25}},
					"epochs": {Kind: &dparetov1.Value_IntValue{IntValue: 64}},
				},
				FinalMeasurement: errorAt(0, 0.5),
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		return resp.GetStudy()
	}
	create("first")
	create("second")
	study := create("third", "studies/first", "studies/second")
	snapshot, err := s.snapshot(t.Context(), "third", study.GetUid())
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int64]bool)
	for _, e := range slices.Concat(snapshot.history.Evaluations, snapshot.history.Prior) {
		if e.Run <= 0 || seen[e.Run] {
			t.Errorf("run %d", e.Run)
		}
		seen[e.Run] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d runs", len(seen))
	}
}

// Thinning keeps the ends of runs.
func TestThin(t *testing.T) {
	var all []suggest.Evaluation
	for run := range int64(50) {
		for i := range 64 {
			all = append(all, suggest.Evaluation{Run: run + 1, Cost: float64(i + 1)})
		}
	}
	if got := thin(all, len(all), len(all)); len(got) != len(all) {
		t.Errorf("%d of %d", len(got), len(all))
	}
	got := thin(all, 350, 350)
	for i, e := range got { // 7 of each
		if want := math.Pow(64, float64(i%7+1)/7); i%7 == 6 && e.Cost != 64 || math.Abs(e.Cost-want) > 0.5 || e.Run != int64(i/7)+1 {
			t.Errorf("evaluation %d: run %d, step %g", i, e.Run, e.Cost)
		}
	}
	got = thin(all, 20, 20)
	for _, e := range got {
		if e.Cost != 64 {
			t.Errorf("step %g", e.Cost)
		}
	}
	if len(got) != 20 || got[19].Run != 50 {
		t.Errorf("%d runs, the last %d", len(got), got[len(got)-1].Run)
	}
}

// A study may bound a metric that its prior did not have: what the prior measured then
// says nothing of it, also to the default designer.
func TestPriorWithoutConstraint(t *testing.T) {
	s := serviceOver(t, hookedKV{}, Options{}, designerOf)
	runs(t, s, nil)
	for range 4 {
		completeRun(t, s, askRun(t, s), errorAt(0, 0.25))
	}
	asked := runSpec()
	most := 10.0
	asked.Metrics = append(asked.GetMetrics(), &dparetov1.MetricSpec{
		Id: "seconds", Role: dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT, Transform: dparetov1.Transform_TRANSFORM_IDENTITY,
		Bounds: &dparetov1.MetricBounds{Max: &most},
		Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
	})
	asked.PriorStudies = []string{"studies/runs"}
	asked.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_DEFAULT
	created, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "next", Study: &dparetov1.Study{Spec: asked}})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := s.snapshot(t.Context(), "next", created.GetStudy().GetUid())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range snapshot.history.Prior {
		if len(e.Values) != 3 || !math.IsNaN(e.Values[2]) || !math.IsNaN(e.StdErrors[2]) || e.Values[1] != 0.25 {
			t.Errorf("prior %+v", e)
		}
	}
	for i := range 3 {
		no := false
		resp, err := s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/next", WorkerId: "w", Resume: &no})
		if err != nil || len(resp.GetTrials()) != 1 {
			t.Fatalf("%v, %v", resp, err)
		}
		// A model needs something of the study itself.
		if reason := resp.GetTrials()[0].GetProvenance().GetFallbackReason(); i > 0 && reason != "" {
			t.Error(reason)
		}
		m, seconds := errorAt(0, 0.25), 5.0
		m.Metrics["seconds"] = &dparetov1.MetricValue{Value: &seconds}
		completeRun(t, s, resp.GetTrials()[0], m)
	}
}
