package study_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/servertest"
)

// Of a study with random_stopping a worker without a lease does not learn which trials there are.
func TestStrangersLearnNoTrials(t *testing.T) {
	f := servertest.Start(t)
	study := f.WithTrials("search", servertest.SearchSpec(10, 1), 3)
	f.One(study, "w")
	for name, call := range map[string]func(trial string) proto.Message{
		"measurement": func(trial string) proto.Message {
			return &dparetov1.AddMeasurementRequest{Name: trial, LeaseToken: "none", Measurement: servertest.Measurement(1, 0.5)}
		},
		"completion": func(trial string) proto.Message {
			return &dparetov1.CompleteTrialRequest{
				Name: trial, LeaseToken: "none", Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: servertest.Measurement(0, 0.5)},
			}
		},
		"release": func(trial string) proto.Message {
			return &dparetov1.ReleaseTrialRequest{Name: trial, LeaseToken: "none"}
		},
	} {
		answer := func(number int) string {
			trial := fmt.Sprintf("%s/trials/%d", study, number)
			_, err := f.Call(t.Context(), call(trial))
			if status.Code(err) != codes.FailedPrecondition {
				t.Errorf("%s of %s: %v", name, trial, err)
			}
			return strings.ReplaceAll(err.Error(), trial, "it")
		}
		if there, not := answer(1), answer(9); there != not {
			t.Errorf("%s: %q and %q", name, there, not)
		}
	}
}

// A deleted trial leaves the values that were reserved for it to others.
func TestPrivateModeDeletedTrials(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.WithCheckpoints(servertest.PrivateSpec(2, 20), 4))
	first := f.One(study, "w")
	require.NoError(t, require.ErrOf(f.Studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: first.GetName(), LeaseToken: first.GetLease().GetToken()})))
	require.NoError(t, require.ErrOf(f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: first.GetName()})))
	second := f.One(study, "w")
	if kept := f.Checkpoints(second); kept != 3 {
		t.Errorf("%d values on the way, want 3", kept)
	}
	f.Tell(second, 0.5)
}

// epsilons returns the ε of trials in ascending order.
func epsilons(trials []*dparetov1.Trial) (all []float64) {
	for _, trial := range trials {
		all = append(all, trial.GetComputedMetrics()["epsilon"].GetValue())
	}
	slices.Sort(all)
	return all
}

// The summaries of a reaccounting are those of the trials' ε before and after.
func TestReaccountingSummaries(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.GaussianSpec())
	changed := proto.CloneOf(servertest.GaussianSpec().GetMetrics()[0].GetComputed().GetPrivacy())
	for n := 1; n <= 6; n++ {
		f.Tell(f.One(study, "w"), 0.5)
		_, trials := all(f, study)
		before := epsilons(trials)
		changed.Delta /= 2
		resp := f.Reaccount(study, changed, false)
		_, trials = all(f, study)
		for name, is := range map[string]struct {
			summary *dparetov1.AccountingSummary
			values  []float64
		}{"before": {resp.GetBefore(), before}, "after": {resp.GetAfter(), epsilons(trials)}} {
			s, v := is.summary, is.values
			median := (v[(n-1)/2] + v[n/2]) / 2
			if s.GetSmallestEpsilon() != v[0] || s.GetMedianEpsilon() != median || s.GetLargestEpsilon() != v[n-1] || s.GetNotComputable() != 0 {
				t.Errorf("%s: %v of %v", name, s, v)
			}
		}
		if resp.GetDifferingReports() != 0 || resp.GetTrials() != int64(n) {
			t.Errorf("response %v", resp)
		}
	}
	empty := f.Reaccount(f.Create("empty", servertest.GaussianSpec()), changed, false)
	if empty.GetTrials() != 0 || empty.GetAfter().SmallestEpsilon != nil || empty.GetAfter().LargestEpsilon != nil {
		t.Errorf("of no trials: %v", empty)
	}
}

// An answer with all that was asked for gives no reason why there is no more.
func TestLastTrialOfABudget(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SVTSpec()
	spec.Budget = &dparetov1.Budget{MaxTrials: 2}
	study := f.Create("s", spec)
	if resp := f.Ask(study, "w", 2); len(resp.GetTrials()) != 2 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_UNSPECIFIED || resp.GetRetryAfter() != nil {
		t.Errorf("the last two: %v", resp)
	}
	if resp := f.Ask(study, "v", 1); len(resp.GetTrials()) != 0 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_BUDGET_SPENT || resp.GetRetryAfter() == nil {
		t.Errorf("after them: %v", resp)
	}
}

