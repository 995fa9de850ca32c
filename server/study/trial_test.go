package study_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

func TestSuggestAndComplete(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SVTSpec()
	spec.Replicates = 2
	study := f.Create("svt", spec)
	trial := f.One(study, "w")
	if trial.GetNumber() != 1 || trial.GetState() != dparetov1.TrialState_TRIAL_STATE_ACTIVE || trial.GetAttempt() != 1 ||
		trial.GetLease().GetWorkerId() != "w" || trial.GetLease().GetToken() == "" ||
		!trial.GetLease().GetExpireTime().AsTime().Equal(f.Clock.Now().Add(time.Minute)) {
		t.Errorf("trial %v", trial)
	}
	if p := trial.GetProvenance(); p.GetAlgorithm() != "random" || p.GetServerVersion() != "test" || p.GetStudyRevision() != 1 {
		t.Errorf("provenance %v", p)
	}
	// ε = (1+(2C)^(1/3))(1+(2C)^(2/3))/b is known before the run.
	c := math.Cbrt(2 * float64(trial.GetParameters()["cutoff"].GetIntValue()))
	want := (1 + c) * (1 + c*c) / trial.GetParameters()["noise_scale"].GetDoubleValue()
	epsilon := trial.GetComputedMetrics()["epsilon"]
	if math.Abs(epsilon.GetValue()/want-1) > 1e-12 || epsilon.GetPrivacy().GetEpsilon() != epsilon.GetValue() ||
		epsilon.GetPrivacy().GetAdjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE {
		t.Errorf("epsilon %v, want %g", epsilon, want)
	}

	done := f.Tell(trial, 0.5, 0.7)
	value := done.GetFinalMeasurement().GetMetrics()["error"]
	if done.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED || done.GetLease() != nil || done.GetWorkerId() != "w" || done.GetEndTime() == nil ||
		math.Abs(value.GetValue()-0.6) > 1e-15 || math.Abs(value.GetStandardError()-0.1) > 1e-15 ||
		value.GetMin() != 0.5 || value.GetMax() != 0.7 {
		t.Errorf("completed %v", done)
	}
	if got := done.GetFinalMeasurement().GetMetrics()["epsilon"].GetValue(); got != epsilon.GetValue() {
		t.Errorf("epsilon of the measurement %g, want %g", got, epsilon.GetValue())
	}
	if diff := cmp.Diff(done, f.Trial(trial.GetName()), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// The same worker gets its trial back, under a new token that fences the old one off.
func TestWorkerResumes(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	first := f.One(study, "w")
	other := f.One(study, "v")
	again := f.One(study, "w")
	if again.GetName() != first.GetName() || again.GetAttempt() != 2 || again.GetLease().GetToken() == first.GetLease().GetToken() {
		t.Errorf("first %v, again %v", first, again)
	}
	if other.GetName() == first.GetName() {
		t.Error("two workers hold one trial")
	}
	_, err := f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
		Name: first.GetName(), LeaseToken: first.GetLease().GetToken(), Measurement: servertest.Measurement(1, 0.5),
	})
	servertest.WantCode(t, err, codes.FailedPrecondition, "lease")

	no := false
	resp, err := f.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w", Resume: &no})
	require.NoError(t, err)
	if resp.GetTrials()[0].GetName() == first.GetName() {
		t.Error("resume = false gave the held trial back")
	}
}

func TestRestartKeepsEverything(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	active, done := f.One(study, "w"), f.One(study, "v")
	done = f.Tell(done, 0.5)
	f.Restart()
	shown := proto.CloneOf(active)
	shown.Lease.Token = "" // only the worker gets to know it
	for _, want := range []*dparetov1.Trial{shown, done} {
		if diff := cmp.Diff(want, f.Trial(want.GetName()), protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	}
	if got := f.Tell(active, 0.4); got.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
		t.Errorf("state after the restart %s", got.GetState())
	}
}

