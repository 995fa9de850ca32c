package spec

import (
	"math"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Metrics computes metrics and reads their values.
type Metrics struct {
	points      *Points
	all         []metric
	objectives  []int // indexes into all
	constrained []int // indexes into all, of metrics with bounds
	cost        int   // index into all of the measured cost, -1 without
	latest      memo
}

// metric is a compiled MetricSpec.
type metric struct {
	spec     *dparetov1.MetricSpec
	computed function // nil for reported metrics
	// rounded is a cheap stand-in of a computed objective, for bounds (see function).
	rounded func(space.Point) float64
}

func (m *metric) id() string { return m.spec.GetId() }

// isNoiseFree reports whether workers measure the metric without noise.
func (m *metric) isNoiseFree() bool {
	return m.spec.GetReported().GetNoise() == dparetov1.Noise_NOISE_NONE
}

// index returns the index of a metric by id, -1 without.
func (m *Metrics) index(id string) int {
	return slices.IndexFunc(m.all, func(one metric) bool { return one.id() == id })
}

func (m *Metrics) isComputed(id string) bool {
	i := m.index(id)
	return i >= 0 && m.all[i].computed != nil
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
func (m *Metrics) ObjectiveValues(measured *dparetov1.Measurement, statistic Statistic) []float64 {
	values := make([]float64, len(m.objectives))
	for i, k := range m.objectives {
		spec := m.all[k].spec
		value := measured.GetMetrics()[spec.GetId()]
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
func (m *Metrics) ConstraintValues(measured *dparetov1.Measurement) []float64 {
	values := make([]float64, len(m.constrained))
	for i, k := range m.constrained {
		values[i] = constraintNumber(measured.GetMetrics()[m.all[k].id()], nil)
	}
	return values
}

// Acceptable reports whether the means of a measurement are finite and within all
// bounds on metrics.
func (m *Metrics) Acceptable(measured *dparetov1.Measurement) bool {
	for i, v := range m.ConstraintValues(measured) {
		lower, upper := bounds(m.all[m.constrained[i]].spec)
		if !(v >= lower && v <= upper) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// bounds returns the bounds of a metric, infinite where there is none.
func bounds(m *dparetov1.MetricSpec) (lower, upper float64) {
	lower, upper = math.Inf(-1), math.Inf(1)
	if b := m.GetBounds(); b != nil {
		if b.Min != nil {
			lower = b.GetMin()
		}
		if b.Max != nil {
			upper = b.GetMax()
		}
	}
	return lower, upper
}

// Evaluation converts a completed measurement of a configuration for designers.
func (m *Metrics) Evaluation(point space.Point, measured *dparetov1.Measurement) suggest.Evaluation {
	modelled := slices.Concat(m.objectives, m.constrained)
	e := suggest.Evaluation{
		Point:     m.points.At(point, measured.GetStep()),
		Values:    append(m.ObjectiveValues(measured, Mean), m.ConstraintValues(measured)...),
		StdErrors: make([]float64, len(modelled)),
		Runs:      1,
	}
	if m.cost >= 0 {
		// 0 if it was not reported; a prior study may have let it be negative.
		e.Cost = max(0, measured.GetMetrics()[m.all[m.cost].id()].GetValue())
	}
	for i, k := range modelled {
		value := measured.GetMetrics()[m.all[k].id()]
		isComputed := m.all[k].computed != nil
		switch {
		case value == nil: // in a prior study
			e.StdErrors[i] = math.NaN()
		case isComputed:
			e.StdErrors[i] = 0
		case value.StandardError != nil:
			e.StdErrors[i] = value.GetStandardError()
		default:
			e.StdErrors[i] = math.NaN()
		}
		if !isComputed {
			e.Runs = max(e.Runs, len(value.GetRuns()))
		}
	}
	return e
}

// Guarantee returns the guarantee of the study's first privacy metric among values, or
// nil if there is none.
func (m *Metrics) Guarantee(values map[string]*dparetov1.MetricValue) *dparetov1.PrivacyGuarantee {
	for i := range m.all {
		if g := values[m.all[i].id()].GetPrivacy(); g != nil {
			return g
		}
	}
	return nil
}
