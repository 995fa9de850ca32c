package spec

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/space"
)

const (
	// A study is refused if constraintDraws draws of its design distributions hold no allowed
	// configuration. Fewer suffice once many are.
	constraintDraws = 10_000
	leastDraws      = 1000
	enoughAllowed   = 100

	// maxBranches bounds the branches of a space at which expressions are tried.
	maxBranches = 200

	// keptExamples is the number of allowed configurations at which computed metrics
	// are tried.
	keptExamples = 3
)

// constraint is a compiled known constraint.
type constraint struct {
	source    string
	predicate *expression.Predicate
}

// constraints compiles the known constraints into study.
func (c *compiler) constraints(study *Study, environment *expression.Environment) {
	sources := study.Spec.GetParameterConstraints()
	if n := len(sources); n > maxConstraints {
		c.addf("parameter_constraints", "must hold at most %d expressions, holds %d", maxConstraints, n)
		return
	}
	for i, source := range sources {
		predicate, err := environment.Predicate(source)
		if err != nil {
			c.addf(fmt.Sprintf("parameter_constraints[%d]", i), "%v", err)
		}
		study.constraints = append(study.constraints, constraint{source, predicate})
	}
}

// allowed reports whether all known constraints hold at a configuration. One that
// cannot be evaluated there does not.
func (s *Study) allowed(point space.Point) bool {
	i, err := s.violated(point)
	return i < 0 && err == nil
}

// violated returns the index of the first known constraint that does not hold at a
// configuration, with the error if it cannot be evaluated, or -1.
func (s *Study) violated(point space.Point) (int, error) {
	if len(s.constraints) == 0 {
		return -1, nil
	}
	variables := s.variables(point)
	for i := range s.constraints {
		if holds, err := s.constraints[i].predicate.Holds(variables); err != nil || !holds {
			return i, err
		}
	}
	return -1, nil
}

// CheckAllowed returns nil if the known constraints allow a configuration, else an
// INVALID_ARGUMENT error of the field with the given path, for example
// "trial.parameters".
func (s *Study) CheckAllowed(path string, point space.Point) error {
	switch i, err := s.violated(point); {
	case err != nil:
		return invalid.Field(path, "parameter_constraints[%d] of the study, %s, cannot be evaluated: %v", i, s.constraints[i].source, err)
	case i >= 0:
		return invalid.Field(path, "parameter_constraints[%d] of the study does not hold: %s", i, s.constraints[i].source)
	default:
		return nil
	}
}

// examples returns a few allowed configurations of a study with known constraints. It
// records constraints that cannot be evaluated, or that next to nothing satisfies.
func (c *compiler) examples(study *Study) []space.Point {
	for branch := range study.branches() {
		if !c.evaluable(study, branch) {
			return nil
		}
	}
	var examples []space.Point
	rng := rand.New(rand.NewPCG(1, 2)) // fixed: a spec is valid or not
	held := make([]int, len(study.constraints))
	allowed := 0
	for draw := range constraintDraws {
		if draw >= leastDraws && allowed >= enoughAllowed {
			break
		}
		point := study.Problem.Space.Sample(rng)
		if !c.evaluable(study, point) {
			return nil
		}
		variables := study.variables(point)
		all := true
		for i := range study.constraints {
			if holds, err := study.constraints[i].predicate.Holds(variables); err == nil && holds {
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
// the first that does not hold, and records the one that cannot.
func (c *compiler) evaluable(study *Study, point space.Point) bool {
	i, err := study.violated(point)
	if err != nil {
		c.addf(fmt.Sprintf("parameter_constraints[%d]", i), "cannot be evaluated at %s: %v", study.describe(point), err)
	}
	return err == nil
}

// describe returns the values of the parameters that exist at a configuration.
func (s *Study) describe(point space.Point) string {
	values := s.Values(point)
	var parts []string
	for _, p := range s.Problem.Space.Parameters {
		if value, ok := values[p.Name]; ok {
			parts = append(parts, fmt.Sprintf("%s = %v", p.Name, plain(value)))
		}
	}
	return strings.Join(parts, ", ")
}
