package spec

import (
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/accounting"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/suggest/space"
)

// Codes of warnings that the server itself adds.
const (
	// WarnNotComputable marks a computed metric that has no value at a configuration.
	WarnNotComputable = "NOT_COMPUTABLE"
	// WarnReportDiffers marks a worker's own value of a computed metric that differs
	// from the computed one.
	WarnReportDiffers = "REPORT_DIFFERS"
)

// function is the function behind a computed metric. It is safe for concurrent use.
type function interface {
	// value returns the metric at a configuration, with the details that belong in a
	// message.
	value(variables map[string]any) (*dparetov1.MetricValue, error)
}

// number returns the plain number of a computed value: +Inf, which is never on a
// front, where it cannot be computed.
func number(value *dparetov1.MetricValue, err error) float64 {
	if err != nil || value.Value == nil {
		return math.Inf(1)
	}
	return value.GetValue()
}

// computed compiles the function of a computed metric.
func (c *compiler) computed(field string, environment *expression.Environment, source *dparetov1.ComputedSource) function {
	if t := source.GetReportTolerance(); !(t >= 0 && t <= 1) {
		c.addf(field+".report_tolerance", "must be in [0, 1], is %g", t)
	}
	switch f := source.GetFunction().(type) {
	case *dparetov1.ComputedSource_Expression:
		if n := c.number(field+".expression", environment.Number, f.Expression); n != nil {
			return formula{n}
		}
		return nil
	case *dparetov1.ComputedSource_Privacy:
		if f := accounting.Compile(c.path+"."+field+".privacy", &c.fields, environment, f.Privacy); f != nil {
			return guarantee{f}
		}
		return nil
	default:
		c.addf(field+".function", "one of privacy and expression must be set")
		return nil
	}
}

// number compiles an expression, recording its error.
func (c *compiler) number(field string, compile func(string) (*expression.Number, error), source string) *expression.Number {
	n, err := compile(source)
	if err != nil {
		c.addf(field, "%v", err)
	}
	return n
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

// guarantee is a computed metric that is the ε of a mechanism.
type guarantee struct{ function *accounting.Function }

func (g guarantee) value(variables map[string]any) (*dparetov1.MetricValue, error) {
	result, err := g.function.Guarantee(variables)
	if err != nil {
		return nil, err
	}
	return &dparetov1.MetricValue{Value: &result.Epsilon, Privacy: result}, nil
}

// probe evaluates a computed metric at the centre and the corners of the space, and
// records an error if it can be computed at none of them: a slip in a constant that
// no type check finds. It also collects what guarantees warn of there.
func (c *compiler) probe(field string, study *Study, f function) {
	var first error
	var probes []map[string]any
	for _, u := range []float64{0.5, 0, 1} {
		point := make(space.Point, len(study.Problem.Space.Parameters))
		for i := range study.Problem.Space.Parameters {
			p := &study.Problem.Space.Parameters[i]
			if p.Kind != space.Categorical { // categories: the first
				point[i] = p.At(u)
			}
		}
		variables := study.variables(point)
		if _, err := f.value(variables); err == nil {
			probes = append(probes, variables)
		} else if first == nil {
			first = err
		}
	}
	if len(probes) == 0 {
		c.addf(field, "cannot be computed in the centre of the space, nor at its lowest or highest corner: %v", first)
	}
	if g, ok := f.(guarantee); ok {
		for _, w := range g.function.Warnings(probes...) {
			study.Warnings = append(study.Warnings, &dparetov1.Warning{
				Code: w.GetCode(), Message: "at some configurations: " + w.GetMessage(),
			})
		}
	}
}
