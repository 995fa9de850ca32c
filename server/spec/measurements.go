package spec

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/space"
)

const (
	// maxRuns bounds the number of runs in one value.
	maxRuns = 10_000
	// maxMagnitude bounds reported numbers, so that neither their squares nor a model
	// of them overflow. A larger one comes from a run that diverged.
	maxMagnitude = 1e100
)

// Measurements checks what workers report and derives what follows from it.
type Measurements struct {
	points  *Points
	metrics *Metrics
}

// Accept checks a worker's measurement of a configuration and returns it with
// everything that follows from it: means, standard errors, ranges, and computed metrics.
// Step 0 of a final measurement stands for the end of the run. Warnings name computed metrics
// for which the worker reports another value. Field paths begin with path, for example
// "measurement".
func (c *Measurements) Accept(path string, point space.Point, m *dparetov1.Measurement, final bool) (*dparetov1.Measurement, []*dparetov1.Warning, error) {
	if m == nil {
		return nil, nil, invalid.Field(path, "must be set")
	}
	out := proto.CloneOf(m)
	out.ReportTime = nil
	if err := c.checkMeasurement(path, point, out, final); err != nil {
		return nil, nil, err
	}
	warnings := c.complete(out, c.points.At(point, out.GetStep()))
	return out, warnings, nil
}

// CheckRuns checks that a measurement at a path is of a number of runs, the replicates of its trial.
// Each reported metric must have that many runs. A value stands for one run; with a standard error,
// for the mean of any number of runs, or for one of which the error is known.
func (c *Measurements) CheckRuns(path string, m *dparetov1.Measurement, replicates int32) error {
	var fields invalid.Fields
	for id, value := range m.GetMetrics() {
		if value == nil || c.metrics.isComputed(id) { // the latter is of the configuration, not of runs
			continue
		}
		field := fmt.Sprintf("%s.metrics[%q]", path, id)
		switch n := len(value.GetRuns()); {
		case n > 0 && n != int(replicates):
			fields.Addf(field+".runs", "must hold as many values as the trial has replicates, %d, holds %d", replicates, n)
		case n == 0 && value.Value != nil && value.StandardError == nil && replicates != 1:
			fields.Addf(field+".value", "has 1 run, but the trial requires %d replicates: report their values as runs, or their mean as value with its standard_error", replicates)
		}
	}
	return fields.Err()
}

// RunsOf returns how many runs a measurement from elsewhere is of: as many as its reported metrics
// have, or one if they have single values. A mean with a standard error may be of any number, and
// counts as otherwise.
func (c *Measurements) RunsOf(m *dparetov1.Measurement, otherwise int32) int32 {
	runs, hasMean := 0, false
	for id, value := range m.GetMetrics() {
		if value != nil && !c.metrics.isComputed(id) {
			runs = max(runs, len(value.GetRuns()))
			hasMean = hasMean || value.StandardError != nil
		}
	}
	switch {
	case runs > 0:
		return int32(min(runs, maxRuns)) // more are refused
	case hasMean:
		return otherwise
	default:
		return 1
	}
}

// checkMeasurement checks a worker's measurement, and sets the step of a final one that has
// none.
func (c *Measurements) checkMeasurement(path string, point space.Point, m *dparetov1.Measurement, final bool) error {
	var fields invalid.Fields
	c.checkStep(path, point, m, final, &fields)
	if d := m.GetElapsed(); d != nil && (d.CheckValid() != nil || d.AsDuration() < 0) {
		fields.Addf(path+".elapsed", "must not be negative, is %v", d.AsDuration())
	}
	for i := range c.metrics.all {
		metric := &c.metrics.all[i]
		id := metric.id()
		value, ok := m.GetMetrics()[id]
		switch {
		case ok:
			checkValue(fmt.Sprintf("%s.metrics[%q]", path, id), metric, value, &fields)
			checkNoise(fmt.Sprintf("%s.metrics[%q]", path, id), metric, value, &fields)
			if i == c.metrics.cost {
				checkCost(fmt.Sprintf("%s.metrics[%q]", path, id), value, &fields)
			}
		case metric.computed == nil && metric.spec.GetRole() == dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE:
			fields.Addf(fmt.Sprintf("%s.metrics[%q]", path, id), "must be set: it is an objective")
		case metric.computed == nil && metric.spec.GetRole() == dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT:
			fields.Addf(fmt.Sprintf("%s.metrics[%q]", path, id), "must be set: it is a constraint")
		}
	}
	for id := range m.GetMetrics() {
		if c.metrics.index(id) < 0 {
			fields.Addf(fmt.Sprintf("%s.metrics[%q]", path, id), "is not a metric of the study")
		}
	}
	return fields.Err()
}

