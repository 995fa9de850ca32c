package private

import (
	"fmt"
	"math"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/stopping"
)

// Limits of a RandomStoppingSpec.
const (
	maxMeanTrials = 1e5 // a tenth of the trials that a study may have
	maxEta        = 100
	// defaultListed is the length of the list that candidates are drawn from, unless the spec says another.
	defaultListed   = 1000
	maxListed       = 10_000
	maxListedValues = 100_000
	maxPortfolio    = 100
	maxCurvePoints  = 1000
)

// stoppingCompiler checks random_stopping.
type stoppingCompiler struct{ *compiler }

// compile checks that trials are independent draws from one distribution, each with one
// score, and that accounting knows what each costs. Then it compiles the final run; again is set for a
// stored study, whose metrics need not be tried again.
func (c stoppingCompiler) compile(again bool) {
	spec, stopping, before := c.spec, c.spec.GetRandomStopping(), c.fields.Len()
	c.needsLedger("train_ledger", spec.GetTrainLedger(), "random_stopping")
	if stopping.GetTestSetSize() > 0 {
		c.needsLedger("test_ledger", spec.GetTestLedger(), "random_stopping with a test_set_size")
	}
	c.distribution(stopping)
	c.list(stopping)
	c.curve()
	c.subset(stopping)
	c.score()
	refuse := func(field string, isSet bool, reason string) {
		if isSet {
			c.addf(field, "must not be set with random_stopping: %s", reason)
		}
	}
	if name := spec.GetAlgorithm().GetName(); name != dparetov1.Algorithm_ALGORITHM_RANDOM {
		c.addf("algorithm.name", "must be ALGORITHM_RANDOM with random_stopping: trials must be independent draws from one distribution; is %v", name)
	}
	for i, p := range spec.GetParameters() {
		refuse(fmt.Sprintf("parameters[%d].condition", i), p.GetCondition() != nil, "all configurations are drawn from one distribution")
	}
	budget := spec.GetBudget()
	const drawn = "the number of trials is drawn at random, and all of them run"
	refuse("budget.max_trials", budget.GetMaxTrials() != 0, drawn)
	refuse("budget.max_duration", budget.GetMaxDuration() != nil, drawn)
	refuse("budget.max_stagnant_trials", budget.GetMaxStagnantTrials() != 0, drawn)
	refuse("prior_studies", len(spec.GetPriorStudies()) > 0, "the search must not learn from results")
	refuse("cost", spec.GetCost() != nil, "the search must not learn from results")
	refuse("disable_early_stopping", spec.GetDisableEarlyStopping(), "no run is ever stopped early")
	refuse("seed", spec.Seed != nil, "it reveals how many configurations were drawn before the released one")
	if spec.GetPrivateMode() != nil {
		c.addf("random_stopping", "is not for studies with private_mode")
	}
	if len(spec.GetConstantPoints()) > 0 {
		c.addf("constant_points", "is not for studies with random_stopping, which have no front")
	}
	for i, m := range spec.GetMetrics() {
		if m.GetReported() != nil && m.GetRole() == dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE && m.ReferenceValue == nil {
			c.addf(fmt.Sprintf("metrics[%d].reference_value", i), "must be set with random_stopping, whose results stay secret")
		}
	}
	c.noiseOfReports("random_stopping")
	c.mechanism()
	if c.fields.Len() == before && c.compiled != nil {
		c.finalRun(again)
	}
}

