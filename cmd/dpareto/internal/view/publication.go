package view

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
)

// typicalRuns returns for how many runs of a typical configuration the training budget lasts, -1 if
// unknown.
func typicalRuns(s *dparetov1.PrivateModeOdometers) int64 {
	if !(s.GetTypicalCost() > 0) {
		return -1
	}
	runs := 0.0
	for _, spent := range s.GetShardCosts() {
		runs += math.Floor((s.GetTrainBudget() - spent) / s.GetTypicalCost())
	}
	return int64(math.Min(runs, math.MaxInt32))
}

// slotText says how many slots of a kind are left, over all shards.
func slotText(use *dparetov1.SlotUse) string {
	left, all := int64(0), int64(0)
	for _, n := range use.GetUsed() {
		left, all = left+use.GetSlot().GetCount()-n, all+use.GetSlot().GetCount()
	}
	var values []string
	for _, id := range slices.Sorted(maps.Keys(use.GetSlot().GetParameters())) {
		values = append(values, fmt.Sprint(id, " ", Value(use.GetSlot().GetParameters()[id])))
	}
	return fmt.Sprintf("%d of %d slots for %s", left, all, strings.Join(values, ", "))
}

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
	if g := p.GetTest(); g != nil {
		add("publishing", "all results together: %s, for the test records", guaranteeText(g))
	}
	if g := p.GetTrain(); g != nil {
		add("publishing", "all results together: %s, for the training records", guaranteeText(g))
	}
	if g := p.GetFinalRun(); g != nil {
		add("final run", "%s, included in all results together", guaranteeText(g))
	}
	if sd := p.GetNoiseStandardDeviation(); sd > 0 {
		add("noise", "standard deviation %s in every measured value", show.Number(sd))
	}
	if s := p.GetSpent(); s != nil {
		add("spent", "test records: %d of %d values, so far %s", s.GetValues(), s.GetMaxValues(), guaranteeText(s.GetTest()))
		if n := s.GetCheckpoints(); n > 0 {
			add("left", "test records: about %.1f measurements before the end of each run", n)
		}
		train := proto.CloneOf(s.GetTrain())
		train.Assumptions = p.GetTrain().GetAssumptions() // the odometer is of the same runs
		most := slices.Max(append(slices.Clone(s.GetShardCosts()), 0))
		where := ""
		if n := len(s.GetShardCosts()); n > 1 {
			where = fmt.Sprintf(" on the shard of %d that has spent most", n)
		}
		if len(s.GetSlots()) > 0 {
			add("spent", "training records: %g of %g slots%s, so far %s", most, s.GetTrainBudget(), where, guaranteeText(train))
			for _, use := range s.GetSlots() {
				add("left", "training records: %s", slotText(use))
			}
		} else {
			unit := "μ² of Gaussian DP"
			if s.GetOrder() > 0 {
				unit = "Rényi divergence of order " + show.Number(s.GetOrder())
			}
			add("spent", "training records: %s of %s %s%s, so far %s",
				show.NumberUp(most), show.Number(s.GetTrainBudget()), unit, where, guaranteeText(train))
			if runs := typicalRuns(s); runs >= 0 {
				add("left", "training records: about %d more runs of a typical configuration", runs)
			}
		}
	}
	for _, a := range p.GetAssumptions() {
		add("provided that", "%s", show.Assumption(a))
	}
	for _, n := range p.GetNotCovered() {
		add("not covered", "%s", n)
	}
	return lines
}
