package release_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/audit"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/store"
)

// errorOf returns which of the errors of the study of fixed the released configuration has.
func errorOf(f *servertest.Fixture, study string, point *dparetov1.ReleasedPoint) float64 {
	f.T.Helper()
	resp, err := f.Studies.ListTrials(f.T.Context(), &dparetov1.ListTrialsRequest{Parent: study})
	require.NoError(f.T, err)
	for _, trial := range resp.GetTrials() {
		if cmp.Equal(trial.GetParameters(), point.GetParameters(), protocmp.Transform()) {
			return trial.GetFinalMeasurement().GetMetrics()["error"].GetValue()
		}
	}
	f.T.Fatalf("%v is of no trial", point)
	return 0
}

func TestLedgers(t *testing.T) {
	f := servertest.Start(t)
	declared := &dparetov1.Ledger{Description: "people", Records: 10, Epsilon: 1, Delta: 1e-3, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE}
	create := func(id string, l *dparetov1.Ledger) (*dparetov1.Ledger, error) {
		resp, err := f.Releases().CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: l})
		return resp.GetLedger(), err
	}
	first, err := create("b", declared)
	require.NoError(t, err)
	if first.GetName() != "ledgers/b" || first.GetUid() == "" || first.GetCharges() != 0 || first.GetSpent().GetEpsilon() != 0 || first.GetCreateTime() == nil {
		t.Errorf("ledger %v", first)
	}
	if e := first.GetRemainingEpsilon(); !(e > 0.999999 && e <= 1) {
		t.Errorf("%g remains of a budget of 1", e)
	}
	again, err := create("b", declared)
	if diff := cmp.Diff(first, again, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("again: %s, %v", diff, err)
	}
	_, err = create("b", &dparetov1.Ledger{Description: "people", Records: 11, Epsilon: 2, Delta: 1e-3, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE})
	servertest.WantCode(t, err, codes.AlreadyExists, "epsilon is 1, not 2; records is 10, not 11")
	_, err = create("B", &dparetov1.Ledger{Name: "ledgers/c", Description: strings.Repeat("x", 10_001), Epsilon: math.Inf(1), Delta: 1})
	want := []string{"ledger.adjacency", "ledger.delta", "ledger.description", "ledger.epsilon", "ledger.name", "ledger.records", "ledger_id"}
	if diff := cmp.Diff(want, servertest.Violated(err)); diff != "" {
		t.Errorf("violated (-want +got):\n%s", diff)
	}
	for _, id := range []string{"a", "c"} {
		require.NoError(t, require.ErrOf(create(id, declared)))
	}
	f.Restart()
	var names []string
	for token := ""; ; {
		resp, err := f.Releases().ListLedgers(t.Context(), &dparetov1.ListLedgersRequest{PageSize: 2, PageToken: token})
		require.NoError(t, err)
		for _, l := range resp.GetLedgers() {
			names = append(names, l.GetName())
		}
		if token = resp.GetNextPageToken(); token == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"ledgers/a", "ledgers/b", "ledgers/c"}, names); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	_, err = f.Releases().GetLedger(t.Context(), &dparetov1.GetLedgerRequest{Name: "ledgers/none"})
	servertest.WantCode(t, err, codes.NotFound, "ledgers/none")
	_, err = f.Releases().ListCharges(t.Context(), &dparetov1.ListChargesRequest{Parent: "ledgers/none"})
	servertest.WantCode(t, err, codes.NotFound, "ledgers/none")
}

// The filter of a ledger admits what the declared budget allows and no more, by the formula
// of Whitehouse, Ramdas, Rogers and Wu (2023, Theorem 1 for filters) computed here from the
// charges, and what is said to remain does fit.
func TestLedgerBudget(t *testing.T) {
	f := servertest.Start(t)
	const epsilon, each = 1.0, 0.02
	ledger := f.NewLedger("l", epsilon)
	spend := func(e float64) error {
		_, err := f.Releases().SelectPrivately(t.Context(), &dparetov1.SelectPrivatelyRequest{
			Utilities: []float64{1, 2}, Sensitivity: 1, Epsilon: e, Ledger: ledger,
		})
		return err
	}
	slack := 1e-5 / 2
	composed := func(n float64) float64 {
		squares := n * each * each
		return min(n*each, math.Sqrt(2*math.Log(1/slack)*squares)+squares/2)
	}
	n := 0.0
	for ; composed(n+1) <= epsilon; n++ {
		if err := spend(each); err != nil {
			t.Fatalf("after %g charges: %v", n, err)
		}
	}
	if n*each <= epsilon {
		t.Fatalf("%g charges add up to no more than the budget: the test shows little", n)
	}
	err := spend(each)
	servertest.WantCode(t, err, codes.ResourceExhausted, "ε = 0.02 with δ = 0 exceeds the remaining budget of ledgers/l")
	l := f.GetLedger(ledger)
	if got := l.GetSpent().GetEpsilon(); math.Abs(got-composed(n)) > 1e-12 || l.GetCharges() != int64(n) || l.GetSpent().GetDelta() != slack {
		t.Errorf("spent %v after %d charges, want %g", l.GetSpent(), l.GetCharges(), composed(n))
	}
	remaining := l.GetRemainingEpsilon()
	if err := spend(remaining * (1 + 1e-9)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("more than remains: %v", err)
	}
	if err := spend(remaining); err != nil {
		t.Errorf("what remains: %v", err)
	}
	if l := f.GetLedger(ledger); l.GetRemainingEpsilon() > 1e-7 || l.GetSpent().GetEpsilon() > epsilon {
		t.Errorf("%g remains, %v is spent", l.GetRemainingEpsilon(), l.GetSpent())
	}
}

