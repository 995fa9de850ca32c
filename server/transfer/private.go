package transfer

import (
	"fmt"
	"math"
	"slices"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/adaptive"
	"github.com/dpareto/dpareto/privacy/transcript"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/publish/private"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest/space"
)

// importTolerance is the relative tolerance for sums of charges, and for charges computed by another
// version.
const importTolerance = 1e-6

// privateImport sums up what the trials of an imported study with private_mode cost, to check that
// the study's counters are not too low.
type privateImport struct {
	costs    []float64
	slots    []int64 // as PrivateModeRecord.slots_used
	values   int64
	reserved int64
	started  int64
	trials   int64
}

// study checks the terms that a study with private_mode fixed at its creation.
func (p *privateImport) study(i *studyImport, exported *dparetov1.ExportedStudy, fields *invalid.Fields) {
	const path = "record.study.private_mode"
	terms, mode := exported.GetPrivateMode(), i.compiled.Spec.GetPrivateMode()
	if (terms != nil) != (mode != nil) {
		fields.Addf(path, "must be set if the spec has private_mode, and only then")
		return
	}
	if terms == nil {
		return
	}
	shards := i.compiled.Shards()
	p.costs = make([]float64, shards)
	if n := len(terms.GetShardCosts()); n != shards {
		fields.Addf(path+".shard_costs", "must hold one number for each of %d shards, holds %d", shards, n)
	}
	most, ok := p.mostBudget(i, terms, fields)
	if !ok {
		return
	}
	if b := terms.GetTrainBudget(); !(b > 0 && b <= most*(1+1e-12)) {
		fields.Addf(path+".train_budget", "must be positive and at most %g, as train_epsilon allows, is %g", most, b)
	}
	for k, spent := range terms.GetShardCosts() {
		if !(spent >= 0 && spent <= terms.GetTrainBudget()) {
			fields.Addf(fmt.Sprintf("%s.shard_costs[%d]", path, k), "must be in [0, %g], the budget, is %g", terms.GetTrainBudget(), spent)
		}
	}
	if least := terms.GetLeastCost(); !(least >= 0 && least <= terms.GetTrainBudget()) {
		fields.Addf(path+".least_cost", "must be in [0, %g], the budget, is %g", terms.GetTrainBudget(), least)
	}
	if typical := terms.GetTypicalCost(); !(typical > 0) || math.IsInf(typical, 1) {
		fields.Addf(path+".typical_cost", "must be positive and finite, is %g", typical)
	}
	n := terms.GetMaxValues()
	switch given := mode.GetMaxValues(); {
	case given > 0 && n != given:
		fields.Addf(path+".max_values", "must be %d, as in the spec, is %d", given, n)
	case n < i.compiled.Spec.GetBudget().GetMaxTrials()*i.compiled.ReportedMetrics() || n > maxNumber:
		fields.Addf(path+".max_values", "must be enough for the spec's max_trials, is %d", n)
	default:
		sigma, err := transcript.Noise(mode.GetTestSetSize(), n, mode.GetTestEpsilon(), mode.GetDelta())
		if s := terms.GetNoiseStandardDeviation(); err != nil || !(s >= sigma && s <= 2*sigma) {
			fields.Addf(path+".noise_standard_deviation", "must be %g, as test_epsilon needs, or a little more, is %g", sigma, s)
		}
	}
	if v, r := terms.GetValues(), terms.GetReservedValues(); v < 0 || r < 0 || v > n || r > n-v {
		fields.Addf(path+".values", "must be in [0, max_values = %d] together with reserved_values, are %d and %d", n, v, r)
	}
	if s := terms.GetStartedTrials(); s < 0 || s > exported.GetNextTrialNumber() {
		fields.Addf(path+".started_trials", "must be in [0, %d], is %d", exported.GetNextTrialNumber(), s)
	}
}