// distribution checks the distribution of the number of trials.
func (c stoppingCompiler) distribution(stopping *dparetov1.RandomStoppingSpec) {
	const field = "random_stopping."
	if eta, ok := stopping.GetDistribution().(*dparetov1.RandomStoppingSpec_Eta); ok && !(eta.Eta > -1 && eta.Eta <= maxEta) {
		c.addf(field+"eta", "must be above -1 and at most %d, is %g", maxEta, eta.Eta)
		return
	}
	mean, least := stopping.GetMeanTrials(), 1.0
	switch d := stopping.GetDistribution().(type) {
	case *dparetov1.RandomStoppingSpec_Poisson:
		least = 0
	case *dparetov1.RandomStoppingSpec_Binomial:
		least = 0
		if !(float64(d.Binomial) >= mean && d.Binomial <= maxMeanTrials) {
			c.addf(field+"binomial", "must be the number of tries, at least mean_trials, %g, and at most %g, is %d", mean, maxMeanTrials, d.Binomial)
			return
		}
	case *dparetov1.RandomStoppingSpec_Fixed:
		least = 0
		if mean != math.Trunc(mean) {
			c.addf(field+"mean_trials", "must be an integer with fixed, is %g", mean)
			return
		}
	}
	if k := stopping.GetPortfolio(); k > 1 && mean*float64(k) > maxMeanTrials {
		c.addf(field+"portfolio", "must be at most %g over mean_trials, %g, is %d", maxMeanTrials, mean, k)
	}
	if !(mean > least && mean <= maxMeanTrials) {
		c.addf(field+"mean_trials", "must be above %g and at most %g, is %g", least, maxMeanTrials, mean)
		return
	}
	if stopping.GetMaxTrials() != 0 && least != 1 {
		c.addf(field+"max_trials", "must be unset: it is only for eta")
		return
	}
	if _, err := trialsDistribution(stopping); err != nil {
		name := "mean_trials"
		if slices.ContainsFunc(privacy.FieldErrors(err), func(e *privacy.FieldError) bool { return e.Field == "most" }) {
			name = "max_trials"
		}
		c.addf(field+name, "%v", err)
	}
}

// trialsDistribution returns the distribution of the number of trials.
func trialsDistribution(asked *dparetov1.RandomStoppingSpec) (stopping.Distribution, error) {
	mean, eta := asked.GetMeanTrials(), 1.0
	var dist stopping.Distribution
	switch d := asked.GetDistribution().(type) {
	case *dparetov1.RandomStoppingSpec_Poisson:
		dist = stopping.Poisson{Mean: mean}
	case *dparetov1.RandomStoppingSpec_Binomial:
		dist = stopping.Binomial{Tries: d.Binomial, Success: mean / float64(d.Binomial)}
	case *dparetov1.RandomStoppingSpec_Fixed:
		dist = stopping.Binomial{Tries: int64(mean), Success: 1}
	case *dparetov1.RandomStoppingSpec_Eta:
		eta = d.Eta
	}
	if dist == nil {
		unlimited, err := stopping.ByMean(eta, mean)
		if err != nil {
			return nil, err
		}
		dist = unlimited
		if most := asked.GetMaxTrials(); most != 0 {
			dist = stopping.Capped{Of: unlimited, Most: most}
		}
	}
	return dist, dist.Validate()
}

// list checks the list that candidates are drawn from.
func (c stoppingCompiler) list(stopping *dparetov1.RandomStoppingSpec) {
	n, parameters := int64(stopping.GetListed()), int64(max(1, len(c.spec.GetParameters())))
	if most := min(maxListed, maxListedValues/parameters); n < 0 || n > most {
		c.addf("random_stopping.listed", "must be in [1, %d] for %d parameters, or 0 for %d, is %d", most, parameters, defaultListed, n)
	}
}

// curve checks what random stopping releases of the best candidate.
func (c stoppingCompiler) curve() {
	const field = "random_stopping."
	spec := c.spec
	stopping := spec.GetRandomStopping()
	if k := stopping.GetPortfolio(); k < 0 || k > maxPortfolio {
		c.addf(field+"portfolio", "must be in [1, %d], or 0 for 1, is %d", maxPortfolio, k)
	}
	switch stopping.GetRelease() {
	case dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_CURVE:
	case dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_UNSPECIFIED, dparetov1.RandomStoppingRelease_RANDOM_STOPPING_RELEASE_BEST_VALUE:
		c.value()
		return
	default:
		c.addf(field+"release", "is unknown: %v", stopping.GetRelease())
		return
	}
	if n := stopping.GetCurvePoints(); n < 0 || n > maxCurvePoints {
		c.addf(field+"curve_points", "must be in [1, %d], or 0 for %d, is %d", maxCurvePoints, defaultCurvePoints, n)
	}
	if spec.GetCheckpointParameter() == "" {
		c.addf("checkpoint_parameter", "must be set with RANDOM_STOPPING_RELEASE_CURVE: a curve has the states of a run")
	}
}