func TestReleaseBest(t *testing.T) {
	f := servertest.Start(t)
	ledger := f.NewLedger("l", 200)
	study := f.Fixed(ledger, 0.4, 0.1, 0.3)
	req := &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 100, RequestId: "one"}
	release := func(req *dparetov1.ReleaseBestRequest) *dparetov1.Release {
		t.Helper()
		resp, err := f.Releases().ReleaseBest(t.Context(), req)
		require.NoError(t, err)
		return resp.GetRelease()
	}
	first := release(req) // ε·m is so large that nothing but the best has a chance
	if e := errorOf(f, study, first.GetPoints()[0]); e != 0.1 {
		t.Errorf("the configuration with the error %g was released", e)
	}
	point := first.GetPoints()[0]
	if _, ok := point.GetValues()["error"]; ok || math.IsNaN(point.GetValues()["epsilon"]) || len(point.GetValues()) != 1 {
		t.Errorf("published values %v", point.GetValues())
	}
	g := first.GetGuarantee()
	if first.GetName() != "studies/s/releases/1" || first.GetLedger() != ledger || g.GetEpsilon() != 100 || g.GetDelta() != 0 ||
		g.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE || first.GetMechanism() != "permute-and-flip among 3 configurations" {
		t.Errorf("release %v", first)
	}
	if first.GetProtects() == "" || len(first.GetAssumptions()) == 0 || len(first.GetNotCovered()) == 0 {
		t.Errorf("labels are missing: %v", first)
	}
	composed := f.Ledger(study, 0).GetComposed().GetEpsilon()
	if got := first.GetTrainingGuarantee().GetEpsilon(); got != composed || !(got > 0) {
		t.Errorf("training guarantee %g, want %g", got, composed)
	}

	// A repetition costs nothing, also after a restart and much later; another body is refused.
	f.Clock.Advance(100 * 24 * 3600 * 1e9)
	f.Restart()
	if diff := cmp.Diff(first, release(req), protocmp.Transform()); diff != "" {
		t.Errorf("repeated (-first +second):\n%s", diff)
	}
	other := &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 10, RequestId: "one"}
	_, err := f.Releases().ReleaseBest(t.Context(), other)
	servertest.WantCode(t, err, codes.InvalidArgument, "was already used for a different dpareto.v1.ReleaseBestRequest")
	_, err = f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: 1, Delta: 1e-6, RequestId: "one"})
	servertest.WantCode(t, err, codes.InvalidArgument, "was already used for a dpareto.v1.ReleaseBestRequest")
	charges := f.Charges(ledger)
	if len(charges) != 1 || charges[0].GetResource() != first.GetName() || charges[0].GetGuarantee().GetEpsilon() != 100 || charges[0].GetName() != "ledgers/l/charges/1" {
		t.Errorf("charges %v", charges)
	}

	// Without an id every call is another release.
	req.RequestId = ""
	second := release(req)
	if second.GetName() != "studies/s/releases/2" || len(f.Charges(ledger)) != 2 {
		t.Errorf("second release %v", second)
	}
	_, err = f.Releases().ReleaseBest(t.Context(), req)
	servertest.WantCode(t, err, codes.ResourceExhausted, "δ up to 5e-06 (declared: ε = 200 and δ = 1e-05")

	// Bounds on computed metrics hold; where nothing is within them the release is free.
	lowest := math.Inf(1)
	for _, trial := range f.AllTrials(study) {
		lowest = math.Min(lowest, trial.GetComputedMetrics()["epsilon"].GetValue())
	}
	nothing := release(&dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 1, AtMost: map[string]float64{"epsilon": lowest / 2}})
	if len(nothing.GetPoints()) != 0 || nothing.GetLedger() != "" || nothing.GetGuarantee().GetEpsilon() != 0 || nothing.GetWarnings()[0].GetCode() != "NOTHING_WITHIN_BOUNDS" {
		t.Errorf("within no bounds: %v", nothing)
	}
	resp, err := f.Releases().ListReleases(t.Context(), &dparetov1.ListReleasesRequest{Parent: study})
	if diff := cmp.Diff([]*dparetov1.Release{first, second, nothing}, resp.GetReleases(), protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("list: %s, %v", diff, err)
	}
	got, err := f.Releases().GetRelease(t.Context(), &dparetov1.GetReleaseRequest{Name: second.GetName()})
	if diff := cmp.Diff(second, got.GetRelease(), protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("get: %s, %v", diff, err)
	}
	_, err = f.Releases().GetRelease(t.Context(), &dparetov1.GetReleaseRequest{Name: study + "/releases/9"})
	servertest.WantCode(t, err, codes.NotFound, "studies/s/releases/9")

	// The charges outlive the study; the releases and the ids of their requests do not.
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	if len(f.Charges(ledger)) != 2 {
		t.Error("charges were deleted with the study")
	}
	_, err = f.Releases().GetRelease(t.Context(), &dparetov1.GetReleaseRequest{Name: second.GetName()})
	servertest.WantCode(t, err, codes.NotFound, study)
	f.Fixed(ledger, 0.4, 0.1, 0.3)
	req.RequestId = "one"
	_, err = f.Releases().ReleaseBest(t.Context(), req)
	servertest.WantCode(t, err, codes.ResourceExhausted, "ledgers/l")
}

