package spec

import (
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/space"
)

// constraints are the known constraints: predicates over the parameters.
type constraints struct {
	points *points
	all    []constraint
}

type constraint struct {
	source    string
	predicate *expression.Predicate
}

// CheckAllowed returns nil if the known constraints allow a configuration, else an
// INVALID_ARGUMENT error of the field with the given path, for example
// "trial.parameters".
func (c *constraints) CheckAllowed(path string, point space.Point) error {
	switch i, err := c.violated(point); {
	case err != nil:
		return invalid.Field(path, "parameter_constraints[%d] of the study, %s, cannot be evaluated: %v", i, c.all[i].source, err)
	case i >= 0:
		return invalid.Field(path, "parameter_constraints[%d] of the study does not hold: %s", i, c.all[i].source)
	default:
		return nil
	}
}

// allowed reports whether all known constraints hold at a configuration. A constraint that
// cannot be evaluated does not hold.
func (c *constraints) allowed(point space.Point) bool {
	i, err := c.violated(point)
	return i < 0 && err == nil
}

// violated returns the index of the first known constraint that does not hold at a
// configuration, with the error if it cannot be evaluated, or -1.
func (c *constraints) violated(point space.Point) (int, error) {
	if len(c.all) == 0 {
		return -1, nil
	}
	variables := c.points.Variables(point)
	for i := range c.all {
		if holds, err := c.all[i].predicate.Holds(variables); err != nil || !holds {
			return i, err
		}
	}
	return -1, nil
}
