package release_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/store"
)

// A repeated request gets its release also where the budget would not pay for another.
func TestRepeatedReleaseOfASpentLedger(t *testing.T) {
	f := servertest.Start(t)
	ledger := f.NewLedger("l", 3)
	study := f.Fixed(ledger, 0.4, 0.3, 0.2, 0.3, 0.35)
	best := &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 1, RequestId: "best"}
	front := &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: 1, Delta: 1e-7, RequestId: "front"}
	selection := &dparetov1.SelectPrivatelyRequest{Utilities: []float64{0.1, 0.9}, Sensitivity: 1, Epsilon: 1, Ledger: ledger, RequestId: "selection"}
	release := func() (all []*dparetov1.Release) {
		t.Helper()
		one, err := f.Releases().ReleaseBest(t.Context(), best)
		require.NoError(t, err)
		two, err := f.Releases().ReleaseFront(t.Context(), front)
		require.NoError(t, err)
		three, err := f.Releases().SelectPrivately(t.Context(), selection)
		require.NoError(t, err)
		return []*dparetov1.Release{one.GetRelease(), two.GetRelease(), three.GetRelease()}
	}
	if left := f.GetLedger(ledger).GetRemainingEpsilon(); left != 3 {
		t.Errorf("%g is left of 3", left)
	}
	first := release()
	if left := f.GetLedger(ledger).GetRemainingEpsilon(); !(left < 1) {
		t.Errorf("%g is left", left)
	}
	if mechanism := first[1].GetMechanism(); !strings.HasPrefix(mechanism, "Gaussian noise on all 5 values of 5 configurations") {
		t.Errorf("mechanism %q", mechanism)
	}
	if protects := first[2].GetProtects(); protects != "each of the 1000 records of ledgers/l" {
		t.Errorf("the selection protects %q", protects)
	}
	if reason := f.Charges(ledger)[0].GetReason(); !strings.HasPrefix(reason, "best error, permute-and-flip among") {
		t.Errorf("charged for %q", reason)
	}
	_, err := f.Releases().SelectPrivately(t.Context(), &dparetov1.SelectPrivatelyRequest{Sensitivity: 1, Epsilon: 1, Ledger: ledger})
	if got := servertest.Violated(err); !slices.Equal(got, []string{"utilities"}) {
		t.Errorf("no utilities: %v", err)
	}
	_, err = f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 1})
	servertest.WantCode(t, err, codes.ResourceExhausted, "exceeds the remaining budget")
	for i, again := range release() {
		if !proto.Equal(again, first[i]) {
			t.Errorf("again %v, first %v", again, first[i])
		}
		got, err := f.Releases().GetRelease(t.Context(), &dparetov1.GetReleaseRequest{Name: first[i].GetName()})
		if err != nil || !proto.Equal(got.GetRelease(), first[i]) {
			t.Errorf("read %v, %v; released %v", got, err, first[i])
		}
	}
	for name, want := range map[string]string{
		"studies/none/releases/1": "studies/none", "ledgers/none/releases/1": "ledgers/none", study + "/releases/9": "releases/9", ledger + "/releases/9": "releases/9",
	} {
		_, err := f.Releases().GetRelease(t.Context(), &dparetov1.GetReleaseRequest{Name: name})
		servertest.WantCode(t, err, codes.NotFound, want)
	}
	if n := len(f.Charges(ledger)); n != 3 {
		t.Errorf("%d charges", n)
	}
}

// A grid that is larger than max_trials is complete after so many trials.
func TestReleaseOfPartOfAGrid(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.FixedSpec(3, f.NewLedger("l", 100))
	spec.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_GRID
	spec.Parameters[0].GridLevels, spec.Parameters[1].GridLevels = 3, 3
	study := f.Create("grid", spec)
	for range 3 {
		f.Tell(f.One(study, "w"), 0.3)
	}
	if _, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 1}); err != nil {
		t.Error(err)
	}
}

// A ledger has at least one record; creating it again returns it.
func TestLedgerOfOneRecord(t *testing.T) {
	f := servertest.Start(t)
	var first *dparetov1.Ledger
	for _, records := range []int64{0, 1, 1} {
		resp, err := f.Releases().CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: "l", Ledger: &dparetov1.Ledger{
			Records: records, Epsilon: 1, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		}})
		switch {
		case records == 0:
			servertest.WantCode(t, err, codes.InvalidArgument, "ledger.records")
		case err != nil:
			t.Fatal(err)
		case first == nil:
			first = resp.GetLedger()
		case first.GetName() != "ledgers/l" || !proto.Equal(resp.GetLedger(), first):
			t.Errorf("created %v, again %v", first, resp.GetLedger())
		}
	}
}

