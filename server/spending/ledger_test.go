package spending_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// k runs of a Gaussian mechanism are one with 1/√k of the noise, and Gaussian mechanisms
// in general one with the root of the sum of the squares of μ. Ledgers only ever grow, and
// are never below their largest entry.
func TestLedgerOfGaussians(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("gaussian", servertest.GaussianSpec())
	if l := f.Ledger(study, 0); l.GetRuns() != 0 || l.GetComposed().GetEpsilon() != 0 || len(l.GetEntries()) != 0 {
		t.Errorf("of an empty study: %v", l)
	}
	add := func(x float64) {
		t.Helper()
		require.NoError(t, require.ErrOf(f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{
			Parent: study, Trial: &dparetov1.Trial{Parameters: servertest.Sigma(x), FinalMeasurement: servertest.Measurement(0, 0.5)},
		})))
	}
	check := func(l *dparetov1.GetPrivacyLedgerResponse, mu, delta float64) {
		t.Helper()
		g := l.GetFixedInAdvance()
		if got := servertest.GaussianDelta(mu, g.GetEpsilon()); math.Abs(got-delta) > 1e-6*delta || g.GetDelta() != delta ||
			g.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE {
			t.Errorf("%d runs: ε = %g has δ = %g, want %g", l.GetRuns(), g.GetEpsilon(), got, delta)
		}
	}
	for k := 1; k <= 9; k++ {
		add(10)
		l := f.Ledger(study, 0)
		check(l, math.Sqrt(float64(k))/10, 1e-5)
		// How many of them there are somebody may have decided by the results of earlier ones.
		if l.GetRuns() != int64(k) || l.GetMechanisms() != 1 || l.GetAdaptive() != (k > 1) ||
			(k > 1) != (l.GetComposed().GetEpsilon() > l.GetFixedInAdvance().GetEpsilon()) {
			t.Errorf("%v", l)
		}
	}
	check(f.Ledger(study, 1e-7), 0.3, 1e-7)

	squares, last := 9*0.01, f.Ledger(study, 0)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		x := 0.5 + 20*rng.Float64()
		squares += 1 / (x * x)
		add(x)
		l := f.Ledger(study, 0)
		check(l, math.Sqrt(squares), 1e-5)
		if !l.GetAdaptive() || l.GetComposed().GetAccountant() != dparetov1.Accountant_ACCOUNTANT_RDP_ODOMETER ||
			!(l.GetComposed().GetEpsilon() > l.GetFixedInAdvance().GetEpsilon() && l.GetComposed().GetEpsilon() < 1.5*l.GetFixedInAdvance().GetEpsilon()) {
			t.Errorf("adaptive: %v", l)
		}
		if l.GetFixedInAdvance().GetEpsilon() < last.GetFixedInAdvance().GetEpsilon() || l.GetComposed().GetEpsilon() < last.GetComposed().GetEpsilon() ||
			l.GetFixedInAdvance().GetEpsilon() < l.GetLargestEpsilon() || l.GetLargestEpsilon() < last.GetLargestEpsilon() {
			t.Errorf("%v\nafter %v", l, last)
		}
		if again := f.Ledger(study, 0); !proto.Equal(again, l) {
			t.Errorf("again %v\nafter %v", again, l)
		}
		last = l
	}
}

// Pure mechanisms add up, however they were chosen.
func TestLedgerOfPureMechanisms(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	f.ImportTrial(study, 15, 0.5, 0.6) // ε = 1, twice
	f.ImportTrial(study, 5, 0.4)       // ε = 3
	l := f.Ledger(study, 0)
	if got := l.GetComposed(); !l.GetAdaptive() || math.Abs(got.GetEpsilon()-5) > 1e-12 || got.GetDelta() != 0 ||
		math.Abs(l.GetFixedInAdvance().GetEpsilon()-5) > 1e-12 || math.Abs(l.GetLargestEpsilon()-3) > 1e-12 {
		t.Errorf("%v", l)
	}
	for range 30 {
		f.ImportTrial(study, 100, 0.4) // ε = 0.15
	}
	pure, approximate := f.Ledger(study, 0), f.Ledger(study, 1e-5)
	if got := pure.GetComposed().GetEpsilon(); math.Abs(got-9.5) > 1e-12 {
		t.Errorf("ε = %g, want 9.5", got)
	}
	if !(approximate.GetFixedInAdvance().GetEpsilon() < 9.5 && approximate.GetComposed().GetEpsilon() <= 9.5) {
		t.Errorf("with a δ: %v", approximate)
	}
	_, err := dparetov1.NewPrivacyServiceClient(f.Conn).GetPrivacyLedger(t.Context(), &dparetov1.GetPrivacyLedgerRequest{Name: study, Delta: 1})
	servertest.WantCode(t, err, codes.InvalidArgument, "delta")
	_, err = dparetov1.NewPrivacyServiceClient(f.Conn).GetPrivacyLedger(t.Context(), &dparetov1.GetPrivacyLedgerRequest{Name: study, Metric: "error"})
	servertest.WantCode(t, err, codes.InvalidArgument, "metric")
}