// Where results may have decided the candidates nothing is released, nor charged.
func TestReleaseRefused(t *testing.T) {
	f := servertest.Start(t)
	ledger := f.NewLedger("l", 1)
	refused := func(study, why string) {
		t.Helper()
		_, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 0.1})
		servertest.WantCode(t, err, codes.FailedPrecondition, why)
		_, err = f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: 0.1, Delta: 1e-6})
		servertest.WantCode(t, err, codes.FailedPrecondition, why)
	}
	with := func(id string, change func(*dparetov1.StudySpec), trials int) string {
		spec := servertest.FixedSpec(3, ledger)
		change(spec)
		study := f.Create(id, spec)
		for range trials {
			f.Tell(f.One(study, "w"), 0.25)
		}
		return study
	}
	nothing := func(*dparetov1.StudySpec) {}

	model := with("model", func(s *dparetov1.StudySpec) { s.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_DEFAULT }, 3)
	refused(model, "ALGORITHM_DEFAULT chooses configurations by earlier results (RANDOM, QUASI_RANDOM and GRID do not), so no choice among its trials has a guarantee")
	refused(with("endless", func(s *dparetov1.StudySpec) { s.Budget = nil }, 3), "was not fixed by budget.max_trials")
	refused(with("stagnant", func(s *dparetov1.StudySpec) { s.Budget.MaxStagnantTrials = 2 }, 3), "was not fixed by budget.max_trials")
	refused(with("early", nothing, 2), "studies/early is not complete (0 open trials, and more to come)")

	// Time decides how many trials there are: somebody who has seen results can let it pass.
	late := with("late", func(s *dparetov1.StudySpec) { s.Budget.MaxDuration = durationpb.New(time.Hour) }, 2)
	f.Clock.Advance(2 * time.Hour)
	refused(late, "studies/late is not complete (0 open trials")

	open := with("open", nothing, 2)
	f.One(open, "w")
	refused(open, "is not complete (1 open trials)")

	brought := with("brought", nothing, 2)
	trial, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: brought, Trial: &dparetov1.Trial{
		Parameters: f.AllTrials(brought)[0].GetParameters(), FinalMeasurement: servertest.Measurement(0, 0.2),
	}})
	require.NoError(t, err)
	refused(brought, "a user chose or conditioned the configuration of trial "+strings.TrimPrefix(trial.GetTrial().GetName(), brought+"/trials/"))

	deleted := with("deleted", nothing, 3)
	require.NoError(t, require.ErrOf(f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: deleted + "/trials/2"})))
	refused(deleted, "trial 2 was deleted")

	again := with("again", nothing, 2)
	last := f.One(again, "w")
	require.NoError(t, require.ErrOf(f.Studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: last.GetName(), LeaseToken: last.GetLease().GetToken()})))
	f.Tell(f.One(again, "w"), 0.3)
	refused(again, "trial 3 was handed out more than once")

	sgd := servertest.SGDSpec()
	sgd.Budget, sgd.TestLedger = &dparetov1.Budget{MaxTrials: 1}, ledger
	sgd.Metrics[1].GetReported().SampleSize = servertest.TestRecords
	short := f.Create("short", sgd)
	long := f.One(short, "w")
	for long.GetParameters()["epochs"].GetIntValue() == 1 {
		t.Fatal("the design gave a trial of one epoch")
	}
	stopped := servertest.Completion(long, 0.2)
	stopped.GetMeasurement().Step = 1
	require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), stopped)))
	refused(short, "trial 1 ended before its planned length")

	// Somebody who sees values on the way may stop the run where they please.
	for i, reason := range []string{"", "good enough"} {
		halted := with(fmt.Sprintf("halted%d", i), nothing, 2)
		run := f.One(halted, "w")
		for step := range int64(3) {
			_, err := f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
				Name: run.GetName(), LeaseToken: run.GetLease().GetToken(), Measurement: servertest.Measurement(step, 0.2),
			})
			require.NoError(t, err)
		}
		require.NoError(t, require.ErrOf(f.Studies.StopTrial(t.Context(), &dparetov1.StopTrialRequest{Name: run.GetName(), Reason: reason})))
		end := servertest.Completion(run, 0.2)
		if i == 1 {
			end.Outcome = &dparetov1.CompleteTrialRequest_UseLastMeasurement{UseLastMeasurement: new(dparetov1.UseLastMeasurement)}
		}
		require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), end)))
		refused(halted, "trial 3 was stopped on request")
	}
	dropped := with("dropped", nothing, 2)
	waiting := f.One(dropped, "w")
	require.NoError(t, require.ErrOf(f.Studies.StopTrial(t.Context(), &dparetov1.StopTrialRequest{Name: waiting.GetName()})))
	failed := servertest.Completion(waiting)
	failed.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "stopped", Retryable: true}}
	require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), failed)))
	refused(dropped, "trial 3 was stopped on request")

	refused(with("ledgerless", func(s *dparetov1.StudySpec) { s.TestLedger = "" }, 3), "has no test_ledger to charge: create one with CreateLedger, and name it with UpdateStudy")

	// Of a study whose objectives are measured on different records the one is refused. Where
	// no objective is measured on those of the ledger, the study is.
	sizes := servertest.FixedSpec(1, "")
	sizes.Metrics[1].GetReported().SampleSize = 999
	second := proto.CloneOf(sizes.GetMetrics()[1])
	second.Id, second.GetReported().SampleSize = "second", servertest.TestRecords
	sizes.Metrics = append(sizes.Metrics, second)
	sizes.TestLedger = ledger
	both := servertest.Completion(f.One(f.Create("sizes", sizes), "w"), 0.25)
	both.GetMeasurement().Metrics["second"] = both.GetMeasurement().GetMetrics()["error"]
	require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), both)))
	refused("studies/sizes", "sample_size = 999 records, but ledgers/l has 1000")
	second.GetReported().SampleSize = 999
	_, err = f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "smaller", Study: &dparetov1.Study{Spec: sizes}})
	servertest.WantCode(t, err, codes.FailedPrecondition, "study.spec.test_ledger: ledgers/l has 1000 records, but study.spec.metrics[2].reported.sample_size is 999")

	for field, req := range map[string]*dparetov1.ReleaseBestRequest{
		"metric":                  {Metric: "epsilon", Epsilon: 1},
		"epsilon":                 {Metric: "error"},
		`at_most["error"]`:        {Metric: "error", Epsilon: 1, AtMost: map[string]float64{"error": 1}},
		`at_most["epsilon"]`:      {Metric: "error", Epsilon: 1, AtMost: map[string]float64{"epsilon": math.Inf(1)}},
		`at_most["epsilon"] is 0`: {Metric: "error", Epsilon: 1, AtMost: map[string]float64{"epsilon": 0}},
	} {
		field, _, _ = strings.Cut(field, " is ")
		req.Name = model
		_, err := f.Releases().ReleaseBest(t.Context(), req)
		if diff := cmp.Diff([]string{field}, servertest.Violated(err)); diff != "" {
			t.Errorf("%v: %v", req, err)
		}
	}
	if n := len(f.Charges(ledger)); n != 0 {
		t.Errorf("%d charges for nothing", n)
	}
	list, err := f.Releases().ListReleases(t.Context(), &dparetov1.ListReleasesRequest{Parent: model})
	if err != nil || len(list.GetReleases()) != 0 {
		t.Errorf("releases %v, %v", list, err)
	}
}

