package privacy

import (
	"slices"
)

// Accountant bounds the privacy loss of mechanisms. Implementations are values
// whose fields are options, and whose zero value is the recommended one.
type Accountant interface {
	// Name returns a short stable name that identifies the method.
	Name() string
	// Curve prepares the accounting of m. It returns m's validation error, or an
	// *UnsupportedError when this accountant cannot account m.
	Curve(m Mechanism) (Curve, error)
}

// UpperOnly returns the accountant that computes the same ε as a, but no EpsilonLower. An accountant
// without a method WithoutLower it returns unchanged.
func UpperOnly(a Accountant) Accountant {
	if lower, ok := a.(interface{ WithoutLower() Accountant }); ok {
		return lower.WithoutLower()
	}
	return a
}

// Curve is the guarantee of one mechanism as a function of how often it runs
// and of δ. It is safe for concurrent use.
type Curve interface {
	// Epsilon returns the guarantee of steps runs, steps >= 0, for delta. The
	// errors are FieldErrors for "steps" and "delta".
	Epsilon(steps int64, delta float64) (Guarantee, error)
}

// Epsilon returns the guarantee of running m steps times. It builds the curve
// anew: keep a [Curve] when asking more than once.
func Epsilon(a Accountant, m Mechanism, steps int64, delta float64) (Guarantee, error) {
	c, err := a.Curve(m)
	if err != nil {
		return Guarantee{}, err
	}
	return c.Epsilon(steps, delta)
}

// Trajectory returns the guarantee of running m steps[i] times, for every i: ε
// after every epoch of a run, for instance. What does not depend on the number of
// steps is computed once.
func Trajectory(a Accountant, m Mechanism, steps []int64, delta float64) ([]Guarantee, error) {
	c, err := a.Curve(m)
	if err != nil {
		return nil, err
	}
	gs := make([]Guarantee, len(steps))
	for i, t := range steps {
		if gs[i], err = c.Epsilon(t, delta); err != nil {
			return nil, err
		}
	}
	return gs, nil
}

// BaseGuarantee fills in what follows from the accountant and the mechanism.
func BaseGuarantee(a Accountant, m Mechanism) Guarantee {
	return Guarantee{Adjacency: m.Adjacency(), Accountant: a.Name(), Assumptions: m.Assumptions()}
}

// Warn returns g with one more warning. The warnings of g are not overwritten:
// guarantees of one curve share them.
func (g Guarantee) Warn(code WarningCode, message string) Guarantee {
	g.Warnings = append(slices.Clip(g.Warnings), Warning{code, message})
	return g
}