// A release of a study that protects no test records does not say that it does; a front that was chosen by
// noisy values says so.
func TestWhatReleasesSay(t *testing.T) {
	f := servertest.Start(t)
	search := f.WithTrials("search", servertest.SearchSpec(10, 1), 3)
	f.RunAll(search, func(*dparetov1.Trial) float64 { return 0.5 })
	best, err := f.ReleaseBest(search)
	if err != nil || best.GetProtects() != "" || len(best.GetWarnings()) != 1 || f.Study(search).GetRevision() != 0 {
		t.Errorf("best %v, %v", best, err)
	}
	_, err = f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: search, Metric: "error", AtMost: map[string]float64{"epsilon": 1}})
	servertest.WantCode(t, err, codes.InvalidArgument, "without bounds")
	private := f.Create("private", servertest.PrivateSpec(4, 20))
	for range 4 {
		f.Tell(f.One(private, "w"), 0.5)
	}
	if resp := f.Ask(private, "w", 1); resp.GetEndReason() != dparetov1.EndReason_END_REASON_BUDGET_SPENT {
		t.Errorf("after max_trials: %v", resp)
	}
	front, err := f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: private})
	if err != nil || len(front.GetRelease().GetWarnings()) != 1 || front.GetRelease().GetWarnings()[0].GetCode() != "SELECTION_BIAS" {
		t.Errorf("front %v, %v", front, err)
	}
}

// The values of a study with private_mode are those of all its metrics.
func TestPrivateModeOfTwoMetrics(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.PrivateSpec(4, 20)
	second := proto.CloneOf(spec.GetMetrics()[1])
	second.Id = "error2"
	spec.Metrics = append(spec.Metrics, second)
	study := f.Study(f.Create("s", spec))
	if n := study.GetPublication().GetSpent().GetMaxValues(); n != 8 {
		t.Errorf("%d values", n)
	}
	study.Spec.Budget.MaxTrials = 5
	_, err := f.Update(study, "spec.budget")
	servertest.WantCode(t, err, codes.InvalidArgument, "must be at most 4")
}

// cornerSpec is a study with private_mode in which one of a million configurations costs far less than
// all others.
func cornerSpec(trainEpsilon float64) *dparetov1.StudySpec {
	spec := servertest.PrivateSpec(50, trainEpsilon)
	spec.Parameters = []*dparetov1.ParameterSpec{{
		Id: "n", Scale: dparetov1.Scale_SCALE_LINEAR,
		Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 1, Max: 1_000_000}},
	}}
	spec.GetMetrics()[0].GetComputed().GetPrivacy().GetGaussian().StandardDeviation = "n == 1000000 ? 32.0 : 1.0"
	return spec
}

// A budget that pays for no run but those of the cheapest configuration suffices for a study; one that
// does not pay for that, or not where a constraint forbids it, is refused.
func TestPrivateModeOfACorner(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", cornerSpec(0.5))
	if n := f.One(study, "w").GetParameters()["n"].GetIntValue(); n != 1_000_000 {
		t.Errorf("n = %d", n)
	}
	for name, refused := range map[string]bool{"n > 1": false, "n < 1000000": true} {
		spec := cornerSpec(0.5)
		spec.ParameterConstraints = []string{name}
		_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "other", Study: &dparetov1.Study{Spec: spec}, ValidateOnly: true})
		if refused {
			servertest.WantCode(t, err, codes.InvalidArgument, "private_mode.train_epsilon: must pay for one run")
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "other", Study: &dparetov1.Study{Spec: cornerSpec(0.001)}})
	servertest.WantCode(t, err, codes.InvalidArgument, "private_mode.train_epsilon")
}

// Trials that fail for good leave their values to others.
func TestPrivateModeFailuresReserveNothing(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.PrivateSpec(3, 20))
	failed := f.One(study, "w")
	_, err := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: failed.GetName(), LeaseToken: failed.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "broken"}},
	})
	require.NoError(t, err)
	if resp := f.Ask(study, "v", 2); len(resp.GetTrials()) != 2 {
		t.Errorf("%d trials: %v", len(resp.GetTrials()), resp)
	}
}

