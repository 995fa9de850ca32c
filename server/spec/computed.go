package spec

import (
	"fmt"
	"math"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/accounting"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/suggest/space"
)

// Codes of warnings that the server itself adds.
const (
	// warnNotComputable marks a computed metric that has no value at a configuration.
	warnNotComputable = "NOT_COMPUTABLE"
	// WarnReportDiffers marks a worker's own value of a computed metric that differs
	// from the computed one.
	WarnReportDiffers = "REPORT_DIFFERS"
)

// Compute returns the computed metrics of a configuration by id, and a warning for
// each that has no value there.
//
// It remembers its latest answers where they may take long (see ComputesAtOnce).
func (m *Metrics) Compute(point space.Point) (map[string]*dparetov1.MetricValue, []*dparetov1.Warning) {
	if m.ComputesAtOnce() {
		return m.compute(point)
	}
	values, warnings, ok := m.latest.get(point)
	if !ok {
		values, warnings = m.compute(point)
		m.latest.put(point, values, warnings)
	}
	return values, warnings
}

// compute is Compute without a memory.
func (m *Metrics) compute(point space.Point) (map[string]*dparetov1.MetricValue, []*dparetov1.Warning) {
	values := make(map[string]*dparetov1.MetricValue)
	var warnings []*dparetov1.Warning
	var variables map[string]any
	for i := range m.all {
		one := &m.all[i]
		if one.computed == nil {
			continue
		}
		if variables == nil {
			variables = m.points.Variables(point)
		}
		value, warning := one.compute(variables)
		if warning != nil {
			warnings = append(warnings, warning)
		}
		values[one.id()] = value
	}
	return values, warnings
}

// ComputeOne returns a computed metric at a configuration, with a warning if it has no
// value there. It panics if there is no such metric.
func (m *Metrics) ComputeOne(id string, point space.Point) (*dparetov1.MetricValue, *dparetov1.Warning) {
	if !m.isComputed(id) {
		panic("spec: no such computed metric")
	}
	return m.all[m.index(id)].compute(m.points.Variables(point))
}

// compute returns the value of a computed metric, with a warning if it has none.
func (m *metric) compute(variables map[string]any) (*dparetov1.MetricValue, *dparetov1.Warning) {
	value, err := m.computed.value(variables)
	if err == nil {
		return value, nil
	}
	return &dparetov1.MetricValue{}, &dparetov1.Warning{
		Code:    warnNotComputable,
		Message: fmt.Sprintf("%s at this configuration: %v", notComputable(m.id()), err),
	}
}

// notComputable is how a warning that a metric cannot be computed begins.
func notComputable(id string) string { return fmt.Sprintf("metric %s has no value", id) }

// ComputesAtOnce reports whether Compute takes microseconds at any configuration: all
// computed metrics are expressions and closed forms. Other accountants can take a good part
// of a second.
func (m *Metrics) ComputesAtOnce() bool {
	return !slices.ContainsFunc(m.all, func(one metric) bool {
		private := one.spec.GetComputed().GetPrivacy()
		switch private.GetAccountant() {
		case dparetov1.Accountant_ACCOUNTANT_PURE, dparetov1.Accountant_ACCOUNTANT_PURE_ADVANCED, dparetov1.Accountant_ACCOUNTANT_GDP:
			return false
		default:
			return private != nil
		}
	})
}

// AtHand reports whether Compute answers at once at a configuration.
func (m *Metrics) AtHand(point space.Point) bool {
	return m.ComputesAtOnce() || m.latest.has(point)
}

// Mechanism returns the function behind a privacy metric, and its id: the first one for
// the id "". It returns nil if there is no such metric.
func (m *Metrics) Mechanism(id string) (string, *accounting.Function) {
	for i := range m.all {
		one := &m.all[i]
		if g, ok := one.computed.(guarantee); ok && (id == "" || one.id() == id) {
			return one.id(), g.function
		}
	}
	return id, nil
}

// known returns a computed metric as a function of points, for designers.
func (m *Metrics) known(i int, number func(*dparetov1.MetricValue, error) float64) func(space.Point) float64 {
	computed := m.all[i].computed
	return func(point space.Point) float64 { return number(computed.value(m.points.Variables(point))) }
}

// number returns the plain number of a computed value: +Inf, which is never on a
// front, where it cannot be computed.
func number(value *dparetov1.MetricValue, err error) float64 {
	if err != nil || value.Value == nil {
		return math.Inf(1)
	}
	return value.GetValue()
}

// constraintNumber is number for a metric with bounds: NaN, which is within no bounds, where
// it cannot be computed, or was not measured, as in a prior study without it.
func constraintNumber(value *dparetov1.MetricValue, err error) float64 {
	if err != nil || value == nil || value.Value == nil {
		return math.NaN()
	}
	return value.GetValue()
}

// function is the function behind a computed metric. It is safe for concurrent use.
type function interface {
	// value returns the metric at a configuration, with the details that belong in a
	// message.
	value(variables map[string]any) (*dparetov1.MetricValue, error)
	// check is the cheap part of value: it evaluates the expressions. field is the path
	// of the faulty expression below the computed source.
	check(variables map[string]any) (field string, err error)
	// search returns two cheap stand-ins for designers, good where the metric is at most
	// limit, or nil: a smooth one, and one for bounds (see accounting.Function.Search).
	search(p *Points, limit float64) (smooth, rounded func(space.Point) float64)
}

// formula is a computed metric given by an expression.
type formula struct{ expression *expression.Number }

func (f formula) value(variables map[string]any) (*dparetov1.MetricValue, error) {
	x, err := f.expression.Float(variables)
	if err != nil {
		return nil, err
	}
	return &dparetov1.MetricValue{Value: &x}, nil
}

func (f formula) check(variables map[string]any) (field string, err error) {
	_, err = f.expression.Float(variables)
	return "expression", err
}

// search implements function: the same number, without CEL.
func (f formula) search(*Points, float64) (smooth, rounded func(space.Point) float64) {
	native := f.expression.Native()
	if native == nil {
		return nil, nil
	}
	search := func(point space.Point) float64 {
		if x := native(point); !math.IsNaN(x) {
			return x
		}
		return math.Inf(1)
	}
	return search, search
}

// guarantee is a computed metric that is the ε of a mechanism.
type guarantee struct{ function *accounting.Function }

func (g guarantee) value(variables map[string]any) (*dparetov1.MetricValue, error) {
	result, err := g.function.Guarantee(variables)
	if err != nil {
		return nil, err
	}
	return &dparetov1.MetricValue{Value: &result.Epsilon, Privacy: result}, nil
}

func (g guarantee) check(variables map[string]any) (field string, err error) {
	err = g.function.Check(variables)
	if found := privacy.FieldErrors(err); len(found) > 0 {
		return "privacy." + found[0].Field, found[0]
	}
	return "privacy", err
}

// search implements function.
func (g guarantee) search(p *Points, limit float64) (smooth, rounded func(space.Point) float64) {
	s, r := g.function.Search(func(point []float64) map[string]any { return p.Variables(point) }, limit)
	if s == nil {
		return nil, nil
	}
	return func(point space.Point) float64 { return s(point) }, func(point space.Point) float64 { return r(point) }
}