// The same history gives the same suggestion, before and after a restart.
func TestSuggestionsAreDeterministic(t *testing.T) {
	for _, algorithm := range []dparetov1.Algorithm{
		dparetov1.Algorithm_ALGORITHM_RANDOM, dparetov1.Algorithm_ALGORITHM_GRID,
		dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM, dparetov1.Algorithm_ALGORITHM_DPARETO,
		dparetov1.Algorithm_ALGORITHM_NSGA2,
	} {
		t.Run(algorithm.String(), func(t *testing.T) {
			run := func(restart bool) []map[string]*dparetov1.Value {
				f := servertest.Start(t)
				spec := servertest.SVTSpec()
				spec.Algorithm = &dparetov1.AlgorithmSpec{Name: algorithm, InitialTrials: 4}
				study := f.Create("svt", spec)
				var all []map[string]*dparetov1.Value
				for i := range 7 {
					if restart && i%3 == 2 {
						f.Restart()
					}
					trial := f.One(study, "w")
					all = append(all, trial.GetParameters())
					f.Tell(trial, 0.9-0.8/(1+math.Exp(-math.Log(trial.GetComputedMetrics()["epsilon"].GetValue()))))
				}
				return all
			}
			if diff := cmp.Diff(run(false), run(true), protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCompleteIsIdempotentAndNeverOverwrites(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	trial := f.One(study, "w")
	request := servertest.Completion(trial, 0.5)
	f.Tell(trial, 0.5)
	again, err := f.Studies.CompleteTrial(t.Context(), request)
	require.NoError(t, err)
	if diff := cmp.Diff(f.Trial(trial.GetName()), again.GetTrial(), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	_, err = f.Studies.CompleteTrial(t.Context(), servertest.Completion(trial, 0.1))
	servertest.WantCode(t, err, codes.FailedPrecondition, "never overwritten")
	stranger := proto.CloneOf(request)
	stranger.LeaseToken = "stranger"
	_, err = f.Studies.CompleteTrial(t.Context(), stranger)
	servertest.WantCode(t, err, codes.FailedPrecondition, "SUCCEEDED")
	if got := f.Trial(trial.GetName()).GetFinalMeasurement().GetMetrics()["error"].GetValue(); got != 0.5 {
		t.Errorf("stored error %g, want 0.5", got)
	}
}

func TestLeaseExpiry(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	lost := f.One(study, "w")
	f.Clock.Advance(59 * time.Second)
	if fresh := f.One(study, "v"); fresh.GetName() == lost.GetName() {
		t.Fatal("a live lease was taken")
	}
	f.Clock.Advance(time.Second)
	taken := f.One(study, "u")
	if taken.GetName() != lost.GetName() || taken.GetAttempt() != 2 {
		t.Fatalf("got %s (attempt %d), want the expired %s", taken.GetName(), taken.GetAttempt(), lost.GetName())
	}

	t.Run("late result", func(t *testing.T) {
		if got := f.Tell(lost, 0.3); got.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			t.Errorf("state %s", got.GetState())
		}
		_, err := f.Studies.CompleteTrial(t.Context(), servertest.Completion(taken, 0.4))
		servertest.WantCode(t, err, codes.FailedPrecondition, "already")
	})
}

// Leases and stored answers go by elapsed time, whatever the wall clock says.
func TestLeaseWhenTheClockIsSet(t *testing.T) {
	for _, step := range []time.Duration{-400 * 24 * time.Hour, -2 * time.Hour, -time.Second, time.Second, 3700 * time.Second, 400 * 24 * time.Hour} {
		f := servertest.Start(t)
		study := f.Create("svt", servertest.SVTSpec())
		request := &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w", RequestId: "1"}
		answer, err := f.Studies.SuggestTrials(t.Context(), request)
		require.NoError(t, err)
		held := answer.GetTrials()[0]
		f.Clock.Step(step)
		f.Clock.Advance(59 * time.Second)
		if other := f.One(study, "v"); other.GetName() == held.GetName() {
			t.Errorf("clock set by %v: a live lease was taken", step)
		}
		if again, err := f.Studies.SuggestTrials(t.Context(), request); err != nil || !proto.Equal(again, answer) {
			t.Errorf("clock set by %v: the repeated call got %v, %v", step, again, err)
		}
		f.Clock.Advance(time.Second)
		if taken := f.One(study, "u"); taken.GetName() != held.GetName() {
			t.Errorf("clock set by %v: an expired lease was not taken", step)
		}
	}
}

// A lease that another process granted lasts its own length from the start of this one, however the
// wall clock was set in between.
func TestLeaseAfterRestart(t *testing.T) {
	for _, step := range []time.Duration{-2 * time.Hour, 0, 2 * time.Hour} {
		f := servertest.Start(t)
		study := f.Create("svt", servertest.SVTSpec())
		held := f.One(study, "w")
		f.Clock.Advance(30 * time.Second)
		f.Clock.Step(step)
		f.Restart()
		f.Clock.Advance(59 * time.Second)
		if other := f.One(study, "v"); other.GetName() == held.GetName() {
			t.Errorf("clock set by %v: a lease was taken that may be live", step)
		}
		f.Clock.Advance(time.Second)
		if taken := f.One(study, "u"); taken.GetName() != held.GetName() {
			t.Errorf("clock set by %v: the lease lasts longer than its length", step)
		}
	}
}

// A lease keeps its length after a restart, also if the study has another one since.
func TestLeaseKeepsItsLength(t *testing.T) {
	for _, other := range []time.Duration{10 * time.Second, time.Hour} {
		f := servertest.Start(t)
		study := f.Create("svt", servertest.SVTSpec())
		held := f.One(study, "w")
		changed := f.Study(study)
		changed.Spec.Lease = &dparetov1.LeasePolicy{Duration: durationpb.New(other)}
		require.NoError(t, require.ErrOf(f.Update(changed, "spec.lease")))
		f.Restart()
		f.Clock.Advance(59 * time.Second)
		if next := f.One(study, "v"); next.GetName() == held.GetName() {
			t.Errorf("leases of %v since: a live lease was taken", other)
		}
		f.Clock.Advance(time.Second)
		if taken := f.One(study, "u"); taken.GetName() != held.GetName() {
			t.Errorf("leases of %v since: the lease lasts longer than its length", other)
		}
	}
}

// A lease that ran out, but that nobody else got, can be renewed.
func TestSilentWorkerReturns(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	trial := f.One(study, "w")
	f.Clock.Advance(time.Hour)
	resp, err := f.Studies.RenewLeases(t.Context(), &dparetov1.RenewLeasesRequest{
		Parent: study, LeaseTokens: map[string]string{trial.GetName(): trial.GetLease().GetToken(), study + "/trials/99": "x"},
	})
	require.NoError(t, err)
	if r := resp.GetResults()[trial.GetName()]; !r.GetHeld() || !r.GetExpireTime().AsTime().Equal(f.Clock.Now().Add(time.Minute)) {
		t.Errorf("result %v", r)
	}
	if resp.GetResults()[study+"/trials/99"].GetHeld() {
		t.Error("a trial that does not exist is held")
	}
}

func TestAttemptsRunOut(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SVTSpec()
	spec.Lease = &dparetov1.LeasePolicy{MaxAttempts: 2}
	spec.Budget = &dparetov1.Budget{MaxTrials: 1}
	study := f.Create("svt", spec)
	first := f.One(study, "w")
	f.One(study, "w")
	resp := f.Ask(study, "w", 1)
	if len(resp.GetTrials()) != 0 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_BUDGET_SPENT ||
		resp.GetStudyState() != dparetov1.StudyState_STUDY_STATE_COMPLETED || resp.GetRetryAfter() != nil {
		t.Errorf("response %v", resp)
	}
	if got := f.Trial(first.GetName()); got.GetState() != dparetov1.TrialState_TRIAL_STATE_FAILED || got.GetStateReason() == "" {
		t.Errorf("trial %v", got)
	}
}

// A worker that gives a trial back did not fail at it.
func TestReleasesAreNoAttempts(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SVTSpec()
	spec.Lease = &dparetov1.LeasePolicy{MaxAttempts: 2}
	spec.Budget = &dparetov1.Budget{MaxTrials: 1}
	study := f.Create("svt", spec)
	for range 5 {
		trial := f.One(study, "w")
		require.NoError(t, require.ErrOf(f.Studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
		})))
	}
	f.Restart()
	first := f.One(study, "w")
	f.One(study, "w")
	if resp := f.Ask(study, "w", 1); len(resp.GetTrials()) != 0 {
		t.Errorf("handed out again: %v", resp)
	}
	if got := f.Trial(first.GetName()); got.GetState() != dparetov1.TrialState_TRIAL_STATE_FAILED || got.GetAttempt() != 7 {
		t.Errorf("trial %v", got)
	}
}

func TestBudget(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SVTSpec()
	spec.Budget = &dparetov1.Budget{MaxTrials: 3, MaxParallelTrials: 2}
	study := f.Create("svt", spec)
	resp := f.Ask(study, "w", 5)
	if len(resp.GetTrials()) != 2 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_PARALLELISM || resp.GetRetryAfter() == nil {
		t.Fatalf("%d trials, %s", len(resp.GetTrials()), resp.GetEndReason())
	}
	f.Tell(resp.GetTrials()[0], 0.5)
	last := f.One(study, "v")
	f.Tell(resp.GetTrials()[1], 0.5)
	resp = f.Ask(study, "u", 1)
	if len(resp.GetTrials()) != 0 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_BUDGET_SPENT || resp.GetRetryAfter() == nil {
		t.Errorf("while a trial is running: %v", resp)
	}
	f.Tell(last, 0.5)
	resp = f.Ask(study, "u", 1)
	if resp.GetEndReason() != dparetov1.EndReason_END_REASON_BUDGET_SPENT || resp.GetRetryAfter() != nil ||
		resp.GetStudyState() != dparetov1.StudyState_STUDY_STATE_COMPLETED {
		t.Errorf("at the end: %v", resp)
	}
	_, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{Parameters: last.GetParameters()}})
	servertest.WantCode(t, err, codes.FailedPrecondition, "budget")
}

func TestDurationBudget(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SVTSpec()
	spec.Budget = &dparetov1.Budget{MaxDuration: durationpb.New(time.Hour)}
	study := f.Create("svt", spec)
	f.Tell(f.One(study, "w"), 0.5)
	f.Clock.Advance(time.Hour)
	if resp := f.Ask(study, "w", 1); resp.GetStudyState() != dparetov1.StudyState_STUDY_STATE_COMPLETED {
		t.Errorf("response %v", resp)
	}
}

func TestGridIsExhausted(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SVTSpec()
	spec.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_GRID
	spec.Parameters[0].GridLevels, spec.Parameters[1].GridLevels = 2, 3
	study := f.Create("svt", spec)
	resp := f.Ask(study, "w", 10)
	if len(resp.GetTrials()) != 6 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_SPACE_EXHAUSTED {
		t.Errorf("%d trials, %s", len(resp.GetTrials()), resp.GetEndReason())
	}
}

func TestReleaseAndFailure(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	trial := f.One(study, "w")
	release := &dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Reason: "preempted"}
	for range 2 { // the second call repeats the first
		resp, err := f.Studies.ReleaseTrial(t.Context(), release)
		require.NoError(t, err)
		if got := resp.GetTrial(); got.GetState() != dparetov1.TrialState_TRIAL_STATE_QUEUED || got.GetStateReason() != "preempted" {
			t.Errorf("released %v", got)
		}
	}
	again := f.One(study, "v")
	if again.GetName() != trial.GetName() || again.GetStateReason() != "" {
		t.Fatalf("released trial was not handed out: %v", again)
	}
	fail := func(trial *dparetov1.Trial, retryable bool) *dparetov1.Trial {
		resp, err := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
			Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "out of memory", Retryable: retryable}},
		})
		require.NoError(t, err)
		return resp.GetTrial()
	}
	if got := fail(again, true); got.GetState() != dparetov1.TrialState_TRIAL_STATE_QUEUED {
		t.Errorf("retryable failure: %v", got)
	}
	if got := fail(again, true); got.GetState() != dparetov1.TrialState_TRIAL_STATE_QUEUED {
		t.Errorf("repeated failure: %v", got)
	}
	third := f.One(study, "v")
	if got := fail(third, false); got.GetState() != dparetov1.TrialState_TRIAL_STATE_FAILED || got.GetStateReason() != "out of memory" {
		t.Errorf("failure: %v", got)
	}
	// A failure under a lost lease is not taken: the trial is somebody else's.
	other := f.One(study, "v")
	f.Clock.Advance(time.Hour)
	f.One(study, "u")
	_, err := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: other.GetName(), LeaseToken: other.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "x"}},
	})
	servertest.WantCode(t, err, codes.FailedPrecondition, "lease")
}

