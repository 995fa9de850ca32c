package view

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
)

func TestPublicationLines(t *testing.T) {
	guarantee := func(epsilon float64) *dparetov1.PrivacyGuarantee {
		return &dparetov1.PrivacyGuarantee{Epsilon: epsilon, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE}
	}
	got := publicationLines(&dparetov1.Publication{
		Test: guarantee(1), Train: guarantee(4), NoiseStandardDeviation: 0.00428,
		Spent: &dparetov1.PrivateModeOdometers{
			Values: 12, MaxValues: 64, Test: guarantee(0.40001), Train: guarantee(2.5), Order: 9, TrainBudget: 3, ShardCosts: []float64{0.5, 0.75}, TypicalCost: 0.1,
			Checkpoints: 2.25,
		},
		Assumptions: []*dparetov1.Assumption{{Text: "a holds", Premise: dparetov1.Premise_PREMISE_SCORES, CheckedBy: dparetov1.Checker_CHECKER_NOBODY}}, NotCovered: []string{"times"},
	})
	want := [][2]string{
		{"publishing", "all results together: ε at most 1.000, δ = 1e-5, replace-one adjacency, for the test records"},
		{"publishing", "all results together: ε at most 4.000, δ = 1e-5, replace-one adjacency, for the training records"},
		{"noise", "standard deviation 0.004280 in every measured value"},
		{"spent", "test records: 12 of 64 values, so far ε at most 0.4001, δ = 1e-5, replace-one adjacency"},
		{"left", "test records: about 2.2 measurements before the end of each run"},
		{"spent", "training records: 0.7500 of 3.000 Rényi divergence of order 9.000 on the shard of 2 that has spent most, so far ε at most 2.500, δ = 1e-5, replace-one adjacency"},
		{"left", "training records: about 47 more runs of a typical configuration"},
		{"provided that", "a holds (scores, checked by nobody)"},
		{"not covered", "times"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	slots := &dparetov1.SlotUse{Used: []int64{2, 1}, Slot: &dparetov1.Slot{Count: 3, Parameters: map[string]*dparetov1.Value{
		"sigma": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 4}}, "epochs": {Kind: &dparetov1.Value_IntValue{IntValue: 10}},
	}}}
	got = publicationLines(&dparetov1.Publication{Spent: &dparetov1.PrivateModeOdometers{
		Train: guarantee(2.5), TrainBudget: 3, ShardCosts: []float64{2, 1}, TypicalCost: 1, Slots: []*dparetov1.SlotUse{slots},
	}})
	for _, line := range [][2]string{
		{"spent", "training records: 2 of 3 slots on the shard of 2 that has spent most, so far ε at most 2.500, δ = 1e-5, replace-one adjacency"},
		{"left", "training records: 3 of 6 slots for epochs 10, sigma 4"},
	} {
		if !slices.Contains(got, line) {
			t.Errorf("%q is missing in %q", line, got)
		}
	}
	if got := publicationLines(nil); got != nil {
		t.Errorf("of nothing: %q", got)
	}
}