// mostBudget returns the largest budget of training that a spec allows, after it has checked the filter
// or the slots.
func (p *privateImport) mostBudget(i *studyImport, terms *dparetov1.ExportedPrivateMode, fields *invalid.Fields) (most float64, ok bool) {
	const path = "record.study.private_mode"
	mode := i.compiled.Spec.GetPrivateMode()
	if slots := i.compiled.Slots(); slots != nil {
		return p.slotBudget(i, terms, fields)
	}
	if n := len(terms.GetSlotsUsed()); n > 0 {
		fields.Addf(path+".slots_used", "must be empty without slots, holds %d", n)
	}
	order := terms.GetOrder()
	if !(order > 1 && order <= transcript.MaxOrder) {
		fields.Addf(path+".order", "must be above 1 and at most %d, is %g", transcript.MaxOrder, order)
		return 0, false
	}
	n := terms.GetMaxHandOuts()
	if n == 0 && mode.GetTrainFilter() != dparetov1.TrainFilter_TRAIN_FILTER_GAUSSIAN {
		return privacy.Improved.Budget(order, mode.GetTrainEpsilon(), mode.GetDelta()), true
	}
	if mode.GetTrainFilter() == dparetov1.TrainFilter_TRAIN_FILTER_RENYI {
		fields.Addf(path+".max_hand_outs", "must be 0 with TRAIN_FILTER_RENYI, is %d", n)
		return 0, false
	}
	budget, err := adaptive.NewGaussianBudget(mode.GetTrainEpsilon(), mode.GetDelta(), n)
	if err != nil {
		fields.Addf(path+".max_hand_outs", "gives no budget: %v", err)
	}
	return budget.Squared, err == nil
}

// slotBudget is mostBudget of a study with slots.
func (p *privateImport) slotBudget(i *studyImport, terms *dparetov1.ExportedPrivateMode, fields *invalid.Fields) (most float64, ok bool) {
	const path = "record.study.private_mode"
	slots := i.compiled.Slots().Slots()
	if terms.GetOrder() != 0 || terms.GetMaxHandOuts() != 0 {
		fields.Addf(path+".order", "and max_hand_outs must be 0 with slots, are %g and %d", terms.GetOrder(), terms.GetMaxHandOuts())
	}
	p.slots = make([]int64, i.compiled.Shards()*len(slots))
	if n := len(terms.GetSlotsUsed()); n != len(p.slots) {
		fields.Addf(path+".slots_used", "must hold %d numbers, one for each kind of slot and shard, holds %d", len(p.slots), n)
		return 0, false
	}
	for _, s := range slots {
		most += float64(s.Count)
	}
	if b := terms.GetTrainBudget(); b != most {
		fields.Addf(path+".train_budget", "must be %g, the number of slots, is %g", most, b)
	}
	sums := make([]float64, i.compiled.Shards())
	for k, n := range terms.GetSlotsUsed() {
		if count := slots[k%len(slots)].Count; n < 0 || n > count {
			fields.Addf(fmt.Sprintf("%s.slots_used[%d]", path, k), "must be in [0, %d], is %d", count, n)
		}
		sums[k/len(slots)] += float64(n)
	}
	if !slices.Equal(sums, terms.GetShardCosts()) {
		fields.Addf(path+".shard_costs", "must be %v, the used slots of each shard, are %v", sums, terms.GetShardCosts())
	}
	return most, true
}