func TestInfeasible(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	trial := f.One(study, "w")
	request := &dparetov1.CompleteTrialRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{}},
	}
	_, err := f.Studies.CompleteTrial(t.Context(), request)
	servertest.WantCode(t, err, codes.InvalidArgument, "infeasible.reason")
	request.GetInfeasible().Reason = "diverged"
	resp, err := f.Studies.CompleteTrial(t.Context(), request)
	require.NoError(t, err)
	if got := resp.GetTrial(); got.GetState() != dparetov1.TrialState_TRIAL_STATE_INFEASIBLE || got.GetStateReason() != "diverged" {
		t.Errorf("trial %v", got)
	}
}

func TestMeasurements(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("sgd", servertest.SGDSpec())
	trial := f.One(study, "w")
	last := trial.GetParameters()["epochs"].GetIntValue()
	add := func(m *dparetov1.Measurement) (*dparetov1.AddMeasurementResponse, error) {
		return f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: m,
		})
	}
	f.Clock.Advance(30 * time.Second)
	resp, err := add(servertest.Measurement(1, 0.4))
	require.NoError(t, err)
	if resp.GetShouldStop() || !resp.GetLeaseExpireTime().AsTime().Equal(f.Clock.Now().Add(time.Minute)) {
		t.Errorf("response %v", resp)
	}
	if _, err := add(servertest.Measurement(1, 0.4)); err != nil {
		t.Errorf("the same measurement again: %v", err)
	}
	_, err = add(servertest.Measurement(1, 0.3))
	servertest.WantCode(t, err, codes.FailedPrecondition, "step 1")
	_, err = add(servertest.Measurement(last+1, 0.3))
	servertest.WantCode(t, err, codes.InvalidArgument, "measurement.step")
	_, err = add(servertest.Measurement(0, 0.3))
	servertest.WantCode(t, err, codes.InvalidArgument, "measurement.step")
	require.NoError(t, require.ErrOf(add(servertest.Measurement(last, 0.2))))
	got := f.Trial(trial.GetName())
	if len(got.GetMeasurements()) != 2 {
		t.Fatalf("%d measurements", len(got.GetMeasurements()))
	}
	// ε after one epoch is below that of the whole run, which was known beforehand.
	first := got.GetMeasurements()[0].GetMetrics()["epsilon"].GetValue()
	whole := got.GetMeasurements()[1].GetMetrics()["epsilon"].GetValue()
	if !(first < whole) || whole != trial.GetComputedMetrics()["epsilon"].GetValue() {
		t.Errorf("epsilon after one epoch %g, after all %g, planned %g", first, whole, trial.GetComputedMetrics()["epsilon"].GetValue())
	}
	done, err := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_UseLastMeasurement{UseLastMeasurement: &dparetov1.UseLastMeasurement{}},
	})
	require.NoError(t, err)
	if m := done.GetTrial().GetFinalMeasurement(); m.GetStep() != last || m.GetMetrics()["error"].GetValue() != 0.2 {
		t.Errorf("final measurement %v", m)
	}
}

