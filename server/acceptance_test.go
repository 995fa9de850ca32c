package server_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// The tests in this file are faults that suggestion services are known for. Others have
// their places elsewhere: TestBrokenDesigner and TestCloseDuringSuggestion (an error of
// the algorithm, or a crash in the middle of a suggestion, locks a worker out),
// TestCompleteIsIdempotentAndNeverOverwrites, TestBadMeasurements (values that are not
// finite, unknown metrics, missing objectives), TestCreateStudy (another spec under a
// name that exists), TestLeaseExpiry (late results), TestListTrialsOrder (page sizes),
// TestSuggestionsAreDeterministic, TestHostileRequests (codes), BenchmarkObservedFront
// (fronts in time that grows with the square of the trials), TestBackupStore and package
// bolt's TestSnapshotWhileWriting (copies in the middle of writes), TestLedgerChargesEveryRun (what
// deleted trials have spent), package cli's TestDefaultStore (where the store lies), and
// the command's TestKilledUnderLoad (SIGKILL in the middle of anything).

// Trials that users create and trials that are suggested never get the same number, and
// none gets lost, whoever comes first.
func TestNumbersDoNotRace(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	parameters := f.One(study, "w").GetParameters()
	const each = 20
	var mu sync.Mutex
	var names []string
	add := func(trials ...*dparetov1.Trial) {
		mu.Lock()
		defer mu.Unlock()
		for _, trial := range trials {
			names = append(names, trial.GetName())
		}
	}
	var callers sync.WaitGroup
	for c := range 8 {
		callers.Go(func() {
			for i := range each {
				if c%2 == 0 {
					value := 0.5
					resp, err := f.Studies.CreateTrial(context.Background(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
						Parameters: parameters, FinalMeasurement: &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{"error": {Value: &value}}},
					}})
					if err != nil {
						t.Error(err)
					}
					add(resp.GetTrial())
					continue
				}
				resp, err := f.Studies.SuggestTrials(context.Background(), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: fmt.Sprintf("w%d-%d", c, i)})
				if err != nil {
					t.Error(err)
				}
				add(resp.GetTrials()...)
			}
		})
	}
	callers.Wait()
	slices.Sort(names)
	if n := len(names); n != 8*each || len(slices.Compact(names)) != n {
		t.Errorf("%d trials with %d names, want %d", n, len(slices.Compact(names)), 8*each)
	}
}

// Many workers at a time never get the same point of a continuous space.
func TestWorkersGetDifferentPoints(t *testing.T) {
	for _, algorithm := range []dparetov1.Algorithm{
		dparetov1.Algorithm_ALGORITHM_RANDOM, dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM,
		dparetov1.Algorithm_ALGORITHM_NSGA2, dparetov1.Algorithm_ALGORITHM_DEFAULT,
	} {
		t.Run(algorithm.String(), func(t *testing.T) {
			f := servertest.Start(t)
			spec := servertest.SVTSpec()
			spec.Algorithm = &dparetov1.AlgorithmSpec{Name: algorithm, InitialTrials: 6}
			study := f.Create("svt", spec)
			for i := range 8 {
				f.Tell(f.One(study, "w"), 0.9-0.1*float64(i))
			}
			var mu sync.Mutex
			seen := make(map[string]string)
			var workers sync.WaitGroup
			for w := range 64 {
				workers.Go(func() {
					resp, err := f.Studies.SuggestTrials(context.Background(), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: fmt.Sprintf("w%d", w)})
					if err != nil || len(resp.GetTrials()) != 1 {
						t.Errorf("%v, error %v", resp, err)
						return
					}
					trial := resp.GetTrials()[0]
					point := fmt.Sprint(trial.GetParameters()["cutoff"].GetIntValue(), trial.GetParameters()["noise_scale"].GetDoubleValue())
					mu.Lock()
					defer mu.Unlock()
					if other, taken := seen[point]; taken {
						t.Errorf("%s and %s are both at %s", trial.GetName(), other, point)
					}
					seen[point] = trial.GetName()
				})
			}
			workers.Wait()
		})
	}
}

// The published acquisition finds other points than the paper's, and does not know the references.
func TestPublishedAcquisition(t *testing.T) {
	point := func(published bool, reference float64) string {
		f := servertest.Start(t)
		spec := servertest.SVTSpec()
		spec.Metrics[1].ReferenceValue = &reference
		spec.Algorithm = &dparetov1.AlgorithmSpec{
			Name: dparetov1.Algorithm_ALGORITHM_DPARETO, InitialTrials: 8, PublishedAcquisition: published,
		}
		study := f.Create("svt", spec)
		for i := range 8 {
			f.Tell(f.One(study, "w"), 0.9-0.1*float64(i))
		}
		trial := f.One(study, "w")
		if got := trial.GetProvenance(); got.GetAlgorithm() != "dpareto" || got.GetFallbackReason() != "" {
			t.Errorf("provenance %v", got)
		}
		return fmt.Sprint(trial.GetParameters()["cutoff"].GetIntValue(), trial.GetParameters()["noise_scale"].GetDoubleValue())
	}
	published := point(true, 1)
	if other := point(true, 0.3); other != published {
		t.Errorf("published: %s with another reference, %s before", other, published)
	}
	if own := point(false, 1); own == published {
		t.Errorf("%s with the paper's acquisition and with the published code's", own)
	}
}

