package engine_test

import (
	"fmt"
	"slices"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/suggest"
)

// historyOf reads the history of studies/runs.
func historyOf(t testing.TB, s *enginetest.Service, study *dparetov1.Study) *suggest.History {
	t.Helper()
	h, err := s.Engine.History(t.Context(), "runs", study.GetUid())
	require.NoError(t, err)
	return h
}

// The history is in the order of completion. Every measurement of a run is an evaluation,
// the last at its end, for designers that learn from enginetest.Checkpoints, else complete runs are.
func TestHistory(t *testing.T) {
	for name, tc := range map[string]struct {
		algorithm func(*dparetov1.StudySpec)
		want      []string
	}{
		"checkpoints":   {enginetest.Checkpoints, []string{"3 2 0.3", "1 1 0.5", "1 8 0.4", "1 10 0.2"}},
		"complete runs": {enginetest.ModelBased, []string{"0 2 0.3", "0 10 0.2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := enginetest.With(t, enginetest.Random())
			study := s.Runs(t, func(asked *dparetov1.StudySpec) {
				tc.algorithm(asked)
				asked.Parameters[1].GetIntegerDomain().Min = 63
			})
			first, second, third := s.AskRun(t), s.AskRun(t), s.AskRun(t)
			s.Report(t, first, enginetest.ErrorAt(1, 0.5), enginetest.ErrorAt(8, 0.4))
			s.Report(t, third, enginetest.ErrorAt(2, 0.3))
			s.Complete(t, third, nil)
			s.Complete(t, first, enginetest.ErrorAt(0, 0.2))
			h := historyOf(t, s, study)
			var got []string
			for _, e := range h.Evaluations {
				got = append(got, fmt.Sprint(e.Run, min(e.Point[1], 10), e.Values[1]))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("evaluations %q, want %q", got, tc.want)
			}
			if len(h.Pending) != 1 || h.Pending[0][0] != second.GetParameters()["x"].GetDoubleValue() {
				t.Errorf("pending %v", h.Pending)
			}
		})
	}
}

// A final measurement may be of an earlier step than the last: the evaluations of a run
// are in the order of its steps.
func TestFinalMeasurementOnTheWay(t *testing.T) {
	s := enginetest.With(t, enginetest.At(0.25, 64))
	study := s.Runs(t, enginetest.Checkpoints)
	for _, step := range []int64{10, 1} {
		trial := s.AskRun(t)
		s.Report(t, trial, enginetest.ErrorAt(1, 0.5), enginetest.ErrorAt(60, 0.3))
		s.Complete(t, trial, enginetest.ErrorAt(step, 0.1))
	}
	var got []string
	for _, e := range historyOf(t, s, study).Evaluations {
		got = append(got, fmt.Sprint(e.Run, e.Point[1], e.Values[1]))
	}
	if want := []string{"1 1 0.5", "1 10 0.1", "1 60 0.3", "2 1 0.1", "2 60 0.3"}; !slices.Equal(got, want) {
		t.Errorf("evaluations %q, want %q", got, want)
	}
}