func TestStopTrial(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("sgd", servertest.SGDSpec())
	trial := f.One(study, "w")
	require.NoError(t, require.ErrOf(f.Studies.StopTrial(t.Context(), &dparetov1.StopTrialRequest{Name: trial.GetName(), Reason: "hopeless"})))
	resp, err := f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: servertest.Measurement(1, 0.4),
	})
	require.NoError(t, err)
	if !resp.GetShouldStop() || resp.GetStopReason() != "hopeless" {
		t.Errorf("response %v", resp)
	}
	// The worker dies: the trial is settled with what it has when anybody asks.
	f.Clock.Advance(time.Hour)
	f.One(study, "v")
	if got := f.Trial(trial.GetName()); got.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED || got.GetFinalMeasurement().GetStep() != 1 {
		t.Errorf("trial %v", got)
	}
}

func TestBadMeasurements(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	trial := f.One(study, "w")
	value := func(x float64) *dparetov1.MetricValue { return &dparetov1.MetricValue{Value: &x} }
	negative, two, huge := -1.0, 2.0, 1e200
	many := make([]float64, 10_001)
	for name, test := range map[string]struct {
		metrics map[string]*dparetov1.MetricValue
		field   string
	}{
		"missing":         {nil, `measurement.metrics["error"]`},
		"unknown":         {map[string]*dparetov1.MetricValue{"error": value(0.5), "speed": value(1)}, `measurement.metrics["speed"]`},
		"nan":             {map[string]*dparetov1.MetricValue{"error": value(math.NaN())}, `measurement.metrics["error"].value`},
		"infinite run":    {map[string]*dparetov1.MetricValue{"error": {Runs: []float64{math.Inf(1)}}}, `measurement.metrics["error"].runs[0]`},
		"overflow":        {map[string]*dparetov1.MetricValue{"error": {Runs: []float64{1e200}}}, `measurement.metrics["error"].runs[0]`},
		"huge deviation":  {map[string]*dparetov1.MetricValue{"error": {Value: new(float64), StandardError: &huge}}, `measurement.metrics["error"].standard_error`},
		"large deviation": {map[string]*dparetov1.MetricValue{"error": {Value: new(float64), StandardError: &two}}, `measurement.metrics["error"].standard_error`},
		"above one":       {map[string]*dparetov1.MetricValue{"error": value(1.5)}, `measurement.metrics["error"].value`},
		"value and runs":  {map[string]*dparetov1.MetricValue{"error": {Value: new(float64), Runs: []float64{0.1}}}, `measurement.metrics["error"]`},
		"nothing":         {map[string]*dparetov1.MetricValue{"error": {}}, `measurement.metrics["error"]`},
		"too many runs":   {map[string]*dparetov1.MetricValue{"error": {Runs: many}}, `measurement.metrics["error"].runs`},
		"negative error":  {map[string]*dparetov1.MetricValue{"error": {Value: new(float64), StandardError: &negative}}, `measurement.metrics["error"].standard_error`},
		"output only":     {map[string]*dparetov1.MetricValue{"error": {Value: new(float64), Max: new(float64)}}, `measurement.metrics["error"]`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
				Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
				Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: &dparetov1.Measurement{Metrics: test.metrics}},
			})
			servertest.WantCode(t, err, codes.InvalidArgument, "")
			if got := servertest.Violated(err); !slices.Equal(got, []string{test.field}) {
				t.Errorf("violated fields %q, want %q", got, test.field)
			}
		})
	}
	if got := f.Trial(trial.GetName()); got.GetState() != dparetov1.TrialState_TRIAL_STATE_ACTIVE {
		t.Errorf("state %s after refused results", got.GetState())
	}
}