// Trials that did not succeed are no candidates, and a grid is complete when it is exhausted.
func TestReleaseOfGrid(t *testing.T) {
	f := servertest.Start(t)
	ledger := f.NewLedger("l", 1000)
	spec := servertest.FixedSpec(0, ledger)
	spec.Budget = nil
	spec.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_GRID
	spec.Parameters[0].GetIntegerDomain().Max = 2
	spec.Parameters[0].GridLevels, spec.Parameters[1].GridLevels = 2, 2
	study := f.Create("grid", spec)
	for _, e := range []float64{0.3, 0.2, 0.1} {
		f.Tell(f.One(study, "w"), e)
	}
	req := &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 100}
	_, err := f.Releases().ReleaseBest(t.Context(), req)
	servertest.WantCode(t, err, codes.FailedPrecondition, "is not complete")
	trial := f.One(study, "w")
	_, err = f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "no"}},
	})
	require.NoError(t, err)
	resp, err := f.Releases().ReleaseBest(t.Context(), req)
	require.NoError(t, err)
	r := resp.GetRelease()
	if r.GetMechanism() != "permute-and-flip among 3 configurations" || r.GetWarnings()[0].GetCode() != "UNSUCCESSFUL_TRIALS" || errorOf(f, study, r.GetPoints()[0]) != 0.1 {
		t.Errorf("release %v", r)
	}
}

