package privacy

import (
	"errors"
	"math"
	"sync"
)

// Tightest takes the least ε that any accountant of this package proves: from [Pure] for δ =
// 0, and otherwise from [Exact], [RDP] or [Pure] with [Optimal]. The guarantee bears the name
// of the accountant that gave it.
//
// The others are tried if Exact cannot account a mechanism, takes a worse one in its place, or
// warns that its ε is loose. For them the divergence of a [FixedSizeGaussian] is the smaller
// of the published one and its dominating pair's.
type Tightest struct{}

// Name returns "tightest".
func (Tightest) Name() string { return "tightest" }

// Curve accounts what any other accountant does. The error is m's validation error,
// or the *UnsupportedError of RDP.
func (Tightest) Curve(m Mechanism) (Curve, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	c := tightestCurve{always: boundedByPure(m), others: sync.OnceValues(func() ([]Curve, error) { return otherCurves(m) })}
	var err error
	if c.pure, err = (Pure{}).Curve(m); err != nil {
		c.pure = nil
	} else {
		c.always = true
	}
	if c.exact, err = (Exact{}).Curve(m); err != nil {
		c.exact, c.always = nil, true
		if _, err := c.others(); err != nil {
			return nil, err
		}
	}
	return &c, nil
}

// otherCurves returns what bounds a valid m besides Exact.
func otherCurves(m Mechanism) ([]Curve, error) {
	published, err := RDP{}.Curve(m)
	if err != nil {
		return nil, err
	}
	curves := []Curve{published}
	if pairs, changed := withPairs(m); changed {
		paired, err := RDP{}.Curve(pairs)
		if err != nil {
			return nil, err
		}
		curves = append(curves, paired)
	}
	if optimal, err := (Pure{Rule: Optimal}).Curve(m); err == nil {
		curves = append(curves, optimal)
	}
	return curves, nil
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

// pairedFixedSize is a FixedSizeGaussian with the Rényi divergence of its dominating
// pair in the place of the published one.
type pairedFixedSize struct{ FixedSizeGaussian }

func (m pairedFixedSize) RenyiCurve() RenyiCurve {
	return &pairRenyi{lossPart{pair: fixedSizePair(m.rate(), m.NoiseMultiplier)}}
}

// withPairs returns m with every FixedSizeGaussian, also the base of a selection,
// replaced by a pairedFixedSize, and whether there was one.
func withPairs(m Mechanism) (replaced Mechanism, changed bool) {
	switch m := m.(type) {
	case FixedSizeGaussian:
		return pairedFixedSize{m}, true
	case RepeatedSelection:
		m.Base, changed = withPairs(m.Base)
		return m, changed
	case PoissonSelection:
		m.Base, changed = withPairs(m.Base)
		return m, changed
	case Composition:
		parts := make(Composition, len(m))
		for i, p := range m {
			inner, ok := withPairs(p.Mechanism)
			parts[i] = Part{inner, p.Count}
			changed = changed || ok
		}
		return parts, changed
	default:
		return m, false
	}
}

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
		if !found || g.Epsilon < best.Epsilon {
			best, found = g, true
		}
	}
	best.EpsilonLower = min(lower, best.Epsilon)
	return best, nil
}