// Measurements carry what the spec says of their noise.
func TestNoiseOfMeasurements(t *testing.T) {
	f := servertest.Start(t)
	value := func(runs []float64, standardError ...float64) *dparetov1.MetricValue {
		if len(runs) > 1 {
			return &dparetov1.MetricValue{Runs: runs}
		}
		v := &dparetov1.MetricValue{Value: &runs[0]}
		for _, se := range standardError {
			v.StandardError = &se
		}
		return v
	}
	one := []float64{0.25}
	for id, test := range map[string]struct {
		noise      dparetov1.Noise
		replicates int32
		refused    []*dparetov1.MetricValue
		field      string
		taken      *dparetov1.MetricValue
	}{
		"none":        {dparetov1.Noise_NOISE_NONE, 1, []*dparetov1.MetricValue{value(one, 0.01)}, "standard_error", value(one)},
		"none-stated": {dparetov1.Noise_NOISE_NONE, 1, []*dparetov1.MetricValue{value(one, 0.01)}, "standard_error", value(one, 0)},
		"known":       {dparetov1.Noise_NOISE_KNOWN, 1, []*dparetov1.MetricValue{value(one), {Runs: one}}, "standard_error", value(one, 0.01)},
		"known-runs":  {dparetov1.Noise_NOISE_KNOWN, 2, nil, "", value([]float64{0.25, 0.5})},
		"unknown":     {dparetov1.Noise_NOISE_UNKNOWN, 1, nil, "", value(one, 0.01)},
	} {
		t.Run(id, func(t *testing.T) {
			asked := servertest.SVTSpec()
			asked.Replicates = test.replicates
			asked.Metrics[1].GetReported().Noise = test.noise
			trial := f.One(f.Create(id, asked), "w")
			complete := func(v *dparetov1.MetricValue) error {
				request := servertest.Completion(trial, 0)
				request.GetMeasurement().Metrics["error"] = v
				_, err := f.Studies.CompleteTrial(t.Context(), request)
				return err
			}
			for _, v := range test.refused {
				err := complete(v)
				servertest.WantCode(t, err, codes.InvalidArgument, "")
				if got, want := servertest.Violated(err), `measurement.metrics["error"].`+test.field; !slices.Equal(got, []string{want}) {
					t.Errorf("%v: violated fields %q, want %q", v, got, want)
				}
			}
			if err := complete(test.taken); err != nil {
				t.Errorf("%v: %v", test.taken, err)
			}
		})
	}
	// Beside a metric with noise, one without has as many runs, all equal.
	asked := servertest.SVTSpec()
	asked.Replicates = 2
	asked.Metrics[1].GetReported().Noise = dparetov1.Noise_NOISE_NONE
	asked.Metrics = append(asked.Metrics, &dparetov1.MetricSpec{
		Id: "seconds", Role: dparetov1.MetricRole_METRIC_ROLE_TRACKED, Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
	})
	trial := f.One(f.Create("both", asked), "w")
	request := servertest.Completion(trial, 0)
	request.GetMeasurement().Metrics["error"] = value([]float64{0.25, 0.5})
	_, err := f.Studies.CompleteTrial(t.Context(), request)
	servertest.WantCode(t, err, codes.InvalidArgument, "")
	if got := servertest.Violated(err); !slices.Equal(got, []string{`measurement.metrics["error"].runs`}) {
		t.Errorf("violated fields %q of runs that differ", got)
	}
	request.GetMeasurement().Metrics["error"] = value([]float64{0.25, 0.25})
	if _, err := f.Studies.CompleteTrial(t.Context(), request); err != nil {
		t.Error(err)
	}
}

