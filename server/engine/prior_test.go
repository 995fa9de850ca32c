package engine_test

import (
	"math"
	"slices"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/suggest"
)

// The trials of a prior study are read by the ids of parameters and metrics, while they
// come, and no more once the study is deleted.
func TestPriorStudies(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, func(asked *dparetov1.StudySpec) { slices.Reverse(asked.GetParameters()) })
	asked := enginetest.RunSpec()
	enginetest.Checkpoints(asked)
	asked.PriorStudies = []string{"studies/runs"}
	resp, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "next", Study: &dparetov1.Study{Spec: asked}})
	require.NoError(t, err)
	prior := func() []suggest.Evaluation {
		h, err := s.Engine.History(t.Context(), "next", resp.GetStudy().GetUid())
		require.NoError(t, err)
		if len(h.Evaluations) > 0 {
			t.Errorf("evaluations %v", h.Evaluations)
		}
		return h.Prior
	}
	if got := prior(); len(got) != 0 {
		t.Errorf("prior %v", got)
	}
	trial := s.AskRun(t)
	s.Report(t, trial, enginetest.ErrorAt(1, 0.5))
	s.Complete(t, trial, enginetest.ErrorAt(0, 0.25))
	x, epochs := trial.GetParameters()["x"].GetDoubleValue(), float64(trial.GetParameters()["epochs"].GetIntValue())
	got := prior()
	if len(got) != 2 || !slices.Equal(got[0].Point, []float64{x, 1}) || !slices.Equal(got[1].Point, []float64{x, epochs}) ||
		!slices.Equal(got[0].Values, []float64{x, 0.5}) || math.Abs(got[1].Values[0]-x*epochs) > 1e-12 || got[0].Run <= 1 || got[1].Run != got[0].Run {
		t.Errorf("prior %v of %v", got, trial.GetParameters())
	}
	// Another trial is added to what is there already.
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.5))
	if more := prior(); len(more) != 3 || &more[0].Point[0] != &got[0].Point[0] || more[2].Run <= 1 || more[2].Run == more[0].Run {
		t.Errorf("prior %v after %v", more, got)
	}
	require.NoError(t, require.ErrOf(s.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: "studies/runs"})))
	if got := prior(); len(got) != 0 {
		t.Errorf("prior %v of a deleted study", got)
	}
}

// Runs of prior studies have positive numbers, which no two have in common, and no run
// of the study itself.
func TestPriorRuns(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	create := func(id string, priors ...string) *dparetov1.Study {
		asked := enginetest.RunSpec()
		enginetest.Checkpoints(asked)
		asked.PriorStudies = priors
		resp, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: asked}})
		require.NoError(t, err)
		for range 2 {
			_, err := s.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: resp.GetStudy().GetName(), Trial: &dparetov1.Trial{
				Parameters: map[string]*dparetov1.Value{
					"x":      {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0.25}},
					"epochs": {Kind: &dparetov1.Value_IntValue{IntValue: 64}},
				},
				FinalMeasurement: enginetest.ErrorAt(0, 0.5),
			}})
			require.NoError(t, err)
		}
		return resp.GetStudy()
	}
	create("first")
	create("second")
	study := create("third", "studies/first", "studies/second")
	h, err := s.Engine.History(t.Context(), "third", study.GetUid())
	require.NoError(t, err)
	seen := make(map[int64]bool)
	for _, e := range slices.Concat(h.Evaluations, h.Prior) {
		if e.Run <= 0 || seen[e.Run] {
			t.Errorf("run %d", e.Run)
		}
		seen[e.Run] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d runs", len(seen))
	}
}

// A study may bound a metric that its prior did not have: what the prior measured then
// says nothing of it, also to the default designer.
func TestPriorWithoutConstraint(t *testing.T) {
	s := enginetest.New(t, enginetest.Options{})
	s.Runs(t, nil)
	for range 4 {
		s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.25))
	}
	asked := enginetest.RunSpec()
	most := 10.0
	asked.Metrics = append(asked.GetMetrics(), &dparetov1.MetricSpec{
		Id: "seconds", Role: dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT, Transform: dparetov1.Transform_TRANSFORM_IDENTITY,
		Bounds: &dparetov1.MetricBounds{Max: &most},
		Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
	})
	asked.PriorStudies = []string{"studies/runs"}
	asked.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_DEFAULT
	created, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "next", Study: &dparetov1.Study{Spec: asked}})
	require.NoError(t, err)
	h, err := s.Engine.History(t.Context(), "next", created.GetStudy().GetUid())
	require.NoError(t, err)
	for _, e := range h.Prior {
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
		m, seconds := enginetest.ErrorAt(0, 0.25), 5.0
		m.Metrics["seconds"] = &dparetov1.MetricValue{Value: &seconds}
		s.Complete(t, resp.GetTrials()[0], m)
	}
}

// Trials of a prior study that lacks parameters count as ones with the values that the study gives
// for them, where these parameters exist.
func TestPriorValues(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, nil)
	for range 8 {
		s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.5))
	}
	whole := func(n int64) *dparetov1.Value { return &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: n}} }
	integer := func(id string, least, most int64) *dparetov1.ParameterSpec {
		return &dparetov1.ParameterSpec{
			Id: id, Scale: dparetov1.Scale_SCALE_LINEAR,
			Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: least, Max: most}},
		}
	}
	asked := enginetest.RunSpec()
	below, above := integer("below", 0, 9), integer("above", 0, 9)
	below.Condition = &dparetov1.Condition{Parent: "clip", Values: []*dparetov1.Value{whole(3)}}
	above.Condition = &dparetov1.Condition{Parent: "clip", Values: []*dparetov1.Value{whole(5)}}
	asked.Parameters = append([]*dparetov1.ParameterSpec{below, above, integer("clip", 1, 5)}, asked.GetParameters()...)
	asked.PriorStudies = []string{"studies/runs"}
	asked.PriorValues = map[string]*dparetov1.Value{"clip": whole(3), "below": whole(7), "above": whole(8)}
	created, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "next", Study: &dparetov1.Study{Spec: asked}})
	require.NoError(t, err)
	h, err := s.Engine.History(t.Context(), "next", created.GetStudy().GetUid())
	require.NoError(t, err)
	if n := len(h.Prior); n != 8 {
		t.Fatalf("%d evaluations, want 8", n)
	}
	for _, e := range h.Prior {
		if e.Point[0] != 7 || e.Point[1] == 8 || e.Point[2] != 3 || e.Values[1] != 0.5 {
			t.Errorf("prior %v", e)
		}
	}
}