// Every attempt is charged, whatever became of it, deleted trials included.
func TestLedgerChargesEveryRun(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SGDSpec()
	spec.Replicates = 2
	spec.DisableEarlyStopping = true
	spec.Lease = &dparetov1.LeasePolicy{Duration: durationpb.New(time.Minute), MaxAttempts: 9}
	study := f.Create("sgd", spec)
	queue := func() *dparetov1.Trial {
		t.Helper()
		resp, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
			Parameters: map[string]*dparetov1.Value{
				"epochs":   {Kind: &dparetov1.Value_IntValue{IntValue: 10}},
				"lot_size": {Kind: &dparetov1.Value_IntValue{IntValue: 128}},
				"variance": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1}},
			},
		}})
		require.NoError(t, err)
		return resp.GetTrial()
	}
	want := make(map[dparetov1.LedgerOutcome][4]int64) // runs, deleted, shortened, unknown
	check := func(step string, charged int64, outcome dparetov1.LedgerOutcome, deleted, shortened int64) {
		t.Helper()
		w := want[outcome]
		w[0], w[1], w[2] = w[0]+charged, w[1]+deleted, w[2]+shortened
		want[outcome] = w
		l := f.Ledger(study, 0)
		var total int64
		for _, w := range want {
			total += w[0]
		}
		for _, e := range l.GetEntries() {
			if got := [4]int64{e.GetRuns(), e.GetDeletedRuns(), e.GetShortenedRuns(), e.GetUnknownRuns()}; got != want[e.GetOutcome()] {
				t.Errorf("%s: %s is %v, want %v", step, e.GetOutcome(), got, want[e.GetOutcome()])
			}
		}
		if l.GetRuns() != total {
			t.Errorf("%s: %d runs, want %d", step, l.GetRuns(), total)
		}
	}
	const (
		succeeded  = dparetov1.LedgerOutcome_LEDGER_OUTCOME_SUCCEEDED
		imported   = dparetov1.LedgerOutcome_LEDGER_OUTCOME_IMPORTED
		infeasible = dparetov1.LedgerOutcome_LEDGER_OUTCOME_INFEASIBLE
		failed     = dparetov1.LedgerOutcome_LEDGER_OUTCOME_FAILED
		abandoned  = dparetov1.LedgerOutcome_LEDGER_OUTCOME_ABANDONED
		active     = dparetov1.LedgerOutcome_LEDGER_OUTCOME_ACTIVE
	)
	queue()
	check("queued", 0, active, 0, 0)
	first := f.One(study, "a")
	check("active", 2, active, 0, 0)
	f.Clock.Advance(2 * time.Minute)
	second := f.One(study, "b")
	if second.GetName() != first.GetName() {
		t.Fatalf("trial %s, want %s again", second.GetName(), first.GetName())
	}
	check("handed out again", 2, abandoned, 0, 0)
	f.Tell(second, 0.5, 0.6)
	want[active] = [4]int64{}
	check("succeeded", 2, succeeded, 0, 0)

	queue()
	stopped := f.One(study, "a")
	for _, step := range []int64{1, 4} {
		require.NoError(t, require.ErrOf(f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
			Name: stopped.GetName(), LeaseToken: stopped.GetLease().GetToken(), Measurement: servertest.Measurement(step, 0.5, 0.6),
		})))
	}
	require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: stopped.GetName(), LeaseToken: stopped.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: servertest.Measurement(3, 0.5, 0.6)}, // the best
	})))
	check("ended early", 2, succeeded, 0, 2)
	require.NoError(t, require.ErrOf(f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: stopped.GetName()})))
	check("deleted", 0, succeeded, 2, 0)

	for _, outcome := range []struct {
		name  string
		req   *dparetov1.CompleteTrialRequest
		entry dparetov1.LedgerOutcome
	}{
		{"infeasible", &dparetov1.CompleteTrialRequest{Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "NaN"}}}, infeasible},
		{"failed", &dparetov1.CompleteTrialRequest{Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "disk"}}}, failed},
		{"failed for now", &dparetov1.CompleteTrialRequest{Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "disk", Retryable: true}}}, abandoned},
	} {
		queue()
		trial := f.One(study, "a")
		outcome.req.Name, outcome.req.LeaseToken = trial.GetName(), trial.GetLease().GetToken()
		require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), outcome.req)))
		check(outcome.name, 2, outcome.entry, 0, 0)
	}
	retried := f.One(study, "a") // the last
	if retried.GetAttempt() != 2 {
		t.Fatalf("attempt %d", retried.GetAttempt())
	}
	require.NoError(t, require.ErrOf(f.Studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: retried.GetName(), LeaseToken: retried.GetLease().GetToken()})))
	check("released", 2, abandoned, 0, 0)
	if _, err := f.Studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: retried.GetName(), LeaseToken: retried.GetLease().GetToken()}); err != nil {
		t.Errorf("released again: %v", err)
	}
	done := queue()
	done.Name, done.FinalMeasurement = "", servertest.Measurement(0, 0.5, 0.6, 0.7)
	require.NoError(t, require.ErrOf(f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
		Parameters: done.GetParameters(), FinalMeasurement: done.GetFinalMeasurement(),
	}})))
	check("imported", 3, imported, 0, 0)

	// Runs of 10 epochs and of 4, all others alike.
	l := f.Ledger(study, 0)
	if l.GetMechanisms() != 2 || !l.GetAdaptive() || l.GetLargestEpsilon() != first.GetComputedMetrics()["epsilon"].GetValue() {
		t.Errorf("%v", l)
	}
	before := l.GetComposed().GetEpsilon()
	f.Restart()
	if after := f.Ledger(study, 0); after.GetComposed().GetEpsilon() != before {
		t.Errorf("ε = %g after a restart, %g before", after.GetComposed().GetEpsilon(), before)
	}
}

