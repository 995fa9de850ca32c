package study_test

import (
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/enginetest"
)

// The study ends when its hypervolume has not grown by a thousandth for two trials, and
// goes on when a trial that was still open makes it grow.
func TestStagnation(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, func(asked *dparetov1.StudySpec) {
		asked.CheckpointParameter = ""
		asked.Metrics = asked.GetMetrics()[1:] // the hypervolume is 1 − the least error
		asked.Budget = &dparetov1.Budget{MaxStagnantTrials: 2}
	})
	refused := func() *dparetov1.SuggestTrialsResponse {
		no := false
		resp, err := s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/runs", WorkerId: "w", Resume: &no})
		if err != nil || len(resp.GetTrials()) > 0 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_STAGNANT {
			t.Fatalf("%v, %v", resp, err)
		}
		return resp
	}
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 1.5)) // outside of the box: 1
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.5)) // grows: 0
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.4999))
	last, open := s.AskRun(t), s.AskRun(t)
	failed, err := s.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: s.AskRun(t).GetName(), Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "r"}},
	})
	if err == nil {
		t.Fatalf("without a token: %v", failed)
	}
	infeasible := &dparetov1.CompleteTrialRequest{
		Name: last.GetName(), LeaseToken: last.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "r"}},
	}
	require.NoError(t, require.ErrOf(s.CompleteTrial(t.Context(), infeasible)))
	if resp := refused(); resp.GetStudyState() != dparetov1.StudyState_STUDY_STATE_ACTIVE || resp.GetRetryAfter() == nil {
		t.Errorf("while trials are open: %v", resp)
	}
	s.Complete(t, open, enginetest.ErrorAt(0, 0.4998)) // together with 0.4999 still too little: 3
	refused()
	resumed, err := s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/runs", WorkerId: "w"})
	if err != nil || len(resumed.GetTrials()) != 1 {
		t.Fatalf("%v, %v", resumed, err)
	}
	s.Complete(t, resumed.GetTrials()[0], enginetest.ErrorAt(0, 0.4))
	s.AskRun(t)
}

// Results that a constant point beats are no growth, not even the first.
func TestStagnationBesideConstantPoint(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, func(asked *dparetov1.StudySpec) {
		asked.CheckpointParameter = ""
		asked.Metrics = asked.GetMetrics()[1:] // the hypervolume is 1 − the least error
		asked.Budget = &dparetov1.Budget{MaxStagnantTrials: 2}
		asked.ConstantPoints = []*dparetov1.ConstantPoint{{Id: "none", Values: map[string]float64{asked.GetMetrics()[0].GetId(): 0.5}}}
	})
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.6)) // 1
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.5)) // 2
	no := false
	resp, err := s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/runs", WorkerId: "w", Resume: &no})
	if err != nil || len(resp.GetTrials()) > 0 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_STAGNANT {
		t.Fatalf("%v, %v", resp, err)
	}
}

// Without a reference value the hypervolume is measured within the one that follows from the results,
// before and after a trial. The first objective computes x, which is random.
func TestStagnationWithoutReference(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, func(asked *dparetov1.StudySpec) {
		asked.CheckpointParameter = ""
		asked.Metrics = asked.GetMetrics()[1:]
		asked.Metrics[0].ReferenceValue = nil
		asked.Budget = &dparetov1.Budget{MaxStagnantTrials: 3}
	})
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.5))     // grows: 0
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.6))     // 1
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.7))     // 2
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.4))     // grows: 0
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.39999)) // by less than a thousandth of a tenth: 1
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.39998)) // 2
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.5))     // 3
	resp, err := s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/runs", WorkerId: "w", Resume: new(false)})
	if err != nil || len(resp.GetTrials()) > 0 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_STAGNANT {
		t.Errorf("%v, %v", resp, err)
	}
}

// Measurements out of bounds are on no front and make no hypervolume grow.
func TestStagnationUnderConstraints(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	most := 10.0
	s.Runs(t, func(asked *dparetov1.StudySpec) {
		asked.CheckpointParameter = ""
		asked.Metrics = []*dparetov1.MetricSpec{asked.GetMetrics()[1], {
			Id: "seconds", Role: dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT, Transform: dparetov1.Transform_TRANSFORM_IDENTITY,
			Bounds: &dparetov1.MetricBounds{Max: &most},
			Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
		}}
		asked.Budget = &dparetov1.Budget{MaxStagnantTrials: 2}
	})
	complete := func(value, seconds float64) {
		m := enginetest.ErrorAt(0, value)
		m.Metrics["seconds"] = &dparetov1.MetricValue{Value: &seconds}
		s.Complete(t, s.AskRun(t), m)
	}
	complete(0.9, 5)
	complete(0.1, 20)
	complete(0.8, 10) // grows, where 0.1 would have left no room
	complete(0.5, 11)
	complete(0.4, 12)
	no := false
	resp, err := s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/runs", WorkerId: "w", Resume: &no})
	if err != nil || len(resp.GetTrials()) > 0 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_STAGNANT {
		t.Errorf("%v, %v", resp, err)
	}
}

// Replicates do not spend the limit, but reset it where they make the front grow.
func TestReplicatesAreNotStagnant(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, func(asked *dparetov1.StudySpec) {
		asked.CheckpointParameter = ""
		asked.Metrics = asked.GetMetrics()[1:]
		asked.Budget = &dparetov1.Budget{MaxStagnantTrials: 2}
	})
	first := s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.5))
	replicate := func(value float64) {
		_, err := s.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: "studies/runs", Trial: &dparetov1.Trial{ReplicateOf: first.GetName()}})
		require.NoError(t, err)
		s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, value))
	}
	for range 3 {
		replicate(0.5)
	}
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.6)) // stagnant: 1
	replicate(0.4)                                         // grows: 0
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.6))
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.6))
	no := false
	resp, err := s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/runs", WorkerId: "w", Resume: &no})
	if err != nil || len(resp.GetTrials()) > 0 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_STAGNANT {
		t.Errorf("%v, %v", resp, err)
	}
}
