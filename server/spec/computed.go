package spec

import (
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
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
	// check is the cheap part of value: it evaluates the expressions. field is the path
	// of the one at fault below the computed source.
	check(variables map[string]any) (field string, err error)
	// search returns cheap stand-ins, good where the metric is at most limit, or nil: a smooth
	// one, and one for bounds (see accounting.Function.Search).
	search(study *Study, limit float64) (smooth, rounded func(space.Point) float64)
}

// number returns the plain number of a computed value: +Inf, which is never on a
// front, where it cannot be computed.
func number(value *dparetov1.MetricValue, err error) float64 {
	if err != nil || value.Value == nil {
		return math.Inf(1)
	}
	return value.GetValue()
}

// constraintNumber is number for a metric with bounds: NaN, which is within none, where
// it cannot be computed, or was not measured, as in a prior study without it.
func constraintNumber(value *dparetov1.MetricValue, err error) float64 {
	if err != nil || value == nil || value.Value == nil {
		return math.NaN()
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

func (f formula) check(variables map[string]any) (field string, err error) {
	_, err = f.expression.Float(variables)
	return "expression", err
}

// search implements function: the same number, without CEL.
func (f formula) search(*Study, float64) (smooth, rounded func(space.Point) float64) {
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
func (g guarantee) search(study *Study, limit float64) (smooth, rounded func(space.Point) float64) {
	s, r := g.function.Search(func(point []float64) map[string]any { return study.variables(point) }, limit)
	if s == nil {
		return nil, nil
	}
	return func(point space.Point) float64 { return s(point) }, func(point space.Point) float64 { return r(point) }
}

// probe evaluates a computed metric at the centre and the corners of the space and at
// examples, as far as they are allowed, and records an error if it can be computed at
// none of them: a slip in a constant that no type check finds. It also collects what
// guarantees warn of there.
func (c *compiler) probe(field string, study *Study, f function, examples []space.Point) {
	if !c.probeBranches(field, study, f) {
		return
	}
	var first error
	var probes []map[string]any
	for _, point := range append(study.corners(study.firstBranch()), examples...) {
		if !study.allowed(point) {
			continue
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

// probeBranches evaluates the expressions of a computed metric at the centre and the
// corners of every branch of a space with conditions, and records an error for the
// first branch in which they fail wherever they are allowed: most often since they
// refer to a parameter that does not exist there.
func (c *compiler) probeBranches(field string, study *Study, f function) bool {
	for branch := range study.branches() {
		choices := study.choices(branch)
		if choices == "" {
			return true
		}
		var at string
		var first error
		for _, point := range study.corners(branch) {
			if !study.allowed(point) {
				continue
			}
			failed, err := f.check(study.variables(point))
			if err == nil {
				first = nil
				break
			}
			if first == nil {
				at, first = failed, err
			}
		}
		if first != nil {
			c.addf(field+"."+at, "cannot be computed where %s: %v", choices, first)
			return false
		}
	}
	return true
}

// firstBranch returns a configuration of the branch of first categories and smallest
// values.
func (s *Study) firstBranch() space.Point {
	for point := range s.Problem.Space.Branches() {
		return point
	}
	panic("spec: a space without points")
}