// A release says what it guarantees in words, and its bounds are rounded to the safe side.
func TestRelease(t *testing.T) {
	guarantee := &dparetov1.PrivacyGuarantee{Epsilon: 0.10001, Delta: 1e-7, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE}
	r := &dparetov1.Release{
		Name: "studies/s/releases/1", Mechanism: "noise", Guarantee: guarantee, Protects: "the 50 test records", Ledger: "ledgers/l",
		Points: []*dparetov1.ReleasedPoint{{
			Values: map[string]float64{"epsilon": 0.23131, "error": 0.23131}, StandardDeviations: map[string]float64{"error": 0.01},
			Parameters: map[string]*dparetov1.Value{"epochs": {Kind: &dparetov1.Value_IntValue{IntValue: 3}}},
		}},
	}
	want := []string{
		"studies/s/releases/1: noise",
		"guarantee: ε at most 0.1001, δ = 1e-7, replace-one adjacency, for the 50 test records",
		"charged to ledgers/l",
	}
	if diff := cmp.Diff(want, ReleaseHeading(r, nil)); diff != "" {
		t.Errorf("heading (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&output.Table{
		Columns: []string{"epsilon", "error", "error_deviation", "epochs"},
		Rows:    [][]any{{output.Bound(0.23131), 0.23131, 0.01, int64(3)}},
	}, Release(r)); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	r.TrainingGuarantee = &dparetov1.PrivacyGuarantee{Epsilon: 2, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, Assumptions: []*dparetov1.Assumption{{Text: "n is public"}}}
	if diff := cmp.Diff(append(want, "training records: all runs together ε at most 2.000, δ = 1e-5, add-remove adjacency", "provided that n is public"), ReleaseHeading(r, nil)); diff != "" {
		t.Errorf("heading with training records (-want +got):\n%s", diff)
	}
	// For programs every row stands for itself.
	if diff := cmp.Diff(&output.Table{
		Columns: []string{"epsilon", "error", "error_deviation", "epochs", "release", "release_epsilon", "release_delta", "adjacency", "protects"},
		Rows:    [][]any{{output.Bound(0.23131), 0.23131, 0.01, int64(3), "studies/s/releases/1", 0.10001, 1e-7, "replace_one", "the 50 test records"}},
	}, ReleaseCSV(r)); diff != "" {
		t.Errorf("rows for programs (-want +got):\n%s", diff)
	}
	ledgers := Ledgers([]*dparetov1.Ledger{{Name: "ledgers/l", RemainingEpsilon: 0.89999999}})
	if left := output.Cell(ledgers.Rows[0][8]); left != "0.8999" {
		t.Errorf("what is left is printed as %s", left)
	}
}

// People see one row for each run of a front, whose cells go from its first state to its last.
func TestReleaseByRun(t *testing.T) {
	point := func(epochs int64, rate, epsilon, failure float64) *dparetov1.ReleasedPoint {
		return &dparetov1.ReleasedPoint{
			Values: map[string]float64{"epsilon": epsilon, "error": failure}, StandardDeviations: map[string]float64{"error": 0.01},
			Parameters: map[string]*dparetov1.Value{
				"epochs": {Kind: &dparetov1.Value_IntValue{IntValue: epochs}}, "rate": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: rate}},
			},
		}
	}
	r := &dparetov1.Release{Points: []*dparetov1.ReleasedPoint{point(3, 0.1, 0.5, 0.2), point(1, 0.1, 0.25, 0.3), point(2, 0.2, 1, 0.1), point(2, 0.1, 0.375, 0.25)}}
	spec := &dparetov1.StudySpec{CheckpointParameter: "epochs"}
	if diff := cmp.Diff(&output.Table{
		Columns: []string{"epsilon", "error", "error_deviation", "epochs", "rate"},
		Rows: [][]any{
			{"0.2500 to 0.5000", "0.3000 to 0.2000", 0.01, "1 to 3", 0.1},
			{output.Bound(1), 0.1, 0.01, int64(2), 0.2},
		},
	}, ReleaseByRun(r, spec)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Release(r), ReleaseByRun(r, new(dparetov1.StudySpec))); diff != "" {
		t.Errorf("without a checkpoint parameter (-want +got):\n%s", diff)
	}
}

