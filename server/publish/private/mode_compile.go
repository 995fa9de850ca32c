package private

import (
	"fmt"
	"math"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/slots"
	"github.com/dpareto/dpareto/privacy/transcript"
)

// Limits of private_mode.
const (
	maxShards        = 10_000
	maxPrivateValues = 1_000_000_000
	// maxNoise bounds the standard deviation of the noise. Much less already hides a value in [0, 1].
	maxNoise = 1e6
)

// warnNoneOnTheWay warns that a study keeps no measurement before the end of a run.
const warnNoneOnTheWay = "NO_VALUES_ON_THE_WAY"

// warnLargeDelta warns of a δ that would allow the publication of a record.
const warnLargeDelta = "LARGE_TEST_DELTA"

// modeCompiler checks private_mode.
type modeCompiler struct{ *compiler }

// compile checks private_mode, and completes the study with its noise, slots and warnings. terms
// belong to a stored study, nil for a new one.
func (c modeCompiler) compile(terms *storev1.PrivateModeRecord) {
	spec, mode := c.spec, c.spec.GetPrivateMode()
	before := c.fields.Len()
	at := func(field string) string { return "private_mode." + field }
	if n := mode.GetTestSetSize(); n < 1 || n > maxTestSet {
		c.addf(at("test_set_size"), "must be in [1, 2^40], is %d", n)
	}
	for _, e := range []struct {
		field string
		value float64
	}{{"test_epsilon", mode.GetTestEpsilon()}, {"train_epsilon", mode.GetTrainEpsilon()}} {
		if !(e.value > 0) || math.IsInf(e.value, 1) {
			c.addf(at(e.field), "must be positive and finite, is %g", e.value)
		}
	}
	if fault := privacy.DeltaFault(mode.GetDelta()); fault != "" {
		c.addf(at("delta"), "%s", fault)
	}
	if n := mode.GetTrainingShards(); n < 0 || n > maxShards {
		c.addf(at("training_shards"), "must be in [1, %d], or 0 for the default, is %d", maxShards, n)
	}
	if _, ok := dparetov1.TrainFilter_name[int32(mode.GetTrainFilter())]; !ok {
		c.addf(at("train_filter"), "is unknown: %v", mode.GetTrainFilter())
	}
	c.needsLedger("test_ledger", spec.GetTestLedger(), "private_mode")
	c.needsLedger("train_ledger", spec.GetTrainLedger(), "private_mode")
	c.values()
	c.metrics()
	c.noiseOfReports("private_mode")
	if most := terms.GetMaxValues() / max(1, reportedMetrics(spec)); terms != nil && spec.GetBudget().GetMaxTrials() > most {
		c.addf("budget.max_trials", "must be at most %d: the study takes %d noisy values, as fixed at its creation, is %d", most, terms.GetMaxValues(), spec.GetBudget().GetMaxTrials())
	}
	if c.fields.Len() == before {
		c.noise()
	}
	if c.fields.Len() == before && c.compiled != nil {
		c.slots()
		c.warn()
	}
	if _, isMetric := spec.GetCost().GetMeasure().(*dparetov1.CostSpec_Metric); isMetric {
		c.addf("cost.metric", "is not for studies with private_mode, which keep no measured cost")
	}
	if len(spec.GetConstantPoints()) > 0 && !mode.GetConstantPointsArePublic() {
		c.addf(at("constant_points_are_public"), "must be true: nothing protects records in the values of constant points")
	}
	if len(spec.GetPriorStudies()) > 0 && !mode.GetPriorStudiesArePublic() {
		c.addf(at("prior_studies_are_public"), "must be true: nothing protects the results in prior studies")
	}
}

// values checks the number of values against the budget of trials.
func (c modeCompiler) values() {
	mode, trials, metrics := c.spec.GetPrivateMode(), c.spec.GetBudget().GetMaxTrials(), reportedMetrics(c.spec)
	switch n := mode.GetMaxValues(); {
	case trials < 1:
		c.addf("budget.max_trials", "must be set with private_mode: it bounds the number of published values")
	case metrics < 1:
		c.addf("metrics", "must hold a reported metric with private_mode")
	case trials > maxPrivateValues/metrics:
		c.addf("budget.max_trials", "must be at most %d with %d reported metrics and private_mode, is %d", maxPrivateValues/metrics, metrics, trials)
	case n < 0 || n > maxPrivateValues:
		c.addf("private_mode.max_values", "must be in [1, %d], or 0 for the default, is %d", maxPrivateValues, n)
	case n > 0 && n < trials*metrics:
		c.addf("private_mode.max_values", "must be at least %d, max_trials times the %d reported metrics, is %d", trials*metrics, metrics, n)
	}
}

