package private

import (
	"context"
	"fmt"
	"math"
	"slices"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/slots"
	"github.com/dpareto/dpareto/privacy/transcript"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest/restrict"
	"github.com/dpareto/dpareto/suggest/space"
)

// slotsOf returns the runs that private_mode declares beforehand, nil if there are none.
func slotsOf(compiled *spec.Study) *slots.Slots {
	declared, _ := compiled.Terms.(*slots.Slots)
	return declared
}

// runOf returns repeats runs of the first privacy metric's mechanism, or an error where the mechanism is
// not valid.
func runOf(compiled *spec.Study, point space.Point, repeats int64) (privacy.Part, error) {
	_, function := compiled.Metrics.Mechanism("")
	part, err := function.Part(compiled.Points.Variables(point))
	if err == nil && part.Count > math.MaxInt32/repeats {
		return privacy.Part{}, privacy.FieldErrorf("replicates", "%d runs of %d steps are too many", repeats, part.Count)
	}
	part.Count *= repeats
	return part, err
}

// declareSlots fixes the budget of a study with slots: every shard has all of them, and a hand-out
// costs one.
func declareSlots(terms *storev1.PrivateModeRecord, slots *slots.Slots, shards int) {
	for _, s := range slots.Slots() {
		terms.TrainBudget += float64(s.Count)
	}
	terms.LeastCost, terms.TypicalCost = 1, 1
	terms.SlotsUsed = make([]int64, shards*len(slots.Slots()))
}

// usedOf returns how many slots of each kind a shard has used.
func usedOf(terms *storev1.PrivateModeRecord, shard int) []int64 {
	kinds := len(terms.GetSlotsUsed()) / len(terms.GetShardCosts())
	return terms.GetSlotsUsed()[shard*kinds : (shard+1)*kinds]
}

// nextSlot returns the cheapest unused slot that dominates a hand-out, of the shard that has used
// least.
func nextSlot(compiled *spec.Study, terms *storev1.PrivateModeRecord, point space.Point, replicates int32, number int64) (charge, bool) {
	run, err := runOf(compiled, point, int64(max(1, replicates)))
	if err != nil {
		return charge{}, false
	}
	for _, shard := range shardsInTurn(terms, number) {
		if slot, err := slotsOf(compiled).Fit(run.Mechanism, run.Count, usedOf(terms, shard)); err == nil && slot >= 0 {
			return charge{shard: shard, cost: 1, slot: slot}, true
		}
	}
	return charge{}, false
}

// compareWithSlots returns a function that finds the slots that dominate a hand-out, nil if they are
// known.
func compareWithSlots(compiled *spec.Study, point space.Point, replicates int32) func(context.Context) error {
	run, err := runOf(compiled, point, int64(max(1, replicates)))
	if err != nil || slotsOf(compiled).Knows(run.Mechanism, run.Count) {
		return nil
	}
	return func(ctx context.Context) error {
		if err := pause.Check(ctx); err != nil {
			return err
		}
		_, _ = slotsOf(compiled).Fit(run.Mechanism, run.Count, nil) // nextSlot meets the error again
		return nil
	}
}

// slotLimit restricts configurations to those that an unused slot dominates. The stand-in of the search
// compares Rényi divergences.
func slotLimit(compiled *spec.Study, terms *storev1.PrivateModeRecord) restrict.Limit {
	left := slices.Clone(usedOf(terms, 0)) // where a shard has used least
	for shard := range terms.GetShardCosts() {
		for k, n := range usedOf(terms, shard) {
			left[k] = min(left[k], n)
		}
	}
	stretch := func(point space.Point) float64 {
		run, err := runOf(compiled, point, int64(compiled.Replicates()))
		if err != nil {
			return math.Inf(1)
		}
		return slotsOf(compiled).Stretch(run.Mechanism, run.Count, left)
	}
	return restrict.Limit{
		Objective: -1,
		Known: func(point space.Point) float64 {
			if _, ok := nextSlot(compiled, terms, point, compiled.Replicates(), 0); ok {
				return 1
			}
			return math.Max(math.Nextafter(1, 2), stretch(point))
		},
		Search: stretch,
		Upper:  1,
	}
}

// Names and size of the warning that slots would cost less.
const (
	warnSlots = "SLOTS_COST_LESS"
	wasted    = 1.05 // ε of a filter over ε of the same runs as slots, from which on it is given
)

// costlyFilter returns the warning that a study's filter takes more than 5 % of ε more than slots for as
// many runs of a typical configuration as it admits, or nil. A study that asks for the Rényi filter is
// not warned.
func costlyFilter(compiled *spec.Study, terms *storev1.PrivateModeRecord) *dparetov1.Warning {
	mode := compiled.Spec.GetPrivateMode()
	if slotsOf(compiled) != nil || mode.GetTrainFilter() == dparetov1.TrainFilter_TRAIN_FILTER_RENYI {
		return nil
	}
	point, cost := typicalOf(compiled, terms)
	runs := min(int64(terms.GetTrainBudget()/cost), compiled.Spec.GetBudget().GetMaxTrials())
	run, err := runOf(compiled, point, int64(compiled.Replicates()))
	if err != nil || runs < 1 {
		return nil
	}
	slots, err := slots.NewSlots([]slots.Slot{{Mechanism: run.Mechanism, Steps: run.Count, Count: runs}}, mode.GetDelta())
	if err != nil {
		return nil // without a pair of distributions there are no slots
	}
	inFilter, err := filterEpsilon(compiled, terms, float64(runs)*cost)
	if err != nil || !(inFilter > wasted*slots.Price().Epsilon) {
		return nil
	}
	return &dparetov1.Warning{
		Code: warnSlots,
		Message: fmt.Sprintf("the filter of the training budget takes ε = %.3g for %d runs of a typical configuration, which cost ε = %.3g if they are declared beforehand, as private_mode.slots",
			inFilter, runs, slots.Price().Epsilon),
	}
}

// typicalOf returns the configuration of median cost, and the cost.
func typicalOf(compiled *spec.Study, terms *storev1.PrivateModeRecord) (space.Point, float64) {
	draws := typicalConfigurations(compiled)
	point := medianOf(draws, func(point space.Point) float64 { return cheapCost(compiled, terms, point) })
	return point, trainingCost(compiled, terms, point, compiled.Replicates())
}

// filterEpsilon returns ε of a shard that has spent so much of its filter.
func filterEpsilon(compiled *spec.Study, terms *storev1.PrivateModeRecord, spent float64) (float64, error) {
	delta := compiled.Spec.GetPrivateMode().GetDelta()
	if terms.GetMaxHandOuts() == 0 {
		return transcript.TrainEpsilon(terms.GetOrder(), spent, delta), nil
	}
	budget, err := gaussianBudget(compiled, terms)
	if err != nil {
		return 0, err
	}
	return budget.Epsilon(spent, delta), nil
}