// The worker's own ε is kept beside the computed one, and a difference is flagged.
func TestReportedEpsilon(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	for _, factor := range []float64{1, 1.1} {
		trial := f.One(study, "w")
		computed := trial.GetComputedMetrics()["epsilon"].GetValue()
		own := computed * factor
		request := servertest.Completion(trial, 0.5)
		request.GetMeasurement().Metrics["epsilon"] = &dparetov1.MetricValue{Value: &own}
		resp, err := f.Studies.CompleteTrial(t.Context(), request)
		require.NoError(t, err)
		got := resp.GetTrial().GetFinalMeasurement().GetMetrics()["epsilon"]
		if got.GetValue() != computed || got.GetReported() != own {
			t.Errorf("value %g, reported %g, want %g and %g", got.GetValue(), got.GetReported(), computed, own)
		}
		if flagged := len(resp.GetTrial().GetWarnings()) == 1; flagged != (factor != 1) {
			t.Errorf("factor %g: warnings %v", factor, resp.GetTrial().GetWarnings())
		}
	}
}

func TestCreateTrial(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	parameters := func(cutoff int64, noise float64) map[string]*dparetov1.Value {
		return map[string]*dparetov1.Value{
			"cutoff":      {Kind: &dparetov1.Value_IntValue{IntValue: cutoff}},
			"noise_scale": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: noise}},
		}
	}
	create := func(trial *dparetov1.Trial) (*dparetov1.Trial, error) {
		resp, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: trial})
		return resp.GetTrial(), err
	}
	queued, err := create(&dparetov1.Trial{Parameters: parameters(3, 0.5), Note: "a guess"})
	require.NoError(t, err)
	if got := f.One(study, "w"); got.GetName() != queued.GetName() || got.GetNote() != "a guess" ||
		got.GetOrigin() != dparetov1.TrialOrigin_TRIAL_ORIGIN_REQUESTED {
		t.Errorf("handed out %v", got)
	}
	imported, err := create(&dparetov1.Trial{Parameters: parameters(3, 0.5), FinalMeasurement: servertest.Measurement(0, 0.25)})
	require.NoError(t, err)
	if imported.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED || !finite(imported.GetFinalMeasurement().GetMetrics()["epsilon"]) {
		t.Errorf("imported %v", imported)
	}
	for name, bad := range map[string]map[string]*dparetov1.Value{
		`trial.parameters["noise_scale"]`: {"cutoff": parameters(3, 1)["cutoff"]},
		`trial.parameters["cutoff"]`:      {"cutoff": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 3}}, "noise_scale": parameters(3, 1)["noise_scale"]},
		`trial.parameters["extra"]`:       {"cutoff": parameters(3, 1)["cutoff"], "noise_scale": parameters(3, 1)["noise_scale"], "extra": {}},
	} {
		_, err := create(&dparetov1.Trial{Parameters: bad})
		servertest.WantCode(t, err, codes.InvalidArgument, name)
	}
	_, err = create(&dparetov1.Trial{Parameters: parameters(31, 1)})
	servertest.WantCode(t, err, codes.InvalidArgument, "domain")
	_, err = create(&dparetov1.Trial{Parameters: parameters(3, math.NaN())})
	servertest.WantCode(t, err, codes.InvalidArgument, "domain")
	_, err = create(nil)
	servertest.WantCode(t, err, codes.InvalidArgument, "trial")
}