// Values on the way leave room for the final ones of max_trials trials, and not for those that it is
// raised by later.
func TestPrivateModeOfRaisedTrials(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.WithCheckpoints(servertest.PrivateSpec(2, 20), 6))
	first := f.One(study, "w")
	if kept := f.Checkpoints(first); kept != 2 {
		t.Errorf("%d values on the way, want half of 4", kept)
	}
	f.Tell(first, 0.5)
	changed := f.Study(study)
	changed.Spec.Budget.MaxTrials = 6
	require.NoError(t, require.ErrOf(f.Update(changed, "spec.budget")))
	second, third, fourth := f.One(study, "v"), f.One(study, "w"), f.One(study, "x")
	if resp := f.Ask(study, "u", 1); len(resp.GetTrials()) != 0 {
		t.Errorf("beside three open trials: %v", resp)
	}
	f.Tell(second, 0.5)
	f.Tell(third, 0.5)
	f.Tell(fourth, 0.5)
	resp := f.Ask(study, "w", 1)
	if len(resp.GetTrials()) != 0 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_PRIVACY_BUDGET_SPENT {
		t.Errorf("after 6 values: %v", resp)
	}
	if reason := f.Study(study).GetStateReason(); reason != "the privacy budget of the test records is spent" {
		t.Errorf("because %q", reason)
	}
	posterior := f.Front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	released, err := f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study})
	if err != nil || len(released.GetRelease().GetPoints()) != len(posterior.GetPoints()) {
		t.Fatalf("%v, %v; the front is %v", released, err, posterior)
	}
	for i, point := range released.GetRelease().GetPoints() {
		if got, want := point.GetValues()["error"], posterior.GetPoints()[i].GetValues()["error"].GetValue(); got != want {
			t.Errorf("point %d: %g, want %g", i, got, want)
		}
	}
}

func TestPrivateModeWithoutNoise(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.PrivateSpec(4, 1)
	spec.PrivateMode.TestEpsilon = 1e300
	_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "s", Study: &dparetov1.Study{Spec: spec}})
	servertest.WantCode(t, err, codes.InvalidArgument, "private_mode.test_epsilon")
}

// A study with random_stopping is complete when its last trial is, not while no trial happens to be open.
func TestRandomStoppingIsNotCompleteBetweenTrials(t *testing.T) {
	f := servertest.Start(t)
	study := f.WithTrials("search", servertest.SearchSpec(10, 1), 3)
	for n := range 3 {
		if _, err := f.ReleaseBest(study); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("after %d trials: %v", n, err)
		}
		f.Tell(f.One(study, "w"), 0.5)
	}
	if _, err := f.ReleaseBest(study); err != nil {
		t.Error(err)
	}
}

// A noisy score is the score with a little noise, where little is needed.
func TestNoisyScores(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.NoisySpec()
	spec.RandomStopping.TestSetSize, spec.Metrics[1].GetReported().SampleSize = 1_000_000, 1_000_000
	study := f.WithTrials("search", spec, 1)
	f.Tell(f.One(study, "w"), 0.25)
	release, err := f.ReleaseBest(study)
	require.NoError(t, err)
	point := release.GetPoints()[0]
	sigma := point.GetStandardDeviations()["error"]
	if off := math.Abs(point.GetValues()["error"] - 0.25); !(off > 0 && off < 10*sigma && sigma < 0.01) {
		t.Errorf("released %v", point)
	}
}

// A release warns of a δ at which publishing a record would be allowed, and takes a metric that does not
// say how many records it is measured on.
func TestReleaseOfLargeDelta(t *testing.T) {
	f := servertest.Start(t)
	ledger, err := f.Releases().CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: "l", Ledger: &dparetov1.Ledger{
		Records: servertest.TestRecords, Epsilon: 100, Delta: 0.1, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
	}})
	require.NoError(t, err)
	spec := servertest.FixedSpec(2, ledger.GetLedger().GetName())
	spec.Metrics[1].GetReported().SampleSize = 0
	study := f.Create("s", spec)
	for range 2 {
		f.Tell(f.One(study, "w"), 0.5)
	}
	for delta, warned := range map[float64]bool{1e-6: false, 0.5 / servertest.TestRecords: false, 1.5 / servertest.TestRecords: true} {
		front, err := f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: 1, Delta: delta})
		require.NoError(t, err)
		got := slices.ContainsFunc(front.GetRelease().GetWarnings(), func(w *dparetov1.Warning) bool { return w.GetCode() == "LARGE_DELTA" })
		if got != warned {
			t.Errorf("δ = %g: warned %v", delta, got)
		}
	}
}

// What workers say of a trial is dropped where test records are protected, and kept elsewhere.
func TestReasonsOfRandomStopping(t *testing.T) {
	f := servertest.Start(t)
	for id, spec := range map[string]*dparetov1.StudySpec{"noisy": servertest.NoisySpec(), "exact": servertest.SearchSpec(10, 1)} {
		study := f.WithTrials(id, spec, 1)
		f.RunAll(study, func(*dparetov1.Trial) float64 { return math.NaN() })
		_, trials := f.Exported(study)
		want := map[string]string{"noisy": "not kept: studies that keep noisy values keep no reasons", "exact": "diverged"}[id]
		if got := trials[0].GetTrial().GetStateReason(); got != want {
			t.Errorf("%s: reason %q, want %q", id, got, want)
		}
	}
}

