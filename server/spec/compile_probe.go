package spec

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy/meter"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/suggest/space"
)

const (
	maxConstraints = 20

	// A study is refused if constraintDraws draws of its design distributions hold no
	// allowed configuration. Drawing stops after leastDraws if enoughAllowed were allowed.
	constraintDraws = 10_000
	leastDraws      = 1000
	enoughAllowed   = 100

	// keptExamples is the number of allowed configurations at which computed metrics
	// are tried.
	keptExamples = 3
)

// constraints compiles the known constraints into study.
func (c *compiler) constraints(study *Study, environment *expression.Environment) {
	sources := c.spec.GetParameterConstraints()
	if n := len(sources); n > maxConstraints {
		c.addf("parameter_constraints", "must hold at most %d expressions, holds %d", maxConstraints, n)
		return
	}
	for i, source := range sources {
		predicate, err := environment.Predicate(source)
		if err != nil {
			c.addf(fmt.Sprintf("parameter_constraints[%d]", i), "%v", err)
		}
		study.Points.constraints = append(study.Points.constraints, constraint{source, predicate})
	}
}

// prober tries the expressions of a study at configurations of its space. It finds errors
// that no type check does, such as a slip in a constant.
type prober struct {
	*violations

	study *Study
}

// probe tries the constraints, then the computed metrics where they hold.
func (c *prober) probe() {
	var examples []space.Point
	before := c.fields.Len()
	if len(c.study.Points.constraints) > 0 {
		examples = c.examples()
	}
	if c.fields.Len() != before {
		return // there is nowhere to compute a metric
	}
	for i := range c.study.Metrics.all {
		if f := c.study.Metrics.all[i].computed; f != nil {
			c.computed(fmt.Sprintf("metrics[%d].computed", i), f, examples)
		}
	}
}

// examples returns a few allowed configurations of a study with known constraints. It
// records constraints that cannot be evaluated, or that almost no configuration satisfies.
func (c *prober) examples() []space.Point {
	study := c.study
	for branch := range study.Points.branches() {
		if !c.evaluable(branch) {
			return nil
		}
	}
	var examples []space.Point
	rng := rand.New(rand.NewPCG(1, 2)) // fixed: a spec is valid or not
	held := make([]int, len(study.Points.constraints))
	allowed := 0
	for draw := range constraintDraws {
		if draw >= leastDraws && allowed >= enoughAllowed {
			break
		}
		point := study.Points.space.Sample(rng)
		if !c.evaluable(point) {
			return nil
		}
		variables := study.Points.Variables(point)
		all := true
		for i := range study.Points.constraints {
			if holds, err := study.Points.constraints[i].predicate.Holds(variables); err == nil && holds {
				held[i]++
			} else {
				all = false
			}
		}
		if all {
			allowed++
			if len(examples) < keptExamples {
				examples = append(examples, point)
			}
		}
	}
	if allowed > 0 {
		return examples
	}
	before := c.fields.Len()
	for i, n := range held {
		if n == 0 {
			c.addf(fmt.Sprintf("parameter_constraints[%d]", i), "holds at none of %d configurations drawn from the design distributions", constraintDraws)
		}
	}
	if c.fields.Len() == before {
		c.addf("parameter_constraints", "hold together at none of %d configurations drawn from the design distributions", constraintDraws)
	}
	return nil
}

// evaluable reports whether the constraints can be evaluated at a configuration, up to
// the first that does not hold. It records the first that cannot.
func (c *prober) evaluable(point space.Point) bool {
	i, err := c.study.Points.violated(point)
	if err != nil {
		c.addf(fmt.Sprintf("parameter_constraints[%d]", i), "cannot be evaluated at %s: %v", c.study.Points.describe(point), err)
	}
	return err == nil
}

// computed evaluates a computed metric at the centre and the corners of the space and at
// examples, where they are allowed. It records an error if the metric can be computed at none
// of them, and collects the warnings of guarantees.
func (c *prober) computed(field string, f function, examples []space.Point) {
	study := c.study
	if !c.branches(field, f) {
		return
	}
	var first error
	computed := false
	var warnings []*dparetov1.Warning // one of every kind
	for _, point := range append(study.Points.corners(study.Points.firstBranch()), examples...) {
		if !study.Points.allowed(point) {
			continue
		}
		value, err := f.value(study.Points.Variables(point))
		if err == nil {
			computed = true
			for _, w := range value.GetPrivacy().GetWarnings() {
				if !slices.ContainsFunc(warnings, func(o *dparetov1.Warning) bool { return o.GetCode() == w.GetCode() }) {
					warnings = append(warnings, w)
				}
			}
		} else if _, costly := errors.AsType[*meter.LimitError](err); costly {
			c.addf(field, "takes too long at %s: %v", study.Points.describe(point), err)
			return
		} else if first == nil {
			first = err
		}
	}
	if !computed {
		c.addf(field, "cannot be computed at the centre of the space, nor at its lowest or highest corner: %v", first)
	}
	slices.SortFunc(warnings, func(a, b *dparetov1.Warning) int { return cmp.Compare(a.GetCode(), b.GetCode()) })
	for _, w := range warnings {
		study.Warnings = append(study.Warnings, &dparetov1.Warning{
			Code: w.GetCode(), Message: "at some configurations: " + w.GetMessage(),
		})
	}
}

// branches evaluates the expressions of a computed metric at the centre and the corners of
// every branch of a space with conditions. It records an error for the first branch where
// they fail at all allowed points: most often they refer to a parameter that does not exist
// there.
func (c *prober) branches(field string, f function) bool {
	study := c.study
	for branch := range study.Points.branches() {
		choices := study.Points.describeBranch(branch)
		if choices == "" {
			return true
		}
		var at string
		var first error
		for _, point := range study.Points.corners(branch) {
			if !study.Points.allowed(point) {
				continue
			}
			failed, err := f.check(study.Points.Variables(point))
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
