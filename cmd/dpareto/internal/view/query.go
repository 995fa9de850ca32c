package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

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

// noEpsilon is said of runs in place of their ε; the warnings say how many were seeded.
const noEpsilon = "no ε, since trials were seeded"

// LedgerHeading returns the lines above the table of a ledger.
func LedgerHeading(l *dparetov1.GetPrivacyLedgerResponse) []string {
	g := l.GetComposed()
	together := fmt.Sprintf("%d runs of %d different mechanisms together: ", l.GetRuns(), l.GetMechanisms())
	var lines []string
	if show.IsSeeded(l.GetWarnings()) {
		lines = append(lines, together+noEpsilon)
	} else {
		lines = append(lines, fmt.Sprintf("%s%s at most %s, %s, %s, accountant %s", together, l.GetMetric(), output.Cell(output.Bound(g.GetEpsilon())),
			show.DeltaText(g.GetDelta()), show.AdjacencyText(enum.Name(g.GetAdjacency())+" adjacency", g.GetAssumptions()), show.AccountantText(g)))
		if l.GetAdaptive() {
			fixed := l.GetFixedInAdvance()
			lines = append(lines, fmt.Sprintf("had all of them been fixed in advance: at most %s, accountant %s", output.Cell(output.Bound(fixed.GetEpsilon())), show.AccountantText(fixed)))
		}
	}
	for _, assumption := range g.GetAssumptions() {
		lines = append(lines, "provided that "+show.Assumption(assumption))
	}
	for _, w := range append(slices.Clone(g.GetWarnings()), l.GetWarnings()...) {
		lines = append(lines, "note: "+w.GetMessage())
	}
	for _, line := range publicationLines(l.GetPublication()) {
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
			accountants = append(accountants, enum.Name(dparetov1.Accountant(dparetov1.Accountant_value[name])))
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