// metrics checks what private_mode asks of metrics.
func (c modeCompiler) metrics() {
	mode := c.spec.GetPrivateMode()
	if !hasMechanism(c.spec) {
		c.addf("metrics", "must hold a metric computed from a privacy mechanism with private_mode")
	}
	for i, m := range c.spec.GetMetrics() {
		if m.GetReported() == nil {
			continue
		}
		if n := m.GetReported().GetSampleSize(); n != 0 && n != float64(mode.GetTestSetSize()) {
			c.addf(fmt.Sprintf("metrics[%d].reported.sample_size", i), "must be test_set_size, %d, or unset with private_mode, is %g", mode.GetTestSetSize(), n)
		}
	}
}

// noise computes the standard deviation of the noise. It differs a little from the standard errors of
// stored values where max_trials has changed since.
func (c modeCompiler) noise() {
	mode, values := c.spec.GetPrivateMode(), maxValues(c.spec)
	deviation, err := transcript.Noise(mode.GetTestSetSize(), values, mode.GetTestEpsilon(), mode.GetDelta())
	if fields := privacy.FieldErrors(err); len(fields) > 0 && fields[0].Field == "epsilon" {
		c.addf("private_mode.test_epsilon", "%s", fields[0].Message)
	} else if err != nil || !(deviation <= maxNoise) {
		c.addf("private_mode.test_epsilon", "is so small that noise hides all %d values over %d test records", values, mode.GetTestSetSize())
	}
	if c.compiled == nil {
		return
	}
	for i := range c.compiled.Problem.Objectives {
		if o := &c.compiled.Problem.Objectives[i]; o.Known == nil {
			o.Noise = deviation
		}
	}
	for i := range c.compiled.Problem.Constraints {
		if o := &c.compiled.Problem.Constraints[i]; o.Known == nil {
			o.Noise = deviation
		}
	}
}

// maxSlots bounds the number of slots of a study.
const maxSlots = 1_000_000

// slots computes the price of the slots, which must fit train_epsilon.
func (c modeCompiler) slots() {
	mode := c.spec.GetPrivateMode()
	if len(mode.GetSlots()) == 0 {
		return
	}
	if mode.GetTrainFilter() != dparetov1.TrainFilter_TRAIN_FILTER_UNSPECIFIED {
		c.addf("private_mode.train_filter", "must be unset with slots, which take the place of a filter, is %v", mode.GetTrainFilter())
		return
	}
	_, function := c.compiled.Metrics.Mechanism("")
	if function == nil {
		return // a violation of the metric
	}
	var declared []slots.Slot
	total := int64(0)
	for i, s := range mode.GetSlots() {
		at := fmt.Sprintf("private_mode.slots[%d]", i)
		variables, ok := c.compiled.Points.VariablesOf(c.fields, specPath+"."+at+".parameters", s.GetParameters())
		if n := s.GetCount(); n < 1 || n > maxSlots {
			c.addf(at+".count", "must be in [1, %d], is %d", maxSlots, n)
			ok = false
		}
		if !ok {
			continue
		}
		part, err := function.Part(variables)
		if err != nil {
			c.addf(at+".parameters", "do not give the run that the privacy metric describes: %v", err)
			continue
		}
		if part.Count > math.MaxInt32/int64(c.compiled.Replicates()) {
			c.addf(at+".parameters", "give a run of %d steps, which are too many", part.Count)
			continue
		}
		total += s.GetCount()
		declared = append(declared, slots.Slot{Mechanism: part.Mechanism, Steps: part.Count * int64(c.compiled.Replicates()), Count: s.GetCount()})
	}
	if len(declared) < len(mode.GetSlots()) {
		return
	}
	if total > maxSlots {
		c.addf("private_mode.slots", "must be at most %d together, are %d", maxSlots, total)
		return
	}
	c.price(declared)
}

// price sets the slots of the study.
func (c modeCompiler) price(declared []slots.Slot) {
	mode := c.spec.GetPrivateMode()
	all, err := slots.NewSlots(declared, mode.GetDelta())
	if err != nil {
		c.addf("private_mode.slots", "have no price: %v", err)
		return
	}
	if price := all.Price().Epsilon; !(price <= mode.GetTrainEpsilon()) {
		c.addf("private_mode.slots", "cost ε = %.4g together, more than train_epsilon, which is %g", price, mode.GetTrainEpsilon())
		return
	}
	c.compiled.Terms = all
}

// warn adds the warnings about private_mode.
func (c modeCompiler) warn() {
	mode := c.spec.GetPrivateMode()
	warn := func(code, message string) {
		c.compiled.Warnings = append(c.compiled.Warnings, &dparetov1.Warning{Code: code, Message: message})
	}
	if text := show.LargeDelta(mode.GetDelta(), mode.GetTestSetSize()); text != "" {
		warn(warnLargeDelta, "private_mode: "+text)
	}
	if most := maxValues(c.spec); c.compiled.Points.Checkpoints() && most == finalValues(c.spec) {
		warn(warnNoneOnTheWay, fmt.Sprintf("private_mode.max_values is %d, which the final values of all trials use up: no measurement before the end of %s is kept; a larger number keeps some, and makes all values noisier",
			most, c.spec.GetCheckpointParameter()))
	}
}