func (c *Measurements) checkStep(path string, point space.Point, m *dparetov1.Measurement, final bool, fields *invalid.Fields) {
	last := c.points.LastStep(point)
	switch step := m.GetStep(); {
	case c.points.checkpoint >= 0 && final && step == 0:
		m.Step = last
	case c.points.checkpoint >= 0 && (step < 1 || step > last):
		fields.Addf(path+".step", "must be in [1, %d], the trial's value of %s, is %d",
			last, c.points.space.Parameters[c.points.checkpoint].Name, step)
	case step < 0:
		fields.Addf(path+".step", "must not be negative, is %d", step)
	}
}

// checkValue checks one reported value.
func checkValue(field string, m *metric, value *dparetov1.MetricValue, fields *invalid.Fields) {
	if value.Min != nil || value.Max != nil || value.Reported != nil || value.GetPrivacy() != nil {
		fields.Addf(field, "min, max, reported and privacy are set by the server")
	}
	runs := value.GetRuns()
	switch {
	case value.Value == nil && len(runs) == 0:
		fields.Addf(field, "one of value and runs must be set")
	case value.Value != nil && len(runs) > 0:
		fields.Addf(field, "only one of value and runs may be set: the server derives the mean")
	case len(runs) > maxRuns:
		fields.Addf(field+".runs", "must hold at most %d runs, holds %d", maxRuns, len(runs))
	case len(runs) > 0:
		for i, x := range runs {
			checkNumber(fmt.Sprintf("%s.runs[%d]", field, i), m, x, fields)
		}
	default:
		checkNumber(field+".value", m, value.GetValue(), fields)
	}
	if value.StandardError != nil {
		most := maxMagnitude
		if m.spec.GetTransform() == dparetov1.Transform_TRANSFORM_LOGIT {
			most = 1
		}
		if se := value.GetStandardError(); !(se >= 0 && se <= most) {
			fields.Addf(field+".standard_error", "must be in [0, %g], is %g", most, se)
		}
		if len(runs) > 0 {
			fields.Addf(field+".standard_error", "is derived when runs is set")
		}
	}
}

// checkNoise checks a reported value against the noise that the spec gives for the metric.
func checkNoise(field string, m *metric, value *dparetov1.MetricValue, fields *invalid.Fields) {
	runs := value.GetRuns()
	switch m.spec.GetReported().GetNoise() {
	case dparetov1.Noise_NOISE_NONE:
		if se := value.GetStandardError(); se > 0 {
			fields.Addf(field+".standard_error", "must be 0 or unset: the metric has NOISE_NONE; is %g", se)
		}
		if len(runs) > 1 && slices.Min(runs) != slices.Max(runs) {
			fields.Addf(field+".runs", "must be equal: the metric has NOISE_NONE; are %g to %g", slices.Min(runs), slices.Max(runs))
		}
	case dparetov1.Noise_NOISE_KNOWN:
		if value.StandardError == nil && len(runs) < 2 {
			fields.Addf(field+".standard_error", "must be set, or runs must hold at least 2 values: the metric has NOISE_KNOWN")
		}
	default:
	}
}

// checkNumber checks that a reported number is possible under the metric's transform.
func checkNumber(field string, m *metric, x float64, fields *invalid.Fields) {
	switch transform := m.spec.GetTransform(); {
	case math.IsNaN(x) || math.IsInf(x, 0):
		fields.Addf(field, "must be finite, is %g (report a run that diverged as infeasible)", x)
	case math.Abs(x) > maxMagnitude:
		fields.Addf(field, "must be at most %g in magnitude, is %g (report a run that diverged as infeasible)", maxMagnitude, x)
	case transform == dparetov1.Transform_TRANSFORM_LOGIT && (x < 0 || x > 1):
		fields.Addf(field, "must be in [0, 1] under TRANSFORM_LOGIT, is %g", x)
	case transform == dparetov1.Transform_TRANSFORM_LOG && x < 0:
		fields.Addf(field, "must not be negative under TRANSFORM_LOG, is %g", x)
	}
}