// A worker that fell silent may have gone on: its run is charged to the end, also where an
// earlier attempt said that it had failed.
func TestLedgerOfSilentAttempts(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SGDSpec()
	spec.DisableEarlyStopping = true
	spec.Lease = &dparetov1.LeasePolicy{Duration: durationpb.New(time.Minute)}
	study := f.Create("sgd", spec)
	require.NoError(t, require.ErrOf(f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
		Parameters: map[string]*dparetov1.Value{
			"epochs":   {Kind: &dparetov1.Value_IntValue{IntValue: 10}},
			"lot_size": {Kind: &dparetov1.Value_IntValue{IntValue: 128}},
			"variance": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1}},
		},
	}})))
	failed := f.One(study, "a")
	failure := &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "disk", Retryable: true}}
	require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: failed.GetName(), LeaseToken: failed.GetLease().GetToken(), Outcome: failure,
	})))
	silent := f.One(study, "a")
	require.NoError(t, require.ErrOf(f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
		Name: silent.GetName(), LeaseToken: silent.GetLease().GetToken(), Measurement: servertest.Measurement(1, 0.5),
	})))
	require.NoError(t, require.ErrOf(f.Studies.StopTrial(t.Context(), &dparetov1.StopTrialRequest{Name: silent.GetName()})))
	f.Clock.Advance(2 * time.Minute)
	f.One(study, "b") // which settles the other
	if trial := f.Trial(silent.GetName()); silent.GetName() != failed.GetName() || trial.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
		t.Fatalf("after %v: %v", failed, trial)
	}
	for _, e := range f.Ledger(study, 0).GetEntries() {
		if e.GetShortenedRuns() != 0 {
			t.Errorf("runs are charged in part: %v", e)
		}
	}
}

// What cannot be computed is not taken for free.
func TestLedgerOfUnknownCosts(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.GaussianSpec()
	spec.Metrics[0].GetComputed().GetPrivacy().GetGaussian().StandardDeviation = "math.log(sigma - 1.0)" // NaN below 1
	study := f.Create("gaussian", spec)
	for _, x := range []float64{0.7, 50} {
		require.NoError(t, require.ErrOf(f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{
			Parent: study, Trial: &dparetov1.Trial{Parameters: servertest.Sigma(x), FinalMeasurement: servertest.Measurement(0, 0.5)},
		})))
	}
	l := f.Ledger(study, 0)
	if l.GetRuns() != 2 || l.GetUnknownRuns() != 1 || !math.IsInf(l.GetComposed().GetEpsilon(), 1) || math.IsInf(l.GetFixedInAdvance().GetEpsilon(), 0) ||
		l.GetWarnings()[0].GetCode() != "UNKNOWN_COST" {
		t.Errorf("%v", l)
	}
}