// With max_stagnant_trials of 1 a single trial that adds nothing ends a study.
func TestStagnationAtOnce(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SVTSpec()
	spec.Budget = &dparetov1.Budget{MaxStagnantTrials: 1}
	study := f.Create("s", spec)
	for range 3 { // says nothing of the front
		failed := servertest.Completion(f.One(study, "w"))
		failed.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "broken"}}
		require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), failed)))
	}
	trials := 0
	for resp := f.Ask(study, "w", 1); len(resp.GetTrials()) > 0 && trials < 20; resp = f.Ask(study, "w", 1) {
		f.Tell(resp.GetTrials()[0], 0.9999)
		trials++
	}
	if trials == 0 || trials == 20 {
		t.Errorf("%d trials", trials)
	}
}

// Calls about trials answer with the trial as it is then, refuse failures without a reason, and tell
// imported results from others.
func TestAnswersOfTrials(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.SVTSpec())
	trial := f.One(study, "w")
	_, err := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{}},
	})
	if got := servertest.Violated(err); !slices.Equal(got, []string{"failure.reason"}) {
		t.Errorf("a failure without a reason: %v", err)
	}
	stopped, err := f.Studies.StopTrial(t.Context(), &dparetov1.StopTrialRequest{Name: trial.GetName(), Reason: "enough"})
	if got := f.Trial(trial.GetName()); err != nil || stopped.GetTrial().GetState() != dparetov1.TrialState_TRIAL_STATE_STOPPING || stopped.GetTrial().GetEtag() != got.GetEtag() {
		t.Errorf("stopped %v, %v; it is %v", stopped, err, got)
	}
	again, err := f.Studies.StopTrial(t.Context(), &dparetov1.StopTrialRequest{Name: trial.GetName()})
	if err != nil || !proto.Equal(again.GetTrial(), stopped.GetTrial()) {
		t.Errorf("stopped again: %v, %v", again, err)
	}
	if _, err := f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: trial.GetName(), Etag: "other"}); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("deleted in another state: %v", err)
	}
	for _, request := range []proto.Message{
		&dparetov1.CompleteTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), RequestId: strings.Repeat("x", 1000),
			Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: servertest.Measurement(0, 0.5)},
		},
		&dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), RequestId: strings.Repeat("x", 1000)},
		&dparetov1.UpdateTrialRequest{Trial: &dparetov1.Trial{Name: trial.GetName(), Note: "x"}, RequestId: strings.Repeat("x", 1000)},
	} {
		if _, err := f.Call(t.Context(), request); !slices.Equal(servertest.Violated(err), []string{"request_id"}) {
			t.Errorf("%T with a long id: %v", request, err)
		}
	}
	_, err = f.Studies.UpdateTrial(t.Context(), &dparetov1.UpdateTrialRequest{Trial: &dparetov1.Trial{Name: "studies/s", Note: "x"}})
	servertest.WantCode(t, err, codes.InvalidArgument, "trial.name")
	imported, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
		Parameters: trial.GetParameters(), FinalMeasurement: servertest.Measurement(0, 0.25),
	}})
	if err != nil || imported.GetTrial().GetOrigin() != dparetov1.TrialOrigin_TRIAL_ORIGIN_IMPORTED {
		t.Errorf("imported %v, %v", imported, err)
	}
	requested, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{Parameters: trial.GetParameters()}})
	if err != nil || requested.GetTrial().GetOrigin() != dparetov1.TrialOrigin_TRIAL_ORIGIN_REQUESTED {
		t.Errorf("requested %v, %v", requested, err)
	}
}

// The leases of as many trials as are handed out at once are renewed at once.
func TestRenewManyLeases(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.SVTSpec())
	for n, code := range map[int]codes.Code{0: codes.InvalidArgument, 1000: codes.OK, 1001: codes.InvalidArgument} {
		tokens := map[string]string{}
		for i := range n {
			tokens[fmt.Sprintf("%s/trials/%d", study, i+1)] = "none"
		}
		resp, err := f.Studies.RenewLeases(t.Context(), &dparetov1.RenewLeasesRequest{Parent: study, LeaseTokens: tokens})
		if status.Code(err) != code || code == codes.OK && len(resp.GetResults()) != n {
			t.Errorf("%d leases: %d results, %v", n, len(resp.GetResults()), err)
		}
	}
}

// A deleted trial is counted as one that has gone.
func TestMetricsOfDeletedTrials(t *testing.T) {
	m := metrics.New("test")
	f := servertest.StartWith(t, func(o *server.Options) { o.Metrics = m })
	study := f.Create("s", servertest.SVTSpec())
	trial := f.Tell(f.One(study, "w"), 0.25)
	require.NoError(t, require.ErrOf(f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: trial.GetName()})))
	const want = `# HELP dpareto_trial_transitions_total State transitions of trials; from none at creation, to none at deletion.
# TYPE dpareto_trial_transitions_total counter
dpareto_trial_transitions_total{from="active",to="succeeded"} 1
dpareto_trial_transitions_total{from="none",to="active"} 1
dpareto_trial_transitions_total{from="succeeded",to="none"} 1
`
	if err := testutil.GatherAndCompare(m.Gatherer(), strings.NewReader(want), "dpareto_trial_transitions_total"); err != nil {
		t.Error(err)
	}
}