// Every value of every state gets noise of the standard deviation √N/(mμ), where μ is that of
// Gaussian differential privacy (Dong, Roth and Su 2022), and the front is a model's.
func TestReleaseFront(t *testing.T) {
	f := servertest.Start(t)
	ledger := f.NewLedger("l", 10)
	errors := []float64{0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.3, 0.35, 0.4}
	study := f.Fixed(ledger, errors...)
	const epsilon, delta = 5, 1e-6
	resp, err := f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: epsilon, Delta: delta, RequestId: "front"})
	require.NoError(t, err)
	r := resp.GetRelease()
	// The account of so many Gaussian mechanisms, by another way than the calibration.
	g, err := privacy.Epsilon(privacy.Exact{}, privacy.Gaussian{Sensitivity: 1.0 / servertest.TestRecords, StandardDeviation: r.GetNoiseStandardDeviation(), Neighbours: privacy.ReplaceOne}, int64(len(errors)), delta)
	if err != nil || g.Epsilon > epsilon || g.Epsilon < epsilon*(1-1e-6) {
		t.Errorf("noise %g has ε = %v (%v), want %g", r.GetNoiseStandardDeviation(), g, err, float64(epsilon))
	}
	if len(r.GetPoints()) == 0 || r.GetGuarantee().GetDelta() != delta || r.GetGuarantee().GetEpsilon() != epsilon {
		t.Fatalf("release %v", r)
	}
	last := 0.0
	for _, p := range r.GetPoints() {
		truth := errorOf(f, study, p)
		value, deviation := p.GetValues()["error"], p.GetStandardDeviations()["error"]
		if value == truth || !(deviation > 0) || math.Abs(value-truth) > 0.2 {
			t.Errorf("%g with the standard deviation %g was published for %g", value, deviation, truth)
		}
		if e := p.GetValues()["epsilon"]; e <= last {
			t.Errorf("ε = %g after %g", e, last)
		} else {
			last = e
		}
	}
	if !slices.ContainsFunc(r.GetWarnings(), func(w *dparetov1.Warning) bool { return w.GetCode() == "SELECTION_BIAS" }) {
		t.Errorf("warnings %v", r.GetWarnings())
	}
	f.Restart()
	again, err := f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: epsilon, Delta: delta, RequestId: "front"})
	if diff := cmp.Diff(r, again.GetRelease(), protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("repeated: %s, %v", diff, err)
	}
	if c := f.Charges(ledger); len(c) != 1 || c[0].GetGuarantee().GetDelta() != delta {
		t.Errorf("charges %v", c)
	}
	_, err = f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: 0.1, Delta: 5e-6})
	servertest.WantCode(t, err, codes.ResourceExhausted, "δ up to 4e-06")
	_, err = f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: 0.1, Delta: 1})
	servertest.WantCode(t, err, codes.InvalidArgument, "delta")
	_, err = f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: 1, Delta: 1e-30})
	servertest.WantCode(t, err, codes.InvalidArgument, "delta: must exceed")
}

// Values of a front are errors that there can be, however large the noise is.
func TestReleasedFrontIsClipped(t *testing.T) {
	f := servertest.Start(t)
	study := f.Fixed(f.NewLedger("l", 1e6), 0.9, 0.02, 0.01, 0, 0.98, 1)
	for range 10 {
		resp, err := f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: 0.02, Delta: 1e-7})
		require.NoError(t, err)
		for _, p := range resp.GetRelease().GetPoints() {
			if v := p.GetValues()["error"]; !(v >= 0 && v <= 1) {
				t.Errorf("an error of %g is published", v)
			}
		}
	}
}

