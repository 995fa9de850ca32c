package pld

import (
	"math"

	"github.com/dpareto/dpareto/privacy/meter"
)

// AtomPair is a pair with finitely many losses. An infinite one is held apart: what composes losses takes
// its mass off δ, so that all methods have finite losses only.
type AtomPair struct {
	Losses       []float64 // from the largest to the smallest
	Upper        []float64 // positive masses of the upper distribution
	InfiniteMass float64   // its mass at +Inf
}

// NewAtoms returns the pair of losses, from the largest to the smallest, with their masses under the upper
// distribution and its mass at +Inf. All masses are enlarged by what rounding may have cost.
func NewAtoms(losses, upper []float64, infinite float64) AtomPair {
	const margin = 1e-9
	p := AtomPair{InfiniteMass: infinite * (1 + margin)}
	for i, mass := range upper {
		if mass > 0 {
			p.Losses = append(p.Losses, losses[i])
			p.Upper = append(p.Upper, mass*(1+margin))
		}
	}
	return p
}

func (p AtomPair) Normal() (rate float64, ok bool) { return 0, false }

func (p AtomPair) cliff() float64 { return math.Inf(1) }

func (p AtomPair) Largest() float64 {
	if len(p.Losses) == 0 {
		return 0
	}
	return math.Max(0, p.Losses[0])
}

func (p AtomPair) Unsampled() (mu, epsilon float64) { return 0, p.Largest() }

func (p AtomPair) Variation() float64 {
	sum := 0.0
	for i, l := range p.Losses {
		if l > 0 {
			sum += p.Upper[i] * -math.Expm1(-l)
		}
	}
	return sum
}

// Single solves δ(ε) = a − b·e^ε, where a is the mass with losses above ε under the upper
// distribution, and b under the lower one.
func (p AtomPair) Single(logDelta float64) (epsilon float64, ok bool) {
	delta := math.Exp(logDelta)
	a, b := 0.0, 0.0
	for i, l := range p.Losses {
		if l <= 0 || a-b*math.Exp(l) > delta {
			break
		}
		a += p.Upper[i]
		b += p.Upper[i] * math.Exp(-l)
	}
	if !(a > delta) {
		return 0, true
	}
	return math.Max(0, math.Log((a-delta)/b)), true
}

// Nodes returns the atoms. The arguments concern inversion, which is not for pairs with atoms.
func (p AtomPair) Nodes(tilt, _, _ float64) (n *Nodes, ok bool) {
	n = &Nodes{tilt: tilt}
	for i, l := range p.Losses {
		n.add(l, math.Log(p.Upper[i]))
	}
	return n, true
}

// truncate returns p: its finite losses are bounded.
func (p AtomPair) truncate(float64) (Pair, bool) { return p, false }

func (p AtomPair) infinite() float64 { return p.InfiniteMass }

func (p AtomPair) Discretise(step, bottom, side float64, w *meter.Work) (g Grid, ok bool) {
	g, ok = atomGrid(math.Max(math.Min(0, p.Losses[len(p.Losses)-1]), bottom), p.Largest(), step)
	if !ok {
		return Grid{}, false
	}
	w.Add(len(g.Mass) + len(p.Losses))
	for i, l := range p.Losses {
		g.add(l, p.Upper[i], side)
	}
	return g, true
}
