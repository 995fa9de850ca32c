package spec

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

const (
	// maxRuns bounds the number of runs in one value.
	maxRuns = 10_000
	// maxMagnitude bounds reported numbers, so that neither their squares nor a model
	// of them overflow. What is larger has diverged.
	maxMagnitude = 1e100
)

// Compute returns the computed metrics of a configuration by id, and a warning for
// each that has no value there.
//
// It remembers its latest answers where they may take long (see ComputesAtOnce).
func (s *Study) Compute(point space.Point) (map[string]*dparetov1.MetricValue, []*dparetov1.Warning) {
	if s.ComputesAtOnce() {
		return s.compute(point)
	}
	metrics, warnings, ok := s.computed.get(point)
	if !ok {
		metrics, warnings = s.compute(point)
		s.computed.put(point, metrics, warnings)
	}
	return metrics, warnings
}

// compute computes what Compute returns.
func (s *Study) compute(point space.Point) (map[string]*dparetov1.MetricValue, []*dparetov1.Warning) {
	values := make(map[string]*dparetov1.MetricValue)
	var warnings []*dparetov1.Warning
	var variables map[string]any
	for i := range s.metrics {
		m := &s.metrics[i]
		if m.computed == nil {
			continue
		}
		if variables == nil {
			variables = s.variables(point)
		}
		value, warning := m.compute(variables)
		if warning != nil {
			warnings = append(warnings, warning)
		}
		values[m.spec.GetId()] = value
	}
	return values, warnings
}

// Measurement checks a worker's measurement of a configuration and returns it with
// everything that follows from it: means, standard errors, ranges, and computed
// metrics. final tells a final measurement, whose step 0 stands for the end of the
// run. Warnings tell where the worker's own values of computed metrics differ. Field
// paths begin with path, for example "measurement".
func (s *Study) Measurement(path string, point space.Point, m *dparetov1.Measurement, final bool) (*dparetov1.Measurement, []*dparetov1.Warning, error) {
	if m == nil {
		return nil, nil, invalid.Field(path, "must be set")
	}
	out := proto.CloneOf(m)
	out.ReportTime = nil
	if err := s.checkMeasurement(path, point, out, final); err != nil {
		return nil, nil, err
	}
	warnings := s.complete(out, s.At(point, out.GetStep()))
	return out, warnings, nil
}

// checkMeasurement checks what a worker reported, and sets the step of a final measurement
// that has none.
func (s *Study) checkMeasurement(path string, point space.Point, m *dparetov1.Measurement, final bool) error {
	var fields invalid.Fields
	s.checkStep(path, point, m, final, &fields)
	if d := m.GetElapsed(); d != nil && (d.CheckValid() != nil || d.AsDuration() < 0) {
		fields.Addf(path+".elapsed", "must not be negative, is %v", d.AsDuration())
	}
	for i := range s.metrics {
		metric := &s.metrics[i]
		id := metric.spec.GetId()
		value, ok := m.GetMetrics()[id]
		switch {
		case ok:
			checkValue(fmt.Sprintf("%s.metrics[%q]", path, id), metric, value, &fields)
			if i == s.cost {
				checkCost(fmt.Sprintf("%s.metrics[%q]", path, id), value, &fields)
			}
		case metric.computed == nil && metric.spec.GetRole() == dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE:
			fields.Addf(fmt.Sprintf("%s.metrics[%q]", path, id), "must be set: it is an objective")
		case metric.computed == nil && metric.spec.GetRole() == dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT:
			fields.Addf(fmt.Sprintf("%s.metrics[%q]", path, id), "must be set: it is a constraint")
		}
	}
	for id := range m.GetMetrics() {
		if !slices.ContainsFunc(s.metrics, func(metric metric) bool { return metric.spec.GetId() == id }) {
			fields.Addf(fmt.Sprintf("%s.metrics[%q]", path, id), "is not a metric of the study")
		}
	}
	return fields.Err()
}