// trial checks what a trial cost and adds it to the sums.
func (p *privateImport) trial(i *studyImport, exported *dparetov1.ExportedTrial, point space.Point, fields *invalid.Fields) {
	const path = "record.trial.private_mode"
	trial, paid, terms := exported.GetTrial(), exported.GetPrivateMode(), i.record.GetPrivateMode()
	p.trials++
	if i.compiled.HasRandomStopping() && exported.GetDeleted() {
		fields.Addf("record.trial.deleted", "must be false: a study with random_stopping chooses among all of its trials")
	}
	if terms == nil {
		if paid != nil || trial.GetTrainingShard() != 0 || slices.ContainsFunc(trial.GetPastAttempts(), func(a *dparetov1.Attempt) bool { return a.GetTrainingShard() != 0 }) {
			fields.Addf(path, "is allowed only with private_mode, and so are training shards")
		}
		return
	}
	if trial.GetOrigin() == dparetov1.TrialOrigin_TRIAL_ORIGIN_IMPORTED {
		fields.Addf("record.trial.trial.origin", "must not be TRIAL_ORIGIN_IMPORTED in a study with private_mode")
	}
	if n := len(paid.GetCharges()); n != int(trial.GetAttempt()) || (paid == nil) != (trial.GetAttempt() == 0) {
		fields.Addf(path+".charges", "must hold one for each of %d attempts, holds %d", trial.GetAttempt(), n)
		return
	}
	if paid == nil {
		if len(trial.GetMeasurements()) > 0 || trial.GetFinalMeasurement() != nil {
			fields.Addf(path, "must be set for a trial that was measured")
		}
		return
	}
	p.charges(i, path, paid, trial, point, fields)
	values := int64(0) // that the trial still shows
	count := func(m *dparetov1.Measurement) {
		for id := range m.GetMetrics() {
			if trial.GetComputedMetrics()[id] == nil {
				values++
			}
		}
	}
	for _, m := range trial.GetMeasurements() {
		count(m)
	}
	for _, a := range trial.GetPastAttempts() {
		for _, m := range a.GetMeasurements() {
			count(m)
		}
	}
	if final := trial.GetFinalMeasurement(); final != nil && !hasStep(trial, final.GetStep()) {
		count(final)
	}
	if v := paid.GetValues(); v < values || v > maxNumber {
		fields.Addf(path+".values", "must be at least the %d that the trial has, is %d", values, v)
	}
	if n := paid.GetCheckpoints(); n < 0 || n > maxNumber || paid.GetLastCheckpoint() < 0 {
		fields.Addf(path+".checkpoints", "and last_checkpoint must not be negative, are %d and %d", n, paid.GetLastCheckpoint())
	}
	metrics := i.compiled.ReportedMetrics()
	switch reserved := paid.GetReservedValues(); {
	case (study.IsTerminal(trial.GetState()) || exported.GetDeleted()) && reserved != 0:
		fields.Addf(path+".reserved_values", "must be 0 for a complete or deleted trial, is %d", reserved)
	case !study.IsTerminal(trial.GetState()) && !exported.GetDeleted() && reserved != metrics:
		fields.Addf(path+".reserved_values", "must be %d, is %d", metrics, reserved)
	}
	p.values += min(paid.GetValues(), maxNumber)
	p.reserved += paid.GetReservedValues()
	p.started++
}

// hasStep reports whether a trial has an intermediate measurement at a step.
func hasStep(trial *dparetov1.Trial, step int64) bool {
	for _, m := range trial.GetMeasurements() {
		if m.GetStep() == step {
			return true
		}
	}
	return false
}

