package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

// leftover is less than any budget: what rounding leaves of one that is spent.
const leftover = 1e-12

// Ledgers returns a table of ledgers.
func Ledgers(ledgers []*dparetov1.Ledger) *output.Table {
	t := &output.Table{Columns: []string{"ledger", "records", epsilonColumn, deltaColumn, adjacencyColumn, "charges", "spent_epsilon", "spent_delta", "remaining_epsilon", createdColumn}}
	for _, l := range ledgers {
		left := l.GetRemainingEpsilon()
		if left < leftover {
			left = 0
		}
		t.Rows = append(t.Rows, []any{
			ID(l.GetName()), l.GetRecords(), l.GetEpsilon(), output.Delta(l.GetDelta()), show.AdjacencyText(enum.Underscored(l.GetAdjacency()), l.GetSpent().GetAssumptions()), l.GetCharges(),
			output.Bound(l.GetSpent().GetEpsilon()), output.Delta(l.GetSpent().GetDelta()), output.LowerBound(left), l.GetCreateTime().AsTime(),
		})
	}
	return t
}

// Charges returns a table of the charges of a ledger.
func Charges(charges []*dparetov1.Charge) *output.Table {
	t := &output.Table{Columns: []string{"charge", "resource", epsilonColumn, deltaColumn, adjacencyColumn, "reason", createdColumn}}
	for _, c := range charges {
		g := c.GetGuarantee()
		t.Rows = append(t.Rows, []any{
			ID(c.GetName()), c.GetResource(), output.Bound(g.GetEpsilon()), output.Delta(g.GetDelta()),
			show.AdjacencyText(enum.Underscored(g.GetAdjacency()), g.GetAssumptions()), c.GetReason(), c.GetCreateTime().AsTime(),
		})
	}
	return t
}

// Releases returns a table of releases.
func Releases(releases []*dparetov1.Release) *output.Table {
	t := &output.Table{Columns: []string{"release", epsilonColumn, deltaColumn, "ledger", "points", mechanismColumn, createdColumn}}
	for _, r := range releases {
		var epsilon, delta any
		if g := r.GetGuarantee(); g != nil {
			epsilon, delta = output.Bound(g.GetEpsilon()), output.Delta(g.GetDelta())
		}
		t.Rows = append(t.Rows, []any{
			r.GetName(), epsilon, delta, r.GetLedger(), int64(len(r.GetPoints())), r.GetMechanism(), r.GetCreateTime().AsTime(),
		})
	}
	return t
}

