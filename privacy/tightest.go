package privacy

import (
	"errors"
	"math"
	"sync"
)

// Tightest takes the least ε that any accountant of this package proves: from [Pure] for δ =
// 0, and otherwise from [Exact], [Location], [RDP] or [Pure] with [Optimal]. The guarantee bears
// the name of the accountant that gave it. The best of at most n runs costs no more than n runs
// of which everything is shown.
//
// The others are tried if Exact cannot account a mechanism, takes a worse one in its place, or
// warns that its ε is loose.
type Tightest struct {
	// UpperOnly is as for Exact and Location.
	UpperOnly bool
}

// Name returns "tightest".
func (Tightest) Name() string { return "tightest" }

// Curve accounts what any other accountant does. The error is m's validation error,
// or the *UnsupportedError of RDP.
func (a Tightest) Curve(m Mechanism) (Curve, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	c := tightestCurve{always: boundedByPure(m), others: sync.OnceValues(func() ([]Curve, error) { return a.otherCurves(m) })}
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
	}
	return &c, nil
}

// otherCurves returns what bounds a valid m besides Exact.
func (a Tightest) otherCurves(m Mechanism) ([]Curve, error) {
	var curves []Curve
	if location, err := Location(a).Curve(m); err == nil {
		curves = append(curves, location)
	}
	if shown, err := allShown(m); err == nil {
		curves = append(curves, shown)
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

// allShown accounts the selections of a bounded number of runs as if all runs were shown.
func allShown(m Mechanism) (Curve, error) {
	var c shownCurve
	switch m := m.(type) {
	case BinomialSelection:
		c.mechanism, c.runs = m, m.Tries
	case CappedSelection:
		c.mechanism, c.runs = m, m.MostRuns
	default:
		return nil, &UnsupportedError{Tightest{}.Name(), m.Name(), "its number of runs is not bounded"}
	}
	base, each := c.mechanism.candidate()
	if c.runs > math.MaxInt32/each {
		return nil, &UnsupportedError{Tightest{}.Name(), m.Name(), "its runs are too many"}
	}
	c.runs *= each
	var err error
	c.all, err = Tightest{UpperOnly: true}.Curve(base)
	return c, err
}

// shownCurve is the curve of allShown.
type shownCurve struct {
	mechanism selectionOfRuns
	all       Curve // of the base
	runs      int64 // of the base
}

func (c shownCurve) countIn(w *Work) { countIn(c.all, w) }

func (c shownCurve) Epsilon(steps int64, delta float64) (Guarantee, error) {
	if err := errors.Join(checkSteps(steps), checkDelta(delta)); err != nil {
		return Guarantee{}, err
	}
	if steps > math.MaxInt64/c.runs {
		return Guarantee{}, FieldErrorf("steps", "%d steps of %d runs are too many", steps, c.runs)
	}
	g, err := c.all.Epsilon(steps*c.runs, delta)
	g.Steps, g.Assumptions = steps, c.mechanism.Assumptions()
	return g, err
}

// boundedByPure reports whether some part of m is known to Exact by its pure ε only.
func boundedByPure(m Mechanism) bool {
	for _, p := range flatten(m) {
		if _, ok := p.Mechanism.(lossMechanism); !ok {
			return true
		}
	}
	return false
}

// sameEpsilon is a relative difference of two ε by rounding errors.
const sameEpsilon = 1e-14

// tightestCurve is the Curve of Tightest.
type tightestCurve struct {
	pure, exact Curve // nil where the mechanism has none
	always      bool  // whether the others may be smaller where exact has no doubts
	others      func() ([]Curve, error)
	work        *Work
}

func (c *tightestCurve) countIn(w *Work) {
	c.work = w
	countIn(c.exact, w)
}

// Epsilon accepts delta = 0 where the mechanism has a pure guarantee.
func (c *tightestCurve) Epsilon(steps int64, delta float64) (Guarantee, error) {
	if delta == 0 {
		if c.pure == nil {
			return Guarantee{}, errors.Join(checkSteps(steps),
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
		countIn(curve, c.work)
		g, err := curve.Epsilon(steps, delta)
		if err != nil {
			return Guarantee{}, err
		}
		lower = max(lower, g.EpsilonLower)
		if !found || g.Epsilon < best.Epsilon*(1-sameEpsilon) {
			best, found = g, true
		}
	}
	return best.withLower(lower), nil
}
