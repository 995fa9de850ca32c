package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/enum"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Recommendation returns a table of a recommended configuration, in one row; none where
// nothing is known yet.
func Recommendation(spec *dparetov1.StudySpec, r *dparetov1.QueryFrontResponse) *output.Table {
	t := &output.Table{Columns: []string{"reachable"}}
	row := []any{strconv.FormatBool(r.GetReachable())}
	add := func(column string, cell any) {
		t.Columns, row = append(t.Columns, column), append(row, cell)
	}
	for _, m := range spec.GetMetrics() {
		id := m.GetId()
		if p := r.GetPredictions()[id]; p != nil {
			add(id, p.GetMedian())
			add(id+"_lower", p.GetLower())
			add(id+"_upper", p.GetUpper())
			add(id+"_reached", r.GetReached()[id])
		}
		if v := r.GetComputedMetrics()[id]; v != nil {
			switch {
			case v.Value == nil:
				add(id, nil)
			case v.GetPrivacy() != nil:
				add(id, output.Bound(v.GetValue()))
			default:
				add(id, v.GetValue())
			}
		}
	}
	for _, p := range spec.GetParameters() {
		add(p.GetId(), Value(r.GetParameters()[p.GetId()]))
	}
	ids := make([]string, len(r.GetTrials()))
	for i, name := range r.GetTrials() {
		ids[i] = ID(name)
	}
	add("trials", strings.Join(ids, " "))
	add("runs", r.GetRuns())
	if len(r.GetParameters()) > 0 {
		t.Rows = append(t.Rows, row)
	}
	return t
}

// RecommendationHeading returns the lines above the table of a recommendation.
func RecommendationHeading(study *dparetov1.Study, bounds map[string]float64, confidence float64, r *dparetov1.QueryFrontResponse) []string {
	conditions := make([]string, 0, len(bounds))
	for _, m := range study.GetSpec().GetMetrics() {
		bound, ok := bounds[m.GetId()]
		if !ok {
			continue
		}
		relation := " ≤ "
		if m.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE {
			relation = " ≥ "
		}
		conditions = append(conditions, m.GetId()+relation+output.Plain(bound))
	}
	lines := []string{fmt.Sprintf("%s: the best %s with %s, confidence %s", Title(study), r.GetOptimize(), strings.Join(conditions, ", "), output.Plain(confidence))}
	if statement := PrivacyStatement(study.GetSpec()); statement != "" {
		lines = append(lines, statement)
	}
	if !r.GetReachable() && len(r.GetParameters()) > 0 {
		lines = append(lines, "note: not reachable; this is what comes nearest")
	}
	for _, w := range r.GetWarnings() {
		lines = append(lines, "note: "+w.GetMessage())
	}
	return lines
}

// Ledger returns a table of what the runs of a study cost, a row for every outcome.
func Ledger(l *dparetov1.GetPrivacyLedgerResponse) *output.Table {
	t := &output.Table{Columns: []string{"outcome", "runs", "deleted", "shortened", "unknown", "largest_epsilon"}}
	for _, e := range l.GetEntries() {
		t.Rows = append(t.Rows, []any{
			enum.Name(e.GetOutcome()), e.GetRuns(), e.GetDeletedRuns(), e.GetShortenedRuns(), e.GetUnknownRuns(), output.Bound(e.GetLargestEpsilon()),
		})
	}
	return t
}

// LedgerHeading returns the lines above the table of a ledger.
func LedgerHeading(l *dparetov1.GetPrivacyLedgerResponse) []string {
	g := l.GetComposed()
	delta := deltaText(g.GetDelta())
	lines := []string{
		fmt.Sprintf("%d runs of %d different mechanisms together: %s at most %s, %s, %s adjacency, accountant %s",
			l.GetRuns(), l.GetMechanisms(), l.GetMetric(), output.Cell(output.Bound(g.GetEpsilon())), delta, enum.Name(g.GetAdjacency()), accountantText(g)),
	}
	if l.GetAdaptive() {
		fixed := l.GetFixedInAdvance()
		lines = append(lines, fmt.Sprintf("had all of them been fixed in advance: at most %s, accountant %s", output.Cell(output.Bound(fixed.GetEpsilon())), accountantText(fixed)))
	}
	for _, assumption := range g.GetAssumptions() {
		lines = append(lines, "provided that "+assumption)
	}
	for _, w := range append(slices.Clone(g.GetWarnings()), l.GetWarnings()...) {
		lines = append(lines, "note: "+w.GetMessage())
	}
	for _, line := range PublicationLines(l.GetPublication()) {
		lines = append(lines, line[0]+": "+line[1])
	}
	return lines
}

// Reaccounting returns a table of a study's metric before and after it was accounted
// again.
func Reaccounting(r *dparetov1.ReaccountStudyResponse) *output.Table {
	t := &output.Table{Columns: []string{"", deltaColumn, "adjacency", "accountants", "trials", "not_computable", "smallest_epsilon", "median_epsilon", "largest_epsilon"}}
	for _, s := range []struct {
		name string
		*dparetov1.AccountingSummary
	}{{"before", r.GetBefore()}, {"after", r.GetAfter()}} {
		var accountants []string
		for _, name := range slices.Sorted(maps.Keys(s.GetAccountants())) {
			accountants = append(accountants, short(name, "ACCOUNTANT_"))
		}
		t.Rows = append(t.Rows, []any{
			s.name, s.GetPrivacy().GetDelta(), enum.Name(s.GetPrivacy().GetAdjacency()), strings.Join(accountants, " "),
			r.GetTrials(), s.GetNotComputable(), bound(s.SmallestEpsilon), bound(s.MedianEpsilon), bound(s.LargestEpsilon),
		})
	}
	return t
}

// bound returns the cell of an upper bound that may be absent.
func bound(x *float64) any {
	if x == nil {
		return nil
	}
	return output.Bound(*x)
}