// Release returns a table of what was published: its points, or the index of a candidate.
func Release(r *dparetov1.Release) *output.Table {
	if r.Index != nil {
		return &output.Table{Columns: []string{"index"}, Rows: [][]any{{r.GetIndex()}}}
	}
	values, deviations, parameters := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for _, p := range r.GetPoints() {
		for id := range p.GetValues() {
			values[id] = true
		}
		for id := range p.GetStandardDeviations() {
			deviations[id] = true
		}
		for id := range p.GetParameters() {
			parameters[id] = true
		}
	}
	t := new(output.Table)
	for _, id := range slices.Sorted(maps.Keys(values)) {
		t.Columns = append(t.Columns, id)
		if deviations[id] {
			t.Columns = append(t.Columns, id+"_deviation")
		}
	}
	t.Columns = append(t.Columns, slices.Sorted(maps.Keys(parameters))...)
	if isCurve(r) {
		t.Columns = append(t.Columns, "run", "on_front")
	}
	for _, p := range r.GetPoints() {
		var row []any
		for _, id := range slices.Sorted(maps.Keys(values)) {
			value, isKnown := p.GetValues()[id]
			switch {
			case !isKnown:
				row = append(row, nil)
			case deviations[id]:
				row = append(row, value)
			default: // computed, and most often a bound
				row = append(row, output.Bound(value))
			}
			if deviations[id] {
				row = append(row, metricNumber(p.GetStandardDeviations(), id))
			}
		}
		for _, id := range slices.Sorted(maps.Keys(parameters)) {
			row = append(row, Value(p.GetParameters()[id]))
		}
		if isCurve(r) {
			row = append(row, int64(p.GetRun()), yesNo[p.GetOnFront()])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// ReleaseByRun returns the table of Release with one row for each run: points of a front that differ in the
// checkpoint parameter only are states of one. Cells of several points have the first and the last value. Curves,
// whose rows are marked, keep all their rows.
func ReleaseByRun(r *dparetov1.Release, spec *dparetov1.StudySpec) *output.Table {
	t, checkpoint := Release(r), spec.GetCheckpointParameter()
	if checkpoint == "" || isCurve(r) {
		return t
	}
	step := func(i int) int64 { return r.GetPoints()[i].GetParameters()[checkpoint].GetIntValue() }
	var order []string
	runs := make(map[string][]int) // points by the other parameters
	for i, p := range r.GetPoints() {
		var key []any
		for _, id := range slices.Sorted(maps.Keys(p.GetParameters())) {
			if id != checkpoint {
				key = append(key, id, Value(p.GetParameters()[id]))
			}
		}
		run := fmt.Sprintf("%q", key)
		if runs[run] == nil {
			order = append(order, run)
		}
		runs[run] = append(runs[run], i)
	}
	merged := &output.Table{Columns: t.Columns}
	for _, run := range order {
		points := runs[run]
		slices.SortStableFunc(points, func(a, b int) int { return cmp.Compare(step(a), step(b)) })
		first, last := t.Rows[points[0]], t.Rows[points[len(points)-1]]
		row := slices.Clone(first)
		for j := range row {
			if from, to := output.Cell(first[j]), output.Cell(last[j]); from != to {
				row[j] = from + " to " + to
			}
		}
		merged.Rows = append(merged.Rows, row)
	}
	return merged
}

// yesNo is a bool as a cell.
var yesNo = map[bool]string{true: "yes", false: "no"}

// isCurve reports whether the points of a release are states of runs.
func isCurve(r *dparetov1.Release) bool {
	return slices.ContainsFunc(r.GetPoints(), func(p *dparetov1.ReleasedPoint) bool { return p.GetRun() > 0 })
}

// ReleaseCSV returns a table of what was published for programs: every row has the guarantee
// of the release.
func ReleaseCSV(r *dparetov1.Release) *output.Table {
	t, g := Release(r), r.GetGuarantee()
	t.Columns = append(t.Columns, "release", "release_epsilon", "release_delta", adjacencyColumn, "protects")
	for i, row := range t.Rows {
		var epsilon, delta, adjacency any
		if g != nil {
			epsilon, delta, adjacency = g.GetEpsilon(), g.GetDelta(), enum.Underscored(g.GetAdjacency())
		}
		t.Rows[i] = append(row, r.GetName(), epsilon, delta, adjacency, r.GetProtects())
	}
	return t
}

// metricNumber returns a number of a map as a cell.
func metricNumber(numbers map[string]float64, id string) any {
	if x, ok := numbers[id]; ok {
		return x
	}
	return nil
}

// ReleaseHeading returns the lines above the table of a release: its guarantee and limits, and what
// the ε in the table means for points of a study with a spec; nil for other releases.
func ReleaseHeading(r *dparetov1.Release, spec *dparetov1.StudySpec) []string {
	lines := []string{
		fmt.Sprintf("%s: %s", r.GetName(), r.GetMechanism()),
	}
	if g := r.GetGuarantee(); g != nil {
		lines = append(lines, fmt.Sprintf("guarantee: %s, for %s", guaranteeText(g), r.GetProtects()))
	} else {
		lines = append(lines, "guarantee: none for the test records")
	}
	if r.GetLedger() != "" {
		lines = append(lines, "charged to "+r.GetLedger())
	}
	if claim := r.GetModelClaim(); claim != "" {
		lines = append(lines, "claim of a paper, "+claim)
	}
	if sigma := r.GetNoiseStandardDeviation(); sigma > 0 {
		lines = append(lines, "noise in the values: standard deviation "+show.Number(sigma))
	}
	trained := r.GetTrainingGuarantee()
	switch {
	case show.IsSeeded(slices.Concat(r.GetWarnings(), trained.GetWarnings())):
		lines = append(lines, "training records: all runs together have "+noEpsilon)
	case trained != nil:
		lines = append(lines, "training records: all runs together "+guaranteeText(trained))
	}
	if statement := show.PrivacyStatement(spec); statement != "" {
		lines = append(lines, statement)
	}
	for _, assumption := range show.JoinAssumptions(r.GetAssumptions(), trained.GetAssumptions()) {
		lines = append(lines, "provided that "+show.Assumption(assumption))
	}
	for _, text := range r.GetNotCovered() {
		lines = append(lines, "not covered: "+text)
	}
	for _, w := range slices.Concat(r.GetWarnings(), trained.GetWarnings()) {
		lines = append(lines, "note: "+w.GetMessage())
	}
	return lines
}

// guaranteeText returns a guarantee in one line.
func guaranteeText(g *dparetov1.PrivacyGuarantee) string {
	return fmt.Sprintf("ε at most %s, %s, %s", output.Cell(output.Bound(g.GetEpsilon())), show.DeltaText(g.GetDelta()),
		show.AdjacencyText(enum.Name(g.GetAdjacency())+" adjacency", g.GetAssumptions()))
}