// The table of a released curve says which points are on its front, and which run they are states of.
func TestReleasedCurve(t *testing.T) {
	point := func(run int32, epsilon, failure float64, epochs int64, front bool) *dparetov1.ReleasedPoint {
		return &dparetov1.ReleasedPoint{
			Values:     map[string]float64{"epsilon": epsilon, "error": failure},
			Parameters: map[string]*dparetov1.Value{"epochs": {Kind: &dparetov1.Value_IntValue{IntValue: epochs}}}, Run: run, OnFront: front,
		}
	}
	r := &dparetov1.Release{Points: []*dparetov1.ReleasedPoint{point(1, 0.25, 0.3, 1, true), point(2, 0.5, 0.4, 2, false)}}
	if diff := cmp.Diff(&output.Table{
		Columns: []string{"epsilon", "error", "epochs", "run", "on_front"},
		Rows: [][]any{
			{output.Bound(0.25), output.Bound(0.3), int64(1), int64(1), "yes"},
			{output.Bound(0.5), output.Bound(0.4), int64(2), int64(2), "no"},
		},
	}, Release(r)); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

// What has no guarantee is not said to have ε = 0.
func TestReleaseWithoutGuarantee(t *testing.T) {
	r := &dparetov1.Release{Name: "studies/s/releases/1", Mechanism: "the best"}
	want := []string{"studies/s/releases/1: the best", "guarantee: none for the test records"}
	if diff := cmp.Diff(want, ReleaseHeading(r, nil)); diff != "" {
		t.Errorf("heading (-want +got):\n%s", diff)
	}
	if row := Releases([]*dparetov1.Release{r}).Rows[0]; row[1] != nil || row[2] != nil {
		t.Errorf("listed as %v", row)
	}
}

// A study that names a ledger for releases says that, and when, its design was changed.
func TestStudyShowsDesignChange(t *testing.T) {
	s := Study(&dparetov1.Study{Spec: &dparetov1.StudySpec{TestLedger: "ledgers/l"}, DesignChange: &dparetov1.DesignChange{
		Fields: []string{"budget.max_trials"}, Time: timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
	}})
	want := []any{"design changed", "budget.max_trials, 2026-01-02 03:04, after the first trial"}
	if !slices.ContainsFunc(s.Rows, func(row []any) bool { return slices.Equal(row, want) }) {
		t.Errorf("%v is not shown: %v", want, s.Rows)
	}
}

// Who looks at a study sees what its results are charged to.
func TestStudyShowsLedgers(t *testing.T) {
	s := Study(&dparetov1.Study{Spec: &dparetov1.StudySpec{TestLedger: "ledgers/test", TrainLedger: "ledgers/train"}})
	want := map[any]any{"test ledger": "test", "train ledger": "train"}
	for _, row := range s.Rows {
		if value, ok := want[row[0]]; ok && value == row[1] {
			delete(want, row[0])
		}
	}
	if len(want) > 0 {
		t.Errorf("not shown: %v", want)
	}
}

// No ε holds for seeded runs: none is printed, of the runs as they came or fixed in advance.
func TestSeeded(t *testing.T) {
	seeded := []*dparetov1.Warning{{Code: "SEEDED", Message: "the runs of 3 trials were seeded"}}
	infinite := &dparetov1.PrivacyGuarantee{Epsilon: math.Inf(1), Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE}
	ledger := &dparetov1.GetPrivacyLedgerResponse{Runs: 3, Mechanisms: 2, Metric: "epsilon", Adaptive: true, Composed: infinite,
		FixedInAdvance: &dparetov1.PrivacyGuarantee{Epsilon: 27.58}, Warnings: seeded}
	want := []string{"3 runs of 2 different mechanisms together: no ε, since trials were seeded", "note: the runs of 3 trials were seeded"}
	if diff := cmp.Diff(want, LedgerHeading(ledger)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	infinite.Warnings = seeded
	want = []string{"s: best", "guarantee: none for the test records", "training records: all runs together have no ε, since trials were seeded", "note: the runs of 3 trials were seeded"}
	if diff := cmp.Diff(want, ReleaseHeading(&dparetov1.Release{Name: "s", Mechanism: "best", TrainingGuarantee: infinite}, nil)); diff != "" {
		t.Errorf("release (-want +got):\n%s", diff)
	}
}

// Every ε stands beside its δ and its adjacency in full, and what rounding leaves is not shown.
func TestLedgerTables(t *testing.T) {
	spent := &dparetov1.PrivacyGuarantee{
		Epsilon: 2, Delta: 1.0000000000000002e-6, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, Assumptions: []*dparetov1.Assumption{{Text: privacy.PublicSizeAssumption.Text}},
	}
	const adjacency = "add_remove with a public number of records (zero-out)"
	cells := func(table *output.Table, first, end int) (cells []string) {
		for _, cell := range table.Rows[0][first:end] {
			cells = append(cells, output.Cell(cell))
		}
		return cells
	}
	ledgers := Ledgers([]*dparetov1.Ledger{{
		Name: "ledgers/l", Epsilon: 2, Delta: 1.23456e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, Spent: spent, RemainingEpsilon: 2.2e-16,
	}})
	if diff := cmp.Diff([]string{"2.000", "1.24e-5", adjacency, "0", "2.000", "1e-6", "0"}, cells(ledgers, 2, 9)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"2.000", "1e-6", adjacency}, cells(Charges([]*dparetov1.Charge{{Guarantee: spent}}), 2, 5)); diff != "" {
		t.Errorf("charge (-want +got):\n%s", diff)
	}
}
