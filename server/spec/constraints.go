package spec

import (
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/space"
)

// constraint is a known constraint: a predicate over the parameters.
type constraint struct {
	source    string
	predicate *expression.Predicate
}

// CheckAllowed returns nil if the known constraints allow a configuration, else an
// INVALID_ARGUMENT error of the field with the given path, for example
// "trial.parameters".
func (p *Points) CheckAllowed(path string, point space.Point) error {
	switch i, err := p.violated(point); {
	case err != nil:
		return invalid.Field(path, "parameter_constraints[%d] of the study, %s, cannot be evaluated: %v", i, p.constraints[i].source, err)
	case i >= 0:
		return invalid.Field(path, "parameter_constraints[%d] of the study does not hold: %s", i, p.constraints[i].source)
	default:
		return nil
	}
}

// allowed reports whether all known constraints hold at a configuration. A constraint that
// cannot be evaluated does not hold.
func (p *Points) allowed(point space.Point) bool {
	i, err := p.violated(point)
	return i < 0 && err == nil
}

// violated returns the index of the first known constraint that does not hold at a
// configuration, with the error if it cannot be evaluated, or -1.
func (p *Points) violated(point space.Point) (int, error) {
	if len(p.constraints) == 0 {
		return -1, nil
	}
	variables := p.Variables(point)
	for i := range p.constraints {
		if holds, err := p.constraints[i].predicate.Holds(variables); err != nil || !holds {
			return i, err
		}
	}
	return -1, nil
}