// checkCost checks that the reported cost of a trial is positive.
func checkCost(field string, value *dparetov1.MetricValue, fields *invalid.Fields) {
	if value.Value != nil && value.GetValue() <= 0 {
		fields.Addf(field+".value", "must be positive: it is the study's cost; is %g", value.GetValue())
	}
	for i, x := range value.GetRuns() {
		if x <= 0 {
			fields.Addf(fmt.Sprintf("%s.runs[%d]", field, i), "must be positive: it is the study's cost; is %g", x)
		}
	}
}

// complete adds summaries of runs and computed metrics, in place.
func (c *Measurements) complete(m *dparetov1.Measurement, point space.Point) []*dparetov1.Warning {
	for _, value := range m.GetMetrics() {
		summarize(value)
	}
	if m.Metrics == nil {
		m.Metrics = make(map[string]*dparetov1.MetricValue)
	}
	computed, warnings := c.metrics.Compute(point)
	for i := range c.metrics.all {
		metric := &c.metrics.all[i]
		value, ok := computed[metric.id()]
		if !ok {
			continue
		}
		if reported := m.GetMetrics()[metric.id()]; reported != nil {
			value.Reported = reported.Value
			if w := metric.difference(value, m.GetStep()); w != nil {
				warnings = append(warnings, w)
			}
		}
		m.Metrics[metric.id()] = value
	}
	return warnings
}

// closeTo reports whether x and y differ by at most tolerance relative to the larger.
func closeTo(x, y, tolerance float64) bool {
	if math.IsInf(x, 0) || math.IsInf(y, 0) {
		return x == y
	}
	return math.Abs(x-y) <= tolerance*max(math.Abs(x), math.Abs(y))
}

// summarize derives mean, standard error and range of runs.
func summarize(value *dparetov1.MetricValue) {
	runs := value.GetRuns()
	if len(runs) == 0 {
		return
	}
	n := float64(len(runs))
	mean := 0.0
	for _, x := range runs {
		mean += x / n
	}
	lo, hi := slices.Min(runs), slices.Max(runs)
	mean = min(max(mean, lo), hi) // rounding must not leave the range
	value.Value, value.Min, value.Max = &mean, &lo, &hi
	if len(runs) > 1 {
		squares := 0.0
		for _, x := range runs {
			squares += (x - mean) * (x - mean)
		}
		se := math.Sqrt(squares / (n - 1) / n)
		value.StandardError = &se
	}
}

// difference returns the warning that a worker's own value of a computed metric differs
// from the computed one, or nil.
func (m *metric) difference(value *dparetov1.MetricValue, step int64) *dparetov1.Warning {
	if value.Reported == nil || value.Value == nil {
		return nil
	}
	tolerance := defaultReportTolerance
	if t := m.spec.GetComputed().ReportTolerance; t != nil {
		tolerance = *t
	}
	if closeTo(value.GetReported(), value.GetValue(), tolerance) {
		return nil
	}
	return &dparetov1.Warning{
		Code: WarnReportDiffers,
		Message: fmt.Sprintf("%s %g at step %d, the server computes %g",
			reportOf(m.id()), value.GetReported(), step, value.GetValue()),
	}
}

// maxWarnings bounds the warnings of one code about a trial: the first ones say enough, and a worker
// may cause one with every measurement.
const maxWarnings = 20

// AddWarnings returns the warnings with others added that are not yet among them, at most 20 of one
// code.
func AddWarnings(warnings []*dparetov1.Warning, added ...*dparetov1.Warning) []*dparetov1.Warning {
	for _, w := range added {
		alike := 0
		isKnown := slices.ContainsFunc(warnings, func(o *dparetov1.Warning) bool {
			if o.GetCode() == w.GetCode() {
				alike++
			}
			return proto.Equal(o, w)
		})
		if !isKnown && alike < maxWarnings {
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// reportOf is how a warning that a worker's value differs begins.
func reportOf(id string) string { return fmt.Sprintf("the worker reported %s =", id) }