// A replicate is another run of a trial's configuration, or of a state on its way, also
// beyond the budget.
func TestCreateReplicate(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SGDSpec()
	spec.Budget = &dparetov1.Budget{MaxTrials: 1}
	study := f.Create("sgd", spec)
	other := f.Create("other", servertest.SGDSpec())
	original := f.One(study, "w")
	epochs := original.GetParameters()["epochs"].GetIntValue()
	if epochs < 2 {
		t.Fatalf("the first trial has %d epochs; choose another seed", epochs)
	}
	f.Tell(original, 0.5)
	create := func(parent, of string, parameters map[string]*dparetov1.Value) (*dparetov1.Trial, error) {
		resp, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{
			Parent: parent, Trial: &dparetov1.Trial{ReplicateOf: of, Parameters: parameters},
		})
		return resp.GetTrial(), err
	}
	with := func(id string, value *dparetov1.Value) map[string]*dparetov1.Value {
		parameters := maps.Clone(original.GetParameters())
		parameters[id] = value
		return parameters
	}
	integer := func(x int64) *dparetov1.Value { return &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: x}} }

	for _, parameters := range []map[string]*dparetov1.Value{nil, original.GetParameters(), with("epochs", integer(epochs-1))} {
		replicate, err := create(study, original.GetName(), parameters)
		require.NoError(t, err)
		want := epochs
		if parameters != nil {
			want = parameters["epochs"].GetIntValue()
		}
		if got := f.One(study, "w"); got.GetName() != replicate.GetName() || got.GetReplicateOf() != original.GetName() ||
			got.GetOrigin() != dparetov1.TrialOrigin_TRIAL_ORIGIN_REPLICATE || got.GetParameters()["epochs"].GetIntValue() != want ||
			got.GetParameters()["lot_size"].GetIntValue() != original.GetParameters()["lot_size"].GetIntValue() {
			t.Errorf("handed out %v, want %v", got, replicate)
		} else {
			f.Tell(got, 0.4)
		}
	}
	if resp := f.Ask(study, "w", 1); resp.GetEndReason() != dparetov1.EndReason_END_REASON_BUDGET_SPENT {
		t.Errorf("after the replicates: %v", resp)
	}
	if front := f.Front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED); front.GetCandidates() != 2 {
		t.Errorf("%d configurations, want that of the trial and its state one epoch before", front.GetCandidates())
	}

	_, err := create(study, original.GetName(), with("epochs", integer(epochs+1)))
	servertest.WantCode(t, err, codes.InvalidArgument, "trial.parameters")
	_, err = create(study, original.GetName(), with("lot_size", integer(9)))
	servertest.WantCode(t, err, codes.InvalidArgument, "trial.parameters")
	_, err = create(study, original.GetName(), map[string]*dparetov1.Value{"epochs": integer(1)})
	servertest.WantCode(t, err, codes.InvalidArgument, "lot_size")
	_, err = create(study, "trials/1", nil)
	servertest.WantCode(t, err, codes.InvalidArgument, "trial.replicate_of")
	_, err = create(other, original.GetName(), nil)
	servertest.WantCode(t, err, codes.InvalidArgument, "trial.replicate_of")
	_, err = create(study, study+"/trials/99", nil)
	servertest.WantCode(t, err, codes.NotFound, "trials/99")
	_, err = create(study, "", original.GetParameters())
	servertest.WantCode(t, err, codes.FailedPrecondition, "budget")
}

func TestDeleteTrial(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	trial := f.One(study, "w")
	_, err := f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: trial.GetName()})
	servertest.WantCode(t, err, codes.FailedPrecondition, "holds")
	f.Tell(trial, 0.5)
	require.NoError(t, require.ErrOf(f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: trial.GetName()})))
	_, err = f.Studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: trial.GetName()})
	servertest.WantCode(t, err, codes.NotFound, trial.GetName())
	if next := f.One(study, "w"); next.GetNumber() != 2 {
		t.Errorf("number %d, want 2: numbers are not used again", next.GetNumber())
	}
}

func TestBadNames(t *testing.T) {
	f := servertest.Start(t)
	for _, name := range []string{"", "studies/", "studies/X", "trials/1", "studies/a/trials/0", "studies/a/trials/01", "studies/a/trials/1/x", "studies/../trials/1"} {
		_, err := f.Studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: name})
		servertest.WantCode(t, err, codes.InvalidArgument, "name")
	}
}