// value checks that a study that releases one value asks for nothing of a curve.
func (c stoppingCompiler) value() {
	spec := c.spec
	stopping := spec.GetRandomStopping()
	const curve = "RANDOM_STOPPING_RELEASE_CURVE"
	if stopping.GetPortfolio() > 1 {
		c.addf("random_stopping.portfolio", "must be 1 or unset without %s: several runs have no single value, is %d", curve, stopping.GetPortfolio())
	}
	if stopping.GetCurvePoints() != 0 {
		c.addf("random_stopping.curve_points", "must be unset without %s, is %d", curve, stopping.GetCurvePoints())
	}
	if spec.GetCheckpointParameter() != "" {
		c.addf("checkpoint_parameter", "must not be set with random_stopping, except with %s: a run is one candidate, at its end", curve)
	}
}

// score checks the metric that chooses the best trial, and how it is protected.
func (c stoppingCompiler) score() {
	stopping, metrics := c.spec.GetRandomStopping(), c.spec.GetMetrics()
	i := slices.IndexFunc(metrics, func(m *dparetov1.MetricSpec) bool { return m.GetId() == stopping.GetMetric() })
	switch {
	case i < 0:
		c.addf("random_stopping.metric", "%q is not a metric", stopping.GetMetric())
	case metrics[i].GetReported() == nil || metrics[i].GetRole() != dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE:
		c.addf("random_stopping.metric", "%q must be a reported objective", stopping.GetMetric())
	default:
		if n, size := stopping.GetTestSetSize(), metrics[i].GetReported().GetSampleSize(); n > 0 && size != 0 && size != float64(n) {
			c.addf(fmt.Sprintf("metrics[%d].reported.sample_size", i), "must be test_set_size, %d, or unset with random_stopping, is %g", n, size)
		}
		for j := range metrics {
			if j != i && metrics[j].GetReported() != nil {
				c.addf(fmt.Sprintf("metrics[%d].reported", j), "must not be set with random_stopping: %q is the only reported metric, since no other is ever shown", stopping.GetMetric())
			}
		}
	}
	switch n, epsilon := stopping.GetTestSetSize(), stopping.GetTestEpsilon(); {
	case n < 0 || n > maxTestSet:
		c.addf("random_stopping.test_set_size", "must be in [0, 2^40], is %d", n)
	case n == 0 && epsilon != 0:
		c.addf("random_stopping.test_epsilon", "is only for studies with test_set_size")
	case n > 0 && !(epsilon > 0 && !math.IsInf(epsilon, 1)):
		c.addf("random_stopping.test_epsilon", "must be positive and finite, is %g", epsilon)
	}
	if c.spec.GetTestLedger() != "" && stopping.GetTestSetSize() == 0 {
		c.addf("test_ledger", "needs random_stopping.test_set_size: without it there is no guarantee for the test records")
	}
}

// mechanism checks that a mechanism says what a trial costs, for curves also of every state of a run.
func (c stoppingCompiler) mechanism() {
	if len(c.spec.GetMetrics()) > 0 && !hasMechanism(c.spec) {
		c.addf("random_stopping", "needs a metric computed from a privacy mechanism, for the cost of a trial for the training records")
		return
	}
	if c.compiled == nil {
		return // a metric with violations has no mechanism
	}
	id, function := c.compiled.Metrics.Mechanism("")
	if fault := privacy.DeltaFault(searchDelta(c.compiled)); fault != "" {
		c.addf("random_stopping.delta", "%s; if it is not set it is the delta of %s", fault, id)
	}
	if !releasesCurve(c.compiled) {
		return
	}
	if !slices.Contains(c.compiled.Objectives(), id) {
		c.addf("random_stopping.release", "needs metric %q, the ε of a run, to be an objective: curves are compared by their hypervolume", id)
	}
	if !function.CoversCheckpoints() {
		c.addf("random_stopping.release", "must be RANDOM_STOPPING_RELEASE_BEST_VALUE with the mechanism of metric %q, which covers the last state of a run only; dp_sgd and dp_ftrl cover all states", id)
	}
}
