package analysis_test

import (
	"math"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/analysis"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest/space"
)

// analysesOf returns the analyses of the studies of a service, and their fronts.
func analysesOf(s *enginetest.Service) (*analysis.Analyses, *front.Fronts) {
	fronts := front.New(front.Options{Studies: s.Studies, Histories: s.Histories, Engine: s.Engine, Background: s.Background, Pool: s.Pool})
	return analysis.New(analysis.Options{Fronts: fronts, Engine: s.Engine, Pool: s.Pool}), fronts
}

// errorOf is the error of a run after some epochs.
func errorOf(x, epochs float64) float64 {
	return 0.1 + 0.6/(1+3*x*math.Sqrt(epochs)) + 0.002*math.Sin(40*x)
}

// trained creates studies/runs with n runs, which report some steps, the last of which is the result.
func trained(t *testing.T, n int, change func(*dparetov1.StudySpec)) *enginetest.Service {
	t.Helper()
	s := enginetest.New(t, enginetest.Options{})
	s.Runs(t, func(asked *dparetov1.StudySpec) {
		enginetest.Checkpoints(asked)
		if change != nil {
			change(asked)
		}
	})
	require.NoError(t, s.Change(t.Context(), "runs", new(study.Request), func(c *study.Change) error {
		for i := range n {
			x := (float64(i) + 0.5) / float64(n)
			var measurements []*dparetov1.Measurement
			for _, step := range []int64{1, 8, 64} {
				measurements = append(measurements, enginetest.ErrorAt(step, errorOf(x, float64(step))))
			}
			if err := enginetest.Insert(c, space.Point{x, 64}, measurements...); err != nil {
				return err
			}
		}
		return nil
	}))
	return s
}

func wantCode(t *testing.T, err error, code codes.Code) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("error %v, want %v", err, code)
	}
}

// warnings returns the codes of warnings.
func warnings(all []*dparetov1.Warning) (list []string) {
	for _, w := range all {
		list = append(list, w.GetCode())
	}
	return list
}

func TestCrossValidate(t *testing.T) {
	s := trained(t, 12, nil)
	a, _ := analysesOf(s)
	resp, err := a.CrossValidate(t.Context(), &dparetov1.CrossValidateRequest{Name: "studies/runs"})
	require.NoError(t, err)
	if len(resp.GetObjectives()) != 1 || len(resp.GetWarnings()) != 0 || resp.GetRevision() == 0 {
		t.Fatalf("%v", resp)
	}
	v := resp.GetObjectives()[0]
	if v.GetMetric() != "error" || len(v.GetPoints()) != 36 || v.GetCoverage() < 0.8 || v.GetRSquared() < 0.9 {
		t.Errorf("%s: %d points, coverage %v, R² %v", v.GetMetric(), len(v.GetPoints()), v.GetCoverage(), v.GetRSquared())
	}
	for i, p := range v.GetPoints() {
		trial, err := s.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: p.GetTrial()})
		require.NoError(t, err)
		x := trial.GetTrial().GetParameters()["x"].GetDoubleValue()
		if want := []int64{1, 8, 64}[i%3]; p.GetStep() != want {
			t.Errorf("point %d is at step %d, want %d", i, p.GetStep(), want)
		}
		if want := errorOf(x, float64(p.GetStep())); p.GetObserved() != want {
			t.Errorf("point %d: observed %v, want %v", i, p.GetObserved(), want)
		}
		if q := p.GetPredicted(); !(q.GetLower() < q.GetMedian() && q.GetMedian() < q.GetUpper()) {
			t.Errorf("point %d: predicted %v", i, q)
		}
	}
}

// A model of very many runs says that it is not made of all.
func TestCrossValidateThinned(t *testing.T) {
	s := trained(t, 180, nil)
	a, _ := analysesOf(s)
	resp, err := a.CrossValidate(t.Context(), &dparetov1.CrossValidateRequest{Name: "studies/runs"})
	require.NoError(t, err)
	if got := warnings(resp.GetWarnings()); len(got) != 1 || got[0] != "MODEL_THINNED" || len(resp.GetObjectives()[0].GetPoints()) != 512 {
		t.Errorf("%d points, warnings %v", len(resp.GetObjectives()[0].GetPoints()), resp.GetWarnings())
	}
}

func TestCrossValidateWithoutModel(t *testing.T) {
	a, _ := analysesOf(trained(t, 0, nil))
	resp, err := a.CrossValidate(t.Context(), &dparetov1.CrossValidateRequest{Name: "studies/runs"})
	if err != nil || len(resp.GetObjectives()) != 0 || len(resp.GetWarnings()) != 1 || resp.GetWarnings()[0].GetCode() != "NO_MODEL" {
		t.Errorf("%v, %v", resp, err)
	}
	_, err = a.CrossValidate(t.Context(), &dparetov1.CrossValidateRequest{Name: "studies/other"})
	wantCode(t, err, codes.NotFound)
	_, err = a.CrossValidate(t.Context(), &dparetov1.CrossValidateRequest{Name: "runs"})
	wantCode(t, err, codes.InvalidArgument)
}