// A random search with a fixed budget looks at no result.
func TestLedgerOfRandomSearch(t *testing.T) {
	f := servertest.Start(t)
	fixed := servertest.GaussianSpec()
	fixed.Budget = &dparetov1.Budget{MaxTrials: 10}
	run := func(id string, spec *dparetov1.StudySpec) string {
		t.Helper()
		study := f.Create(id, spec)
		for range 3 {
			f.Tell(f.One(study, "w"), 0.5)
		}
		return study
	}
	study := run("gaussian", fixed)
	if l := f.Ledger(study, 0); l.GetAdaptive() || l.GetMechanisms() != 3 || l.GetComposed().GetEpsilon() != l.GetFixedInAdvance().GetEpsilon() {
		t.Errorf("%v", l)
	}
	f.AskFor(study, "w", &dparetov1.SuggestionCondition{AtMost: map[string]float64{"epsilon": 1}})
	if l := f.Ledger(study, 0); !l.GetAdaptive() {
		t.Errorf("a condition was somebody's choice: %v", l)
	}
	if l := f.Ledger(run("endless", servertest.GaussianSpec()), 0); !l.GetAdaptive() {
		t.Errorf("somebody decides when it is enough: %v", l)
	}
	spec := servertest.GaussianSpec()
	spec.Budget = fixed.GetBudget()
	spec.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_NSGA2
	if l := f.Ledger(run("evolved", spec), 0); !l.GetAdaptive() || !(l.GetComposed().GetEpsilon() > l.GetFixedInAdvance().GetEpsilon()) ||
		l.GetWarnings()[0].GetCode() != "EX_POST" {
		t.Errorf("%v", l)
	}
}

// Where all runs have the same mechanism their number can still follow from results:
// composition holds for a number that was fixed, the odometer for every one.
func TestLedgerOfOneMechanism(t *testing.T) {
	f := servertest.Start(t)
	create := func(id string, budget *dparetov1.Budget) string {
		t.Helper()
		spec := servertest.GaussianSpec()
		spec.Metrics[0].GetComputed().GetPrivacy().GetGaussian().StandardDeviation = "10.0" // sigma is a rate
		spec.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_NSGA2
		spec.Budget = budget
		return f.Create(id, spec)
	}
	check := func(study string, adaptive bool) {
		t.Helper()
		l := f.Ledger(study, 0)
		if l.GetMechanisms() != 1 || l.GetAdaptive() != adaptive || adaptive != (l.GetComposed().GetEpsilon() > l.GetFixedInAdvance().GetEpsilon()) {
			t.Errorf("%v", l)
		}
	}
	fixed := create("fixed", &dparetov1.Budget{MaxTrials: 10})
	stagnant := create("stagnant", &dparetov1.Budget{MaxTrials: 10, MaxStagnantTrials: 5})
	for range 3 {
		f.Tell(f.One(fixed, "w"), 0.5)
		f.Tell(f.One(stagnant, "w"), 0.5)
	}
	check(fixed, false)
	check(stagnant, true)

	retried := f.One(fixed, "w")
	require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: retried.GetName(), LeaseToken: retried.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "loss is NaN", Retryable: true}},
	})))
	check(fixed, true)
}

// A worker that lost its lease may have run on without being able to report it.
// Where its result arrives after all, nothing shows how far it went: it is charged as planned.
func TestLedgerOfLateResult(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SGDSpec()
	spec.DisableEarlyStopping = true
	spec.Lease = &dparetov1.LeasePolicy{Duration: durationpb.New(time.Minute), MaxAttempts: 9}
	study := f.Create("sgd", spec)
	require.NoError(t, require.ErrOf(f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
		Parameters: map[string]*dparetov1.Value{
			"epochs":   {Kind: &dparetov1.Value_IntValue{IntValue: 10}},
			"lot_size": {Kind: &dparetov1.Value_IntValue{IntValue: 128}},
			"variance": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1}},
		},
	}})))
	first := f.One(study, "a")
	require.NoError(t, require.ErrOf(f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
		Name: first.GetName(), LeaseToken: first.GetLease().GetToken(), Measurement: servertest.Measurement(9, 0.5),
	})))
	f.Clock.Advance(2 * time.Minute)
	if second := f.One(study, "b"); second.GetName() != first.GetName() {
		t.Fatalf("trial %s, want %s again", second.GetName(), first.GetName())
	}
	require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: first.GetName(), LeaseToken: first.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: servertest.Measurement(3, 0.4)}, // the best
	})))
	l := f.Ledger(study, 0)
	if l.GetRuns() != 2 || l.GetMechanisms() != 1 || l.GetLargestEpsilon() != first.GetComputedMetrics()["epsilon"].GetValue() {
		t.Errorf("9 epochs and up to 10 are charged as %v", l)
	}
	for _, e := range l.GetEntries() {
		if e.GetShortenedRuns() != 0 {
			t.Errorf("%v", e)
		}
	}
}
