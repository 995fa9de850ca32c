package privacy

import "math"

// atomPair is a pair with finitely many losses. What of a [discretePair] is infinite is held
// apart: [lossSum] takes it off δ, so that all methods have finite losses only.
type atomPair struct {
	losses       []float64 // from the largest to the smallest
	upper        []float64 // positive masses of the upper distribution
	infiniteMass float64   // its mass at +Inf
}

// newAtomPair returns the pair with all masses enlarged by what rounding may have cost.
func newAtomPair(d discretePair) atomPair {
	p := atomPair{infiniteMass: d.upper[0] * (1 + locationMargin)}
	for i, mass := range d.upper[1:] {
		if mass > 0 {
			p.losses = append(p.losses, d.losses[1+i])
			p.upper = append(p.upper, mass*(1+locationMargin))
		}
	}
	return p
}

func (p atomPair) normal() (rate float64, ok bool) { return 0, false }

func (p atomPair) cliff() float64 { return math.Inf(1) }

func (p atomPair) largest() float64 {
	if len(p.losses) == 0 {
		return 0
	}
	return math.Max(0, p.losses[0])
}

func (p atomPair) unsampled() (mu, epsilon float64) { return 0, p.largest() }

func (p atomPair) variation() float64 {
	sum := 0.0
	for i, l := range p.losses {
		if l > 0 {
			sum += p.upper[i] * -math.Expm1(-l)
		}
	}
	return sum
}

// single solves δ(ε) = a − b·e^ε, where a is the mass with losses above ε under the upper
// distribution, and b under the lower one.
func (p atomPair) single(logDelta float64) (epsilon float64, ok bool) {
	delta := math.Exp(logDelta)
	a, b := 0.0, 0.0
	for i, l := range p.losses {
		if l <= 0 || a-b*math.Exp(l) > delta {
			break
		}
		a += p.upper[i]
		b += p.upper[i] * math.Exp(-l)
	}
	if !(a > delta) {
		return 0, true
	}
	return math.Max(0, math.Log((a-delta)/b)), true
}

// nodes returns the atoms. The arguments concern inversion, which is not for pairs with atoms.
func (p atomPair) nodes(tilt, _, _ float64) (n *lossNodes, ok bool) {
	n = &lossNodes{tilt: tilt}
	for i, l := range p.losses {
		n.add(l, math.Log(p.upper[i]))
	}
	return n, true
}

// truncate returns p: its finite losses are bounded.
func (p atomPair) truncate(float64) (lossPair, bool) { return p, false }

func (p atomPair) infinite() float64 { return p.infiniteMass }

func (p atomPair) discretise(step, bottom, side float64, w *Work) (g grid, ok bool) {
	g, ok = atomGrid(math.Max(math.Min(0, p.losses[len(p.losses)-1]), bottom), p.largest(), step)
	if !ok {
		return grid{}, false
	}
	w.add(len(g.mass) + len(p.losses))
	for i, l := range p.losses {
		g.add(l, p.upper[i], side)
	}
	return g, true
}
