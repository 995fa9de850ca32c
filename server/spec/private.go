package spec

import (
	"fmt"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy/transcript"
	"github.com/dpareto/dpareto/server/accounting"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/space"
)

// Limits of private_mode.
const (
	maxShards        = 10_000
	maxPrivateValues = 1_000_000_000
	// maxTestSet bounds the number of test records, so that the noise on a value never
	// falls below its rounding.
	maxTestSet = 1 << 40
	// maxNoise bounds the standard deviation of the noise: nothing is left of a value in
	// [0, 1] far below it.
	maxNoise = 1e6
)

// IsPublication reports whether all that a study ever publishes is paid when it is created.
func IsPublication(spec *dparetov1.StudySpec) bool {
	return spec.GetPrivateMode() != nil || spec.GetRandomStopping() != nil
}

// IsPrivate reports whether the study keeps noisy values only.
func (s *Study) IsPrivate() bool { return s.Spec.GetPrivateMode() != nil }

// Shards returns the number of shards of the training set.
func (s *Study) Shards() int { return max(1, int(s.Spec.GetPrivateMode().GetTrainingShards())) }

// ReportedMetrics returns the number of metrics that workers report.
func (s *Study) ReportedMetrics() int64 {
	n := int64(0)
	for i := range s.metrics {
		if s.metrics[i].computed == nil {
			n++
		}
	}
	return n
}

// MaxValues returns the number of noisy values that private_mode asks for: by default one
// for every reported metric of every trial.
func (s *Study) MaxValues() int64 {
	if n := s.Spec.GetPrivateMode().GetMaxValues(); n > 0 {
		return n
	}
	return s.Spec.GetBudget().GetMaxTrials() * s.ReportedMetrics()
}

// MostValues returns the largest number of values that one hand-out of a configuration can
// bring: those of every step on the way, and final ones.
func (s *Study) MostValues(point space.Point) int64 {
	return s.ReportedMetrics() * (s.LastStep(point) + 1)
}

// Divergence returns the bound on the Rényi divergence of an order of one run of the first
// privacy metric's mechanism, +Inf where it cannot be computed.
func (s *Study) Divergence(point space.Point, order float64) float64 {
	_, function := s.Mechanism("")
	rho, err := function.Divergence(s.variables(point), order)
	if err != nil || math.IsNaN(rho) {
		return math.Inf(1)
	}
	return rho
}

// DivergenceError returns why [Study.Divergence] cannot be computed, or nil.
func (s *Study) DivergenceError(point space.Point, order float64) error {
	_, function := s.Mechanism("")
	_, err := function.Divergence(s.variables(point), order)
	return err
}

// private checks private_mode.
func (c *compiler) private(study *Study) {
	mode := study.Spec.GetPrivateMode()
	if mode == nil {
		return
	}
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
	if d := mode.GetDelta(); !(d > 0 && d < 1) {
		c.addf(at("delta"), "must be in (0, 1), is %g", d)
	}
	if n := mode.GetTrainingShards(); n < 0 || n > maxShards {
		c.addf(at("training_shards"), "must be in [1, %d], or 0 for the default, is %d", maxShards, n)
	}
	c.privateValues(study)
	c.privateMetrics(study)
	if c.fields.Empty() {
		// That of a study whose max_trials has been changed since is a little different; its
		// values carry their own standard errors.
		noise, err := transcript.Noise(mode.GetTestSetSize(), study.MaxValues(), mode.GetTestEpsilon(), mode.GetDelta())
		if err != nil || !(noise <= maxNoise) {
			c.addf(at("test_epsilon"), "leaves nothing of %d values over %d test records", study.MaxValues(), mode.GetTestSetSize())
		}
		study.noise = noise
	}
	if study.Spec.GetRandomStopping() != nil {
		c.addf("random_stopping", "is not for studies with private_mode")
	}
	if _, isMetric := study.Spec.GetCost().GetMeasure().(*dparetov1.CostSpec_Metric); isMetric {
		c.addf("cost.metric", "is not for studies with private_mode, which keep no measured cost")
	}
	if len(study.Spec.GetPriorStudies()) > 0 && !mode.GetPriorStudiesArePublic() {
		c.addf(at("prior_studies_are_public"), "must be true: nothing protects what the prior studies hold")
	}
}

// privateValues checks the number of values against the budget of trials.
func (c *compiler) privateValues(study *Study) {
	mode, trials, metrics := study.Spec.GetPrivateMode(), study.Spec.GetBudget().GetMaxTrials(), study.ReportedMetrics()
	switch n := mode.GetMaxValues(); {
	case trials < 1:
		c.addf("budget.max_trials", "must be set with private_mode: it bounds what is published")
	case metrics < 1:
		c.addf("metrics", "must hold a reported one with private_mode")
	case trials > maxPrivateValues/metrics:
		c.addf("budget.max_trials", "must be at most %d with %d reported metrics and private_mode, is %d", maxPrivateValues/metrics, metrics, trials)
	case n < 0 || n > maxPrivateValues:
		c.addf("private_mode.max_values", "must be in [1, %d], or 0 for the default, is %d", maxPrivateValues, n)
	case n > 0 && n < trials*metrics:
		c.addf("private_mode.max_values", "must be at least %d, max_trials times the %d reported metrics, is %d", trials*metrics, metrics, n)
	}
}