// A clock that is set back or forward loses nothing: a lease may last longer or shorter,
// results count, and the study goes on.
func TestClockJumps(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SVTSpec()
	spec.Budget = &dparetov1.Budget{MaxTrials: 20}
	study := f.Create("svt", spec)
	for i, jump := range []time.Duration{-time.Hour, 24 * time.Hour, -100 * 24 * time.Hour, time.Second, 1000 * 24 * time.Hour} {
		trial := f.One(study, "w")
		f.Clock.Advance(jump)
		if resp := f.Ask(study, "other", 1); len(resp.GetTrials()) != 1 {
			t.Fatalf("jump %d: %v", i, resp)
		}
		if i%2 == 1 {
			f.Restart()
		}
		if done := f.Tell(trial, 0.5); done.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			t.Errorf("jump %d: state %s", i, done.GetState())
		}
	}
}

// A front has neither infeasible nor failed trials, nor values that are not finite: an ε
// that is infinite is worse than any reference.
func TestFrontOfWhatSucceeded(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	succeeded := f.Tell(f.One(study, "w"), 0.5)
	for _, outcome := range []func(*dparetov1.CompleteTrialRequest){
		func(r *dparetov1.CompleteTrialRequest) {
			r.Outcome = &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "diverged"}}
		},
		func(r *dparetov1.CompleteTrialRequest) {
			r.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "lost power"}}
		},
	} {
		req := servertest.Completion(f.One(study, "w"))
		outcome(req)
		require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), req)))
	}
	for _, kind := range []dparetov1.FrontKind{
		dparetov1.FrontKind_FRONT_KIND_OBSERVED, dparetov1.FrontKind_FRONT_KIND_POSTERIOR,
		dparetov1.FrontKind_FRONT_KIND_BEST, dparetov1.FrontKind_FRONT_KIND_WORST,
	} {
		resp, err := f.Fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: study, Kind: kind})
		require.NoError(t, err)
		if front := resp.GetFront(); len(front.GetPoints()) != 1 || front.GetPoints()[0].GetTrials()[0] != succeeded.GetName() || math.IsNaN(front.GetHypervolume()) {
			t.Errorf("%s: %v", kind, front)
		}
	}
}

// Without measurements no run is told to stop, however often it asks.
func TestNothingIsStoppedByChance(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("sgd", servertest.SGDSpec())
	tokens := make(map[string]string)
	for _, trial := range f.Ask(study, "w", 10).GetTrials() {
		tokens[trial.GetName()] = trial.GetLease().GetToken()
	}
	for range 5 {
		resp, err := f.Studies.RenewLeases(t.Context(), &dparetov1.RenewLeasesRequest{Parent: study, LeaseTokens: tokens})
		require.NoError(t, err)
		for name, result := range resp.GetResults() {
			if !result.GetHeld() || result.GetShouldStop() {
				t.Errorf("%s: %v", name, result)
			}
		}
	}
}

// What does not exist is NOT_FOUND under every method, and nothing of the server's inside
// is told.
func TestNotFound(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	for _, err := range []error{
		require.ErrOf(f.Studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: "studies/none"})),
		require.ErrOf(f.Studies.ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: "studies/none"})),
		require.ErrOf(f.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/none", WorkerId: "w"})),
		require.ErrOf(f.Studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: study + "/trials/7"})),
		require.ErrOf(f.Studies.StopTrial(t.Context(), &dparetov1.StopTrialRequest{Name: study + "/trials/7"})),
		require.ErrOf(f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: study + "/trials/7"})),
		require.ErrOf(f.Studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: study + "/trials/7", LeaseToken: "none"})),
		require.ErrOf(f.Studies.UpdateTrial(t.Context(), &dparetov1.UpdateTrialRequest{Trial: &dparetov1.Trial{Name: study + "/trials/7", Note: "x"}})),
		require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: "studies/none"})),
		require.ErrOf(f.Fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: "studies/none", Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED})),
	} {
		servertest.WantCode(t, err, codes.NotFound, "does not exist")
		if status.Convert(err).Message() == "" {
			t.Error("no message")
		}
	}
}