// With a checkpoint parameter every state that was measured is a candidate, and a value.
func TestReleaseOfStates(t *testing.T) {
	f := servertest.Start(t)
	ledger := f.NewLedger("l", 1000)
	spec := servertest.SGDSpec()
	spec.Budget, spec.TestLedger, spec.Metrics[1].GetReported().SampleSize = &dparetov1.Budget{MaxTrials: 2}, ledger, servertest.TestRecords
	spec.Parameters[0].GetIntegerDomain().Min = 4
	study := f.Create("s", spec)
	states := 0
	for range 2 {
		trial := f.One(study, "w")
		_, err := f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: servertest.Measurement(4, 0.4),
		})
		if trial.GetParameters()["epochs"].GetIntValue() > 4 {
			states++
			require.NoError(t, err)
		}
		f.Tell(trial, 0.3)
		states++
	}
	resp, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 100})
	require.NoError(t, err)
	if want := fmt.Sprintf("permute-and-flip among %d configurations", states); resp.GetRelease().GetMechanism() != want || states < 3 {
		t.Errorf("%s, want %s", resp.GetRelease().GetMechanism(), want)
	}
	front, err := f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: 1, Delta: 1e-6})
	if err != nil || front.GetRelease().GetGuarantee().GetSteps() != int64(states) {
		t.Errorf("front %v, %v", front, err)
	}
}

// The utilities of SelectPrivately, and digests of them, are neither on disk nor in logs.
func TestSelectPrivately(t *testing.T) {
	var logs, audited servertest.LockedBuffer
	f := servertest.StartWith(t, func(o *server.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Audit = audit.New(&audited, nil)
	})
	ledger := f.NewLedger("l", 200)
	utilities := []float64{0.123456789012345, 0.987654321098765, 0.5555555555555}
	req := &dparetov1.SelectPrivatelyRequest{Utilities: utilities, Sensitivity: 0.001, Epsilon: 50, Ledger: ledger, RequestId: "one"}
	first, err := f.Releases().SelectPrivately(t.Context(), req)
	require.NoError(t, err)
	if first.GetIndex() != 1 || first.GetRelease().Index == nil || first.GetRelease().GetIndex() != 1 || first.GetRelease().GetName() != "ledgers/l/releases/1" ||
		first.GetGuarantee().GetAdjacency() != dparetov1.Adjacency_ADJACENCY_REPLACE_ONE || first.GetGuarantee().GetEpsilon() != 50 {
		t.Errorf("selected %v", first)
	}
	f.Restart()
	req.Utilities = []float64{1, 0, 0} // not what a repetition is recognised by
	again, err := f.Releases().SelectPrivately(t.Context(), req)
	if diff := cmp.Diff(first, again, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("repeated: %s, %v", diff, err)
	}
	for _, method := range []dparetov1.SelectionMethod{dparetov1.SelectionMethod_SELECTION_METHOD_EXPONENTIAL, dparetov1.SelectionMethod_SELECTION_METHOD_REPORT_NOISY_MAX} {
		resp, err := f.Releases().SelectPrivately(t.Context(), &dparetov1.SelectPrivatelyRequest{Utilities: utilities, Sensitivity: 0.001, Epsilon: 50, Ledger: ledger, Method: method})
		if err != nil || resp.GetIndex() != 1 {
			t.Errorf("%v: %v, %v", method, resp, err)
		}
	}
	_, err = f.Releases().SelectPrivately(t.Context(), &dparetov1.SelectPrivatelyRequest{Utilities: utilities, Sensitivity: 0.001, Epsilon: 100, Ledger: ledger})
	servertest.WantCode(t, err, codes.ResourceExhausted, "ε up to 50")
	_, err = f.Releases().SelectPrivately(t.Context(), &dparetov1.SelectPrivatelyRequest{Utilities: append(slices.Clone(utilities), math.NaN()), Sensitivity: -1, Epsilon: math.Inf(1), Ledger: "l", Method: 99})
	if diff := cmp.Diff([]string{"epsilon", "ledger", "method", "sensitivity", "utilities[3]"}, servertest.Violated(err)); diff != "" {
		t.Errorf("violated (-want +got):\n%s", diff)
	}
	_, err = f.Releases().SelectPrivately(t.Context(), &dparetov1.SelectPrivatelyRequest{Utilities: utilities, Sensitivity: 1, Epsilon: 1, Ledger: "ledgers/none"})
	servertest.WantCode(t, err, codes.NotFound, "ledgers/none")
	_, err = f.Releases().SelectPrivately(t.Context(), &dparetov1.SelectPrivatelyRequest{
		Utilities: []float64{9.87654321e140, 0}, Sensitivity: 1, Epsilon: 1, Ledger: ledger, Method: dparetov1.SelectionMethod_SELECTION_METHOD_REPORT_NOISY_MAX,
	})
	servertest.WantCode(t, err, codes.InvalidArgument, "utilities[0]")
	if strings.Contains(err.Error()+logs.String(), "9.8765") {
		t.Errorf("an error tells a utility: %v", err)
	}

	disk, err := os.ReadFile(f.Path)
	require.NoError(t, err)
	for _, u := range utilities {
		encoded := binary.LittleEndian.AppendUint64(nil, math.Float64bits(u))
		text := fmt.Sprint(u)[:8]
		for name, content := range map[string][]byte{"the disk": disk, "the log": []byte(logs.String()), "the audit log": []byte(audited.String())} {
			if bytes.Contains(content, encoded) || bytes.Contains(content, []byte(text)) {
				t.Errorf("%s holds %g", name, u)
			}
		}
	}
	if !strings.Contains(audited.String(), "ledgers/l") {
		t.Error("the audit log does not name the ledger")
	}
}

