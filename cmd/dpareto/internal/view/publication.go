package view

import (
	"fmt"
	"slices"

	"github.com/dpareto/dpareto/cmd/internal/enum"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// publicationLines returns what publishing the results of a study guarantees, what of it is
// spent, its assumptions, and what it does not cover: pairs of a field and its text, none
// for a study without a guarantee.
func publicationLines(p *dparetov1.Publication) [][2]string {
	if p == nil {
		return nil
	}
	var lines [][2]string
	add := func(field, format string, args ...any) {
		lines = append(lines, [2]string{field, fmt.Sprintf(format, args...)})
	}
	guarantee := func(g *dparetov1.PrivacyGuarantee) string {
		return fmt.Sprintf("ε at most %s, δ = %s, %s adjacency", output.NumberUp(g.GetEpsilon()), output.Plain(g.GetDelta()), enum.Name(g.GetAdjacency()))
	}
	if g := p.GetTest(); g != nil {
		add("publishing", "all results together: %s, for the test records", guarantee(g))
	}
	if g := p.GetTrain(); g != nil {
		add("publishing", "all results together: %s, for the training records", guarantee(g))
	}
	if sd := p.GetNoiseStandardDeviation(); sd > 0 {
		add("noise", "standard deviation %s in every measured value", output.Number(sd))
	}
	if s := p.GetSpent(); s != nil {
		add("spent", "test records: %d of %d values, ε = %s so far", s.GetValues(), s.GetMaxValues(), output.NumberUp(s.GetTest().GetEpsilon()))
		most := slices.Max(append(slices.Clone(s.GetShardDivergences()), 0))
		where := ""
		if n := len(s.GetShardDivergences()); n > 1 {
			where = fmt.Sprintf(" on the shard of %d that has spent most", n)
		}
		add("spent", "training records: Rényi divergence %s of %s of order %s%s, ε = %s so far",
			output.NumberUp(most), output.Number(s.GetDivergenceBudget()), output.Number(s.GetOrder()), where, output.NumberUp(s.GetTrain().GetEpsilon()))
	}
	for _, a := range p.GetAssumptions() {
		add("provided that", "%s", a)
	}
	for _, n := range p.GetNotCovered() {
		add("not covered", "%s", n)
	}
	return lines
}