func (s *Study) checkStep(path string, point space.Point, m *dparetov1.Measurement, final bool, fields *invalid.Fields) {
	last := s.LastStep(point)
	switch step := m.GetStep(); {
	case s.checkpoint >= 0 && final && step == 0:
		m.Step = last
	case s.checkpoint >= 0 && (step < 1 || step > last):
		fields.Addf(path+".step", "must be in [1, %d], the trial's value of %s, is %d",
			last, s.Problem.Space.Parameters[s.checkpoint].Name, step)
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
		if se := value.GetStandardError(); !(se >= 0 && se <= maxMagnitude) {
			fields.Addf(field+".standard_error", "must be in [0, %g], is %g", maxMagnitude, se)
		}
		if len(runs) > 0 {
			fields.Addf(field+".standard_error", "is derived when runs is set")
		}
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

// complete derives what the server derives, in place.
func (s *Study) complete(m *dparetov1.Measurement, point space.Point) []*dparetov1.Warning {
	for _, value := range m.GetMetrics() {
		summarize(value)
	}
	if m.Metrics == nil {
		m.Metrics = make(map[string]*dparetov1.MetricValue)
	}
	computed, warnings := s.Compute(point)
	for i := range s.metrics {
		spec := s.metrics[i].spec
		value, ok := computed[spec.GetId()]
		if !ok {
			continue
		}
		if reported := m.GetMetrics()[spec.GetId()]; reported != nil {
			value.Reported = reported.Value
			if w := s.difference(spec.GetId(), value, m.GetStep()); w != nil {
				warnings = append(warnings, w)
			}
		}
		m.Metrics[spec.GetId()] = value
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

// Statistic says which of a configuration's runs stand for it.
type Statistic int

// The statistics of runs.
const (
	Mean Statistic = iota
	Best
	Worst
)

// ObjectiveValues returns the objectives of a measurement in the order of the problem's:
// +Inf where a computed one has no value.
func (s *Study) ObjectiveValues(m *dparetov1.Measurement, statistic Statistic) []float64 {
	values := make([]float64, len(s.objectives))
	for i, k := range s.objectives {
		spec := s.metrics[k].spec
		value := m.GetMetrics()[spec.GetId()]
		values[i] = number(value, nil)
		if value.Min == nil || statistic == Mean {
			continue
		}
		if (statistic == Best) == (spec.GetGoal() == dparetov1.Goal_GOAL_MINIMIZE) {
			values[i] = value.GetMin()
		} else {
			values[i] = value.GetMax()
		}
	}
	return values
}

// ConstraintValues returns the means of the metrics with bounds of a measurement in the
// order of the problem's constraints: NaN where there is none.
func (s *Study) ConstraintValues(m *dparetov1.Measurement) []float64 {
	values := make([]float64, len(s.constrained))
	for i, k := range s.constrained {
		values[i] = constraintNumber(m.GetMetrics()[s.metrics[k].spec.GetId()], nil)
	}
	return values
}

// Acceptable reports whether the means of a measurement are finite and within all
// bounds on metrics.
func (s *Study) Acceptable(m *dparetov1.Measurement) bool {
	for i, v := range s.ConstraintValues(m) {
		c := &s.Problem.Constraints[i]
		if !(v >= c.Lower && v <= c.Upper) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// Evaluation converts a completed measurement of a configuration for designers.
func (s *Study) Evaluation(point space.Point, m *dparetov1.Measurement) suggest.Evaluation {
	metrics := slices.Concat(s.objectives, s.constrained)
	e := suggest.Evaluation{
		Point:     s.At(point, m.GetStep()),
		Values:    append(s.ObjectiveValues(m, Mean), s.ConstraintValues(m)...),
		StdErrors: make([]float64, len(metrics)),
		Runs:      1,
	}
	if s.cost >= 0 {
		// 0 if it was not reported; a prior study may have let it be negative.
		e.Cost = max(0, m.GetMetrics()[s.metrics[s.cost].spec.GetId()].GetValue())
	}
	for i, k := range metrics {
		metric := &s.metrics[k]
		value := m.GetMetrics()[metric.spec.GetId()]
		switch {
		case value == nil: // in a prior study
			e.StdErrors[i] = math.NaN()
		case metric.computed != nil:
			e.StdErrors[i] = 0
		case value.StandardError != nil:
			e.StdErrors[i] = value.GetStandardError()
		default:
			e.StdErrors[i] = math.NaN()
		}
		if metric.computed == nil {
			e.Runs = max(e.Runs, len(value.GetRuns()))
		}
	}
	return e
}

// Guarantee returns the guarantee of the study's first privacy metric among metrics,
// or nil if the study has none.
func (s *Study) Guarantee(metrics map[string]*dparetov1.MetricValue) *dparetov1.PrivacyGuarantee {
	for i := range s.metrics {
		if g := metrics[s.metrics[i].spec.GetId()].GetPrivacy(); g != nil {
			return g
		}
	}
	return nil
}