// charges checks what the hand-outs of a trial cost and adds it to the sums.
func (p *privateImport) charges(i *studyImport, path string, paid *dparetov1.ExportedPrivateTrial, trial *dparetov1.Trial, point space.Point, fields *invalid.Fields) {
	terms := i.record.GetPrivateMode()
	least := 1.0
	if i.compiled.Slots() == nil {
		least = private.TrainingCost(i.compiled, terms, point, trial.GetReplicates())
	}
	for k, c := range paid.GetCharges() {
		at := fmt.Sprintf("%s.charges[%d]", path, k)
		if c.GetShard() < 0 || int(c.GetShard()) >= len(p.costs) {
			fields.Addf(at+".shard", "must be in [0, %d], is %d", len(p.costs)-1, c.GetShard())
			continue
		}
		if d := c.GetCost(); !(d >= least*(1-importTolerance)) || math.IsInf(d, 1) {
			fields.Addf(at+".cost", "must be at least %g, the cost of the configuration, is %g", least, d)
			continue
		}
		if !p.slot(i, at, c, trial, point, fields) {
			continue
		}
		p.costs[c.GetShard()] += c.GetCost()
	}
	const shard = "record.trial.trial.training_shard"
	if n, actual := shownAttempt(trial), trial.GetTrainingShard(); n == 0 && actual != 0 {
		fields.Addf(shard, "must be 0, since all attempts have ended, is %d", actual)
	} else if n > 0 && actual != paid.GetCharges()[n-1].GetShard() {
		fields.Addf(shard, "must be the shard of the charge for attempt %d, %d, is %d", n, paid.GetCharges()[n-1].GetShard(), actual)
	}
	for j, a := range trial.GetPastAttempts() {
		if c := paid.GetCharges()[a.GetNumber()-1]; a.GetTrainingShard() != c.GetShard() {
			fields.Addf(fmt.Sprintf("%s[%d].training_shard", attemptsPath, j), "must be the shard of the charge for it, %d, is %d", c.GetShard(), a.GetTrainingShard())
		}
	}
}

// slot checks the slot that a hand-out took and adds it to the sums.
func (p *privateImport) slot(i *studyImport, at string, c *dparetov1.ExportedTrainingCharge, trial *dparetov1.Trial, point space.Point, fields *invalid.Fields) bool {
	if i.compiled.Slots() == nil {
		if c.GetSlot() != 0 {
			fields.Addf(at+".slot", "must be 0 without slots, is %d", c.GetSlot())
		}
		return c.GetSlot() == 0
	}
	kinds := len(p.slots) / len(p.costs)
	if c.GetCost() != 1 {
		fields.Addf(at+".cost", "must be 1, a slot, is %g", c.GetCost())
		return false
	}
	if !private.Dominates(i.compiled, int(c.GetSlot()), point, trial.GetReplicates()) {
		fields.Addf(at+".slot", "must be one of %d that dominates the configuration, is %d", kinds, c.GetSlot())
		return false
	}
	p.slots[int(c.GetShard())*kinds+int(c.GetSlot())]++
	return true
}

// checkWhole compares the study's counters with the sums over its trials.
func (p *privateImport) checkWhole(i *studyImport) error {
	const path = "record.study.private_mode"
	terms := i.record.GetPrivateMode()
	if all := i.record.GetNextTrialNumber() - 1; spec.IsPublication(i.compiled.Spec) && p.trials != all {
		return i.invalid("record.study.next_trial_number", "must be one more than the number of trials, including deleted ones: with private_mode or random_stopping none may be missing; there are %d of %d", p.trials, all)
	}
	if terms == nil {
		return nil
	}
	return p.compare(i, path, terms)
}

func (p *privateImport) compare(i *studyImport, path string, terms *storev1.PrivateModeRecord) error {
	for k, spent := range p.costs {
		if !(terms.GetShardCosts()[k] >= spent*(1-importTolerance)) {
			return i.invalid(fmt.Sprintf("%s.shard_costs[%d]", path, k), "must be at least the cost of the trials, %g, is %g", spent, terms.GetShardCosts()[k])
		}
	}
	for k, used := range p.slots {
		if terms.GetSlotsUsed()[k] < used {
			return i.invalid(fmt.Sprintf("%s.slots_used[%d]", path, k), "must be at least those of the trials, %d, is %d", used, terms.GetSlotsUsed()[k])
		}
	}
	switch {
	case terms.GetValues() < p.values:
		return i.invalid(path+".values", "must be at least the sum over the trials, %d, is %d", p.values, terms.GetValues())
	case terms.GetReservedValues() != p.reserved:
		return i.invalid(path+".reserved_values", "must equal the sum over the trials, %d, is %d", p.reserved, terms.GetReservedValues())
	case terms.GetStartedTrials() != p.started:
		return i.invalid(path+".started_trials", "must equal the number of charged trials, %d, is %d", p.started, terms.GetStartedTrials())
	}
	return nil
}
