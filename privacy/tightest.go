package privacy

import (
	"errors"
	"math"
	"sync"

	"github.com/dpareto/dpareto/privacy/meter"
)

// Tightest takes the least ε that any accountant proves: from [Pure] for δ = 0, and otherwise from
// [Exact], the curves of a [CurvesMechanism], [RDP] or [Pure] with [Optimal]. The guarantee bears the name
// of the accountant that gave it.
//
// The others are tried if Exact cannot account a mechanism, takes a worse one in its place, or
// warns that its ε is loose.
type Tightest struct {
	// UpperOnly is as for Exact.
	UpperOnly bool
}

// Name returns "tightest".
func (Tightest) Name() string { return "tightest" }

// WithoutLower returns Tightest with UpperOnly.
func (Tightest) WithoutLower() Accountant { return Tightest{UpperOnly: true} }

// CurvesMechanism is a Mechanism with bounds of its own, such as a selection of package tuning.
type CurvesMechanism interface {
	Mechanism
	// Curves returns bounds that [Tightest] takes the least of, without EpsilonLower for upperOnly. The
	// parameters must be valid.
	Curves(upperOnly bool) []Curve
}

// Curve accounts what any other accountant does. The error is m's validation error,
// or the *UnsupportedError of RDP.
func (a Tightest) Curve(m Mechanism) (Curve, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	c := tightestCurve{others: sync.OnceValues(func() ([]Curve, error) { return a.otherCurves(m) })}
	var err error
	if c.pure, err = (Pure{}).Curve(m); err != nil {
		c.pure = nil
	} else {
		c.always = true
	}
	if c.exact, err = Exact(a).Curve(m); err != nil {
		c.exact, c.always = nil, true
		if _, err := c.others(); err != nil {
			return nil, err
		}
	} else {
		c.always = c.always || c.exact.(*lossCurve).losses.ByPure
	}
	return &c, nil
}

// otherCurves returns what bounds a valid m besides Exact.
func (a Tightest) otherCurves(m Mechanism) ([]Curve, error) {
	var curves []Curve
	if own, ok := m.(CurvesMechanism); ok {
		curves = own.Curves(a.UpperOnly)
	}
	rdp, err := RDP{}.Curve(m)
	if err == nil {
		curves = append(curves, rdp)
	} else if len(curves) == 0 {
		return nil, err
	}
	if optimal, err := (Pure{Rule: Optimal}).Curve(m); err == nil {
		curves = append(curves, optimal)
	}
	return curves, nil
}

// sameEpsilon is a relative difference of two ε by rounding errors.
const sameEpsilon = 1e-14

// tightestCurve is the Curve of Tightest.
type tightestCurve struct {
	pure, exact Curve // nil where the mechanism has none
	always      bool  // whether the others may be smaller where exact has no doubts
	others      func() ([]Curve, error)
	work        *meter.Work
}

func (c *tightestCurve) CountIn(w *meter.Work) {
	c.work = w
	meter.CountIn(c.exact, w)
}

// Epsilon accepts delta = 0 where the mechanism has a pure guarantee.
func (c *tightestCurve) Epsilon(steps int64, delta float64) (Guarantee, error) {
	if delta == 0 {
		if c.pure == nil {
			return Guarantee{}, errors.Join(CheckSteps(steps),
				FieldErrorf("delta", "must be positive: the mechanism has no pure-DP guarantee"))
		}
		return c.pure.Epsilon(steps, 0)
	}
	best := Guarantee{Epsilon: math.Inf(1)}
	found := false
	if c.exact != nil {
		var err error
		if best, err = c.exact.Epsilon(steps, delta); err != nil {
			return Guarantee{}, err
		}
		if found = true; !c.always && len(best.Warnings) == 0 {
			return best, nil
		}
	}
	lower := best.EpsilonLower
	others, err := c.others()
	if err != nil {
		return Guarantee{}, err
	}
	for _, curve := range others {
		meter.CountIn(curve, c.work)
		g, err := curve.Epsilon(steps, delta)
		if err != nil {
			return Guarantee{}, err
		}
		lower = max(lower, g.EpsilonLower)
		if !found || g.Epsilon < best.Epsilon*(1-sameEpsilon) {
			best, found = g, true
		}
	}
	return best.WithLower(lower), nil
}