// However many releases are asked for at once, the ledger is never charged beyond its budget,
// and every answer has its charge.
func TestReleasesAtOnce(t *testing.T) {
	f := servertest.Start(t)
	ledger := f.NewLedger("l", 1)
	study := f.Fixed(ledger, 0.4, 0.1, 0.3)
	const each, workers, calls = 0.05, 8, 6
	var mu sync.Mutex
	released := make(map[string]bool)
	exhausted := 0
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for c := range calls {
				var name string
				var err error
				if (w+c)%2 == 0 {
					resp, e := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: each})
					name, err = resp.GetRelease().GetName(), e
				} else {
					resp, e := f.Releases().SelectPrivately(t.Context(), &dparetov1.SelectPrivatelyRequest{Utilities: []float64{1}, Sensitivity: 1, Epsilon: each, Ledger: ledger})
					name, err = resp.GetRelease().GetName(), e
				}
				mu.Lock()
				switch status.Code(err) {
				case codes.OK:
					if released[name] {
						t.Errorf("%s was released twice", name)
					}
					released[name] = true
				case codes.ResourceExhausted:
					exhausted++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	sum := 0.0
	for _, c := range f.Charges(ledger) {
		sum += c.GetGuarantee().GetEpsilon()
		if !released[c.GetResource()] {
			t.Errorf("%s was charged and not released", c.GetResource())
		}
	}
	if len(f.Charges(ledger)) != len(released) || exhausted == 0 || f.GetLedger(ledger).GetSpent().GetEpsilon() > 1 || len(released) < 19 {
		t.Errorf("%d releases, %d charges of %g, %d refusals", len(released), len(f.Charges(ledger)), sum, exhausted)
	}
}

// The same id from many callers at once gives one release.
func TestOneReleaseOfManyRepetitions(t *testing.T) {
	f := servertest.Start(t)
	ledger := f.NewLedger("l", 1)
	study := f.Fixed(ledger, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4)
	const callers = 16
	releases := make([]*dparetov1.Release, callers)
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() {
			resp, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 0.5, RequestId: "same"})
			if err != nil {
				t.Error(err)
			}
			releases[i] = resp.GetRelease()
		})
	}
	running.Wait()
	for _, r := range releases[1:] {
		if diff := cmp.Diff(releases[0], r, protocmp.Transform()); diff != "" {
			t.Errorf("two releases:\n%s", diff)
		}
	}
	if n := len(f.Charges(ledger)); n != 1 {
		t.Errorf("%d charges", n)
	}
}