func TestRandomStoppingRefusesScores(t *testing.T) {
	f := servertest.Start(t)
	study := f.WithTrials("search", servertest.SearchSpec(10, 1), 1)
	trial := f.One(study, "w")
	for _, m := range []*dparetov1.Measurement{{}, servertest.Measurement(0, math.NaN())} {
		_, err := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: m},
		})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", m, err)
		}
	}
	f.Tell(trial, 0.5)
}

// The order of metrics does not matter, and the objective has to be measured on the records of the
// ledger.
func TestMetricsOfReleases(t *testing.T) {
	f := servertest.Start(t)
	ledger := f.NewLedger("l", 10)
	wrong := servertest.FixedSpec(1, ledger)
	wrong.Metrics[1].GetReported().SampleSize = servertest.TestRecords - 1
	_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "wrong", Study: &dparetov1.Study{Spec: wrong}})
	servertest.WantCode(t, err, codes.FailedPrecondition, "sample_size is 999")
	spec := servertest.FixedSpec(1, ledger)
	other := proto.CloneOf(spec.GetMetrics()[1])
	other.Id, other.Role, other.GetReported().SampleSize = "other", dparetov1.MetricRole_METRIC_ROLE_TRACKED, 0
	other.Goal, other.Transform, other.ReferenceValue = 0, 0, nil
	spec.Metrics = []*dparetov1.MetricSpec{spec.GetMetrics()[1], spec.GetMetrics()[0], other}
	study := f.Create("s", spec)
	trial := f.One(study, "w")
	m := servertest.Measurement(0, 0.5)
	m.Metrics["other"] = &dparetov1.MetricValue{Value: new(0.1)}
	_, err = f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: m},
	})
	require.NoError(t, err)
	if _, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 1}); err != nil {
		t.Error(err)
	}
	for _, delta := range []float64{0, 1, -1e-9, math.NaN()} {
		_, err := f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: 1, Delta: delta})
		servertest.WantCode(t, err, codes.InvalidArgument, "delta: must be in (0, 1)")
	}
}

// A ledger whose charges exceed its budget is damaged: nobody is shown it, or spends from it.
func TestOverspentLedger(t *testing.T) {
	f, records := servertest.Start(t), servertest.NewMemory(t)
	f.Stop()
	f.Configure = func(o *server.Options) { o.Store = records }
	f.Serve()
	ledger := f.NewLedger("l", 1)
	study := f.Fixed(ledger, 0.4, 0.1)
	require.NoError(t, records.Update(t.Context(), store.In(store.LedgerScope("l")), func(tx *store.Tx) error {
		return tx.PutCharge("l", 1, &storev1.ChargeRecord{Charge: &dparetov1.Charge{
			Name: ledger + "/charges/1", Resource: "studies/none/releases/1",
			Guarantee: &dparetov1.PrivacyGuarantee{Epsilon: 2, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE},
		}})
	}))
	_, getErr := f.Releases().GetLedger(t.Context(), &dparetov1.GetLedgerRequest{Name: ledger})
	_, listErr := f.Releases().ListLedgers(t.Context(), &dparetov1.ListLedgersRequest{})
	_, bestErr := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 0.1})
	for i, err := range []error{getErr, listErr, bestErr} {
		if status.Code(err) != codes.Internal {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// A configuration whose ε cannot be computed is within no bound.
func TestReleaseWithoutEpsilon(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.GaussianSpec()
	spec.GetMetrics()[0].GetComputed().GetPrivacy().GetGaussian().StandardDeviation = "sigma < 5.0 ? -1.0 : sigma"
	spec.GetMetrics()[1].GetReported().SampleSize = servertest.TestRecords
	spec.Budget, spec.TestLedger = &dparetov1.Budget{MaxTrials: 8}, f.NewLedger("l", 1000)
	study := f.Create("s", spec)
	computable := 0
	for range 8 {
		if trial := f.Tell(f.One(study, "w"), 0.5); trial.GetComputedMetrics()["epsilon"].Value != nil {
			computable++
		}
	}
	if computable == 0 || computable == 8 {
		t.Fatalf("%d computable trials", computable)
	}
	best, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{
		Name: study, Metric: "error", Epsilon: 1, AtMost: map[string]float64{"epsilon": 1e6},
	})
	if want := fmt.Sprintf("permute-and-flip among %d configurations", computable); err != nil || best.GetRelease().GetMechanism() != want {
		t.Errorf("%v, %v; want %s", best.GetRelease().GetMechanism(), err, want)
	}
}