// Many workers at once get different trials, and nothing is lost.
func TestConcurrentWorkers(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SVTSpec()
	spec.Algorithm = &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_DPARETO, InitialTrials: 20}
	spec.Budget = &dparetov1.Budget{MaxTrials: 40}
	study := f.Create("svt", spec)
	var mu sync.Mutex
	seen := make(map[string]string)
	var workers sync.WaitGroup
	for w := range 16 {
		workers.Go(func() {
			worker := fmt.Sprintf("w%d", w)
			for {
				resp, err := f.Studies.SuggestTrials(context.Background(), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: worker})
				if err != nil {
					t.Error(err)
					return
				}
				if len(resp.GetTrials()) == 0 {
					if resp.GetEndReason() != dparetov1.EndReason_END_REASON_BUDGET_SPENT {
						t.Errorf("end reason %s", resp.GetEndReason())
					}
					return
				}
				trial := resp.GetTrials()[0]
				mu.Lock()
				if other, taken := seen[trial.GetName()]; taken {
					t.Errorf("%s went to %s and %s", trial.GetName(), other, worker)
				}
				seen[trial.GetName()] = worker
				mu.Unlock()
				if _, err := f.Studies.CompleteTrial(context.Background(), servertest.Completion(trial, 0.5)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	if len(seen) != 40 {
		t.Errorf("%d trials, want 40", len(seen))
	}
	resp, err := f.Studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: study})
	require.NoError(t, err)
	if c := resp.GetStudy().GetTrialCounts(); c.GetSucceeded() != 40 || c.GetActive() != 0 {
		t.Errorf("counts %v", c)
	}
}

// Queued trials count towards the limit of parallel trials, and so do stopping ones.
func TestParallelLimit(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SVTSpec()
	spec.Budget = &dparetov1.Budget{MaxParallelTrials: 2}
	study := f.Create("svt", spec)
	parameters := f.One(study, "first").GetParameters()
	for range 3 {
		require.NoError(t, require.ErrOf(f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{Parameters: parameters}})))
	}
	resp := f.Ask(study, "w", 5)
	if len(resp.GetTrials()) != 1 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_PARALLELISM {
		t.Errorf("%d trials, %s", len(resp.GetTrials()), resp.GetEndReason())
	}
	require.NoError(t, require.ErrOf(f.Studies.StopTrial(t.Context(), &dparetov1.StopTrialRequest{Name: resp.GetTrials()[0].GetName()})))
	if resp := f.Ask(study, "v", 1); len(resp.GetTrials()) != 0 {
		t.Errorf("got %s while two trials are active or stopping", resp.GetTrials()[0].GetName())
	}
}

// A trial that was asked to stop is not run again, however its worker ends.
func TestStoppedTrialsAreSettled(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("sgd", servertest.SGDSpec())
	for name, end := range map[string]func(*dparetov1.Trial) error{
		"failure": func(trial *dparetov1.Trial) error {
			_, err := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
				Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
				Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "x", Retryable: true}},
			})
			return err
		},
		"release": func(trial *dparetov1.Trial) error {
			_, err := f.Studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken()})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			trial := f.One(study, name)
			require.NoError(t, require.ErrOf(f.Studies.StopTrial(t.Context(), &dparetov1.StopTrialRequest{Name: trial.GetName(), Reason: "enough"})))
			renewed, err := f.Studies.RenewLeases(t.Context(), &dparetov1.RenewLeasesRequest{
				Parent: study, LeaseTokens: map[string]string{trial.GetName(): trial.GetLease().GetToken()},
			})
			if err != nil || !renewed.GetResults()[trial.GetName()].GetShouldStop() {
				t.Errorf("renewal %v, %v", renewed, err)
			}
			for range 2 { // the second call repeats the first
				require.NoError(t, end(trial))
			}
			if got := f.Trial(trial.GetName()); got.GetState() != dparetov1.TrialState_TRIAL_STATE_FAILED || got.GetStateReason() != "enough" {
				t.Errorf("trial %v", got)
			}
		})
	}
}

// A new attempt starts without the measurements and flags of the one before.
func TestNewAttemptStartsAfresh(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("sgd", servertest.SGDSpec())
	trial := f.One(study, "w")
	own := 1e-6
	m := servertest.Measurement(1, 0.4)
	m.Metrics["epsilon"] = &dparetov1.MetricValue{Value: &own}
	require.NoError(t, require.ErrOf(f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: m,
	})))
	if got := f.Trial(trial.GetName()); len(got.GetWarnings()) != 1 || len(got.GetMeasurements()) != 1 {
		t.Fatalf("trial %v", got)
	}
	again := f.One(study, "w")
	if len(again.GetWarnings()) != 0 || len(again.GetMeasurements()) != 0 {
		t.Errorf("second attempt %v", again)
	}
	_, err := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: again.GetName(), LeaseToken: again.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_UseLastMeasurement{UseLastMeasurement: &dparetov1.UseLastMeasurement{}},
	})
	servertest.WantCode(t, err, codes.FailedPrecondition, "no measurement")
}

// A worker id that could be taken for another's, or control a terminal, is refused.
func TestHiddenWorkerIDs(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	for _, id := range []string{"", " w", "w\n", "w\u200b", "\u202ew", "w\x1b[2J", strings.Repeat("w", 201)} {
		_, err := f.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: id})
		if !slices.Equal(servertest.Violated(err), []string{"worker_id"}) {
			t.Errorf("%q: %v", id, err)
		}
	}
}