// A study of noisy values has its front and its best for nothing more.
func TestReleaseOfPrivateStudy(t *testing.T) {
	f := servertest.Start(t)
	study := f.Fixed("", 0.4, 0.3, 0.2, 0.3, 0.35)
	err := f.Records.Update(t.Context(), store.In(store.StudyScope("s")), func(tx *store.Tx) error {
		record, err := tx.Study("s")
		if err != nil {
			return err
		}
		record.Study.Spec.PrivateMode = &dparetov1.PrivateModeSpec{TestSetSize: servertest.TestRecords, TestEpsilon: 1, TrainEpsilon: 3, Delta: 1e-6, MaxValues: 5}
		servertest.WithLedgers(record.GetStudy().GetSpec())
		record.PrivateMode = &storev1.PrivateModeRecord{Order: 8, TrainBudget: 1, ShardCosts: []float64{0.5}, MaxValues: 5, Values: 5, NoiseStandardDeviation: 0.01}
		record.Study.Etag += "-00000000"
		return tx.PutStudy("s", record)
	})
	require.NoError(t, err)
	private, err := f.Studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: study})
	require.NoError(t, err)
	publication := private.GetStudy().GetPublication()
	_, err = f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 1})
	servertest.WantCode(t, err, codes.InvalidArgument, "epsilon: must be unset")
	_, err = f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Delta: 1e-6})
	servertest.WantCode(t, err, codes.InvalidArgument, "epsilon: must be unset")
	front, err := f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study})
	require.NoError(t, err)
	r := front.GetRelease()
	posterior := f.Front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	if len(r.GetPoints()) != len(posterior.GetPoints()) || len(r.GetPoints()) == 0 {
		t.Fatalf("%d points, want %d", len(r.GetPoints()), len(posterior.GetPoints()))
	}
	best := math.Inf(1)
	for i, p := range posterior.GetPoints() {
		v := p.GetValues()["error"]
		got := r.GetPoints()[i]
		deviation := (v.GetUpper() - v.GetLower()) / 2 / 1.6448536269514722
		if got.GetValues()["error"] != v.GetValue() || math.Abs(got.GetStandardDeviations()["error"]-deviation) > 1e-12 || got.GetValues()["epsilon"] != p.GetValues()["epsilon"].GetValue() {
			t.Errorf("point %v, want %v", got, p)
		}
		best = math.Min(best, v.GetValue())
	}
	if r.GetLedger() != "" || r.GetNoiseStandardDeviation() != 0.01 || !cmp.Equal(r.GetGuarantee(), publication.GetTest(), protocmp.Transform()) ||
		!cmp.Equal(r.GetTrainingGuarantee(), publication.GetTrain(), protocmp.Transform()) {
		t.Errorf("release %v", r)
	}
	one, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error"})
	if err != nil || one.GetRelease().GetPoints()[0].GetValues()["error"] != best {
		t.Errorf("best %v, %v; want %g", one, err, best)
	}
	bound := posterior.GetPoints()[0].GetValues()["epsilon"].GetValue()
	one, err = f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", AtMost: map[string]float64{"epsilon": bound}})
	if err != nil || one.GetRelease().GetPoints()[0].GetValues()["epsilon"] != bound {
		t.Errorf("best under a bound %v, %v", one, err)
	}
	one, err = f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", AtMost: map[string]float64{"epsilon": bound / 2}})
	if err != nil || len(one.GetRelease().GetPoints()) != 0 {
		t.Errorf("best under an impossible bound %v, %v", one, err)
	}
}

// A study that has no ledger can be given one, once, and none that is not of its data.
func TestNameALedger(t *testing.T) {
	f := servertest.Start(t)
	f.NewLedger("l", 1)
	f.NewLedger("m", 1)
	added := &dparetov1.Ledger{Records: 5, Epsilon: 1, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE}
	require.NoError(t, require.ErrOf(f.Releases().CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: "added", Ledger: added})))
	study := f.Fixed("", 0.4, 0.3)
	name := func(ledger string) error {
		req := &dparetov1.UpdateStudyRequest{Study: &dparetov1.Study{Name: study, Spec: servertest.FixedSpec(2, ledger)}}
		req.UpdateMask = &fieldmaskpb.FieldMask{Paths: []string{"spec.test_ledger"}}
		_, err := f.Studies.UpdateStudy(t.Context(), req)
		return err
	}
	servertest.WantCode(t, name("ledgers/none"), codes.FailedPrecondition, "study.spec.test_ledger: ledgers/none does not exist")
	servertest.WantCode(t, name("ledgers/added"), codes.FailedPrecondition, "is kept under ADJACENCY_ADD_REMOVE")
	servertest.WantCode(t, name("studies/s"), codes.InvalidArgument, "ledgers/{ledger}")
	require.NoError(t, name("ledgers/l"))
	servertest.WantCode(t, name("ledgers/m"), codes.InvalidArgument, "study.spec.test_ledger")
	if _, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 0.5}); err != nil {
		t.Error(err)
	}
	spec := servertest.FixedSpec(1, "")
	spec.TrainLedger = "ledgers/l"
	_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "train", Study: &dparetov1.Study{Spec: spec}})
	servertest.WantCode(t, err, codes.InvalidArgument, "study.spec.train_ledger")
	_, err = f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "none", Study: &dparetov1.Study{Spec: servertest.FixedSpec(1, "ledgers/none")}, ValidateOnly: true})
	servertest.WantCode(t, err, codes.FailedPrecondition, "study.spec.test_ledger")
}