// privateMetrics checks what private_mode asks of metrics.
func (c *compiler) privateMetrics(study *Study) {
	mode := study.Spec.GetPrivateMode()
	_, function := study.Mechanism("")
	if function == nil {
		c.addf("metrics", "must hold one computed from a privacy mechanism with private_mode")
	}
	for i := range study.metrics {
		m := study.metrics[i].spec
		field := fmt.Sprintf("metrics[%d]", i)
		if m.GetReported() == nil {
			continue
		}
		if n := m.GetReported().GetSampleSize(); n != 0 && n != float64(mode.GetTestSetSize()) {
			c.addf(field+".reported.sample_size", "must be test_set_size, %d, or unset with private_mode, is %g", mode.GetTestSetSize(), n)
		}
	}
}

// warnNoneOnTheWay is the code of the warning that a study takes no measurement on the way.
const warnNoneOnTheWay = "NO_VALUES_ON_THE_WAY"

// privateWarnings refuses a guarantee that is none, and warns of a checkpoint parameter that
// the number of values leaves without use.
func (c *compiler) privateWarnings(study *Study) {
	if study.IsPrivate() && study.Checkpoints() && study.MaxValues() == study.Spec.GetBudget().GetMaxTrials()*study.ReportedMetrics() {
		study.Warnings = append(study.Warnings, &dparetov1.Warning{
			Code: warnNoneOnTheWay,
			Message: fmt.Sprintf("private_mode.max_values is %d, which the final values of all trials take: no measurement on the way of %s is kept; a larger number makes room for some, and all values noisier",
				study.MaxValues(), study.Spec.GetCheckpointParameter()),
		})
	}
	for _, w := range study.Warnings {
		if study.IsPrivate() && w.GetCode() == accounting.WarnSamplingMismatch {
			c.addf("private_mode", "needs a guarantee; the privacy metric is accounted for another sampler than the trainer's")
		}
	}
}

// Clipped returns what a study with private_mode takes of a worker's measurement before it
// is checked: the step, and the mean of every reported metric over its runs, each clipped
// to [0, 1]. There may be as many runs as a trial is charged for. No error tells a value.
func (s *Study) Clipped(path string, m *dparetov1.Measurement) (*dparetov1.Measurement, error) {
	if m == nil {
		return nil, invalid.Field(path, "must be set")
	}
	out := &dparetov1.Measurement{Step: m.GetStep(), Metrics: make(map[string]*dparetov1.MetricValue)}
	var fields invalid.Fields
	most := min(maxRuns, int(s.Replicates()))
	for id, value := range m.GetMetrics() {
		if s.isComputed(id) {
			continue
		}
		field := fmt.Sprintf("%s.metrics[%q]", path, id)
		runs := value.GetRuns()
		if value.Value != nil && len(runs) > 0 || len(runs) > most {
			fields.Addf(field, "must have a value, or at most %d runs, for which a trial is charged", most)
			continue
		}
		if len(runs) == 0 {
			if value == nil || value.Value == nil {
				fields.Addf(field, "one of value and runs must be set")
				continue
			}
			runs = []float64{value.GetValue()}
		}
		mean := 0.0
		for _, x := range runs {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				fields.Addf(field, "must be finite (report a run that diverged as infeasible)")
				break
			}
			mean += min(max(x, 0), 1) / float64(len(runs))
		}
		mean = min(max(mean, 0), 1)
		out.Metrics[id] = &dparetov1.MetricValue{Value: &mean}
	}
	if err := fields.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

// AddNoise adds noise of a standard deviation to every reported value of a measurement
// that Measurement returned, in place and in the order of the metrics, and says so in its
// standard error. It returns the number of values.
func (s *Study) AddNoise(m *dparetov1.Measurement, standardDeviation float64, noisy func(value float64) float64) int64 {
	n := int64(0)
	for i := range s.metrics {
		value := m.GetMetrics()[s.metrics[i].spec.GetId()]
		if s.metrics[i].computed != nil || value == nil {
			continue
		}
		value.Value = new(noisy(value.GetValue()))
		value.StandardError = new(standardDeviation)
		n++
	}
	return n
}

// checkNoisy checks what the values of a study that keeps noisy ones have in common.
func (s *Study) checkNoisy(path string, m *dparetov1.Measurement, fields *invalid.Fields) {
	if !s.IsNoisy() {
		return
	}
	if m.GetElapsed() != nil {
		fields.Addf(path+".elapsed", "is not kept beside noisy values")
	}
	for id, value := range m.GetMetrics() {
		field := fmt.Sprintf("%s.metrics[%q]", path, id)
		switch {
		case s.isComputed(id):
			if value.GetReported() != 0 {
				fields.Addf(field+".reported", "is not kept beside noisy values")
			}
		case len(value.GetRuns()) > 0:
			fields.Addf(field+".runs", "is not kept beside noisy values")
		case value.StandardError == nil:
			fields.Addf(field+".standard_error", "must be that of the noise")
		}
	}
}
