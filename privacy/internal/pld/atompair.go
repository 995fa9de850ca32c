package pld

import (
	"math"

	"github.com/dpareto/dpareto/privacy/meter"
)

// atomPair is a pair with finitely many losses. An infinite one is held apart: what composes losses takes
// its mass off δ, so that all methods have finite losses only.
type atomPair struct {
	losses       []float64 // from the largest to the smallest
	upper        []float64 // positive masses of the upper distribution
	infiniteMass float64   // its mass at +Inf
	unit         float64   // all losses are multiples of it; 0 where none is known
}

// NewAtoms returns the pair of losses, from the largest to the smallest, with their masses under the upper
// distribution and its mass at +Inf. All masses are enlarged by what rounding may have cost.
func NewAtoms(losses, upper []float64, infinite float64) atomPair {
	const margin = 1e-9
	p := atomPair{infiniteMass: infinite * (1 + margin)}
	for i, mass := range upper {
		if mass > 0 {
			p.losses = append(p.losses, losses[i])
			p.upper = append(p.upper, mass*(1+margin))
		}
	}
	return p
}

// NewLattice is NewAtoms of losses that are multiples of unit.
func NewLattice(unit float64, losses, upper []float64, infinite float64) atomPair {
	p := NewAtoms(losses, upper, infinite)
	p.unit = unit
	return p
}

func (p atomPair) Normal() (rate float64, ok bool) { return 0, false }

func (p atomPair) cliff() float64 { return math.Inf(1) }

func (p atomPair) Largest() float64 {
	if len(p.losses) == 0 {
		return 0
	}
	return math.Max(0, p.losses[0])
}

func (p atomPair) Unsampled() (mu, epsilon float64) { return 0, p.Largest() }

func (p atomPair) Variation() float64 {
	sum := 0.0
	for i, l := range p.losses {
		if l > 0 {
			sum += p.upper[i] * -math.Expm1(-l)
		}
	}
	return sum
}

// Single solves δ(ε) = infinite + a − b·e^ε, where a is the mass with finite losses above ε under the upper
// distribution, and b under the lower one.
func (p atomPair) Single(logDelta float64) (epsilon float64, ok bool) {
	delta := math.Exp(logDelta) - p.infiniteMass
	if !(delta > 0) {
		return math.Inf(1), true
	}
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

// Nodes returns the atoms. The arguments concern inversion, which is not for pairs with atoms.
func (p atomPair) Nodes(tilt, _, _ float64) (n *Nodes, ok bool) {
	n = &Nodes{tilt: tilt}
	for i, l := range p.losses {
		n.add(l, math.Log(p.upper[i]))
	}
	return n, true
}

// truncate returns p: its finite losses are bounded.
func (p atomPair) truncate(float64) (Pair, bool) { return p, false }

func (p atomPair) infinite() float64 { return p.infiniteMass }

func (p atomPair) Discretise(step, bottom, side float64, w *meter.Work) (g Grid, ok bool) {
	g, ok = atomGrid(math.Max(math.Min(0, p.losses[len(p.losses)-1]), bottom), p.Largest(), step)
	if !ok {
		return Grid{}, false
	}
	w.Add(len(g.Mass) + len(p.losses))
	for i, l := range p.losses {
		g.add(l, p.upper[i], side)
	}
	return g, true
}
