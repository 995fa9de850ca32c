package pld

import (
	"math"

	"github.com/dpareto/dpareto/privacy/meter"
)

// mixedPair is a mixture of pairs of which the output tells the component:
//
//	δ(ε) = Σ share·δ_component(ε).
type mixedPair []component

// component is a pair with the logarithm of its share.
type component struct {
	logShare float64
	pair     continuousPair
	isOut    bool // all of its losses are infinite
}

// continuousPair is a pair with a density and a few rare large losses.
type continuousPair interface {
	Pair
	DensityPair
	RarePair
}

// sum adds up a function of the components that are not out, by their shares.
func (p mixedPair) sum(f func(pair continuousPair) float64) float64 {
	total := 0.0
	for _, c := range p {
		if !c.isOut {
			total += math.Exp(c.logShare) * f(c.pair)
		}
	}
	return total
}

func (p mixedPair) Normal() (rate float64, ok bool) { return 0, false }

func (p mixedPair) cliff() float64 {
	first := math.Inf(1)
	for _, c := range p {
		if !c.isOut {
			first = math.Min(first, c.pair.cliff())
		}
	}
	return first
}

func (p mixedPair) Largest() float64 {
	largest := 0.0
	for _, c := range p {
		if !c.isOut {
			largest = math.Max(largest, c.pair.Largest())
		}
	}
	return largest
}

// Unsampled returns the largest of the components: what dominates each dominates the mixture.
func (p mixedPair) Unsampled() (mu, epsilon float64) {
	for _, c := range p {
		m, e := c.pair.Unsampled()
		mu, epsilon = math.Max(mu, m), math.Max(epsilon, e)
	}
	return mu, epsilon
}

func (p mixedPair) Variation() float64 { return p.sum(continuousPair.Variation) }

func (p mixedPair) Single(float64) (epsilon float64, ok bool) { return 0, false }

// truncate leaves components out whose share is as small as what may be truncated.
func (p mixedPair) truncate(logTail float64) (Pair, bool) {
	small, changed := make(mixedPair, len(p)), false
	for i, c := range p {
		small[i] = c
		if !c.isOut && c.logShare <= logTail {
			small[i].isOut, changed = true, true
		} else if pair, ok := c.pair.truncate(logTail - c.logShare); ok {
			small[i].pair, changed = pair.(continuousPair), true
		}
	}
	return small, changed
}

func (p mixedPair) BeyondOf(small Pair) Pair {
	beyond := make(mixedPair, len(p))
	for i, c := range p {
		beyond[i] = c
		if of := small.(mixedPair)[i]; !of.isOut {
			beyond[i].pair = c.pair.BeyondOf(of.pair).(continuousPair)
		}
	}
	return beyond
}

func (p mixedPair) infinite() float64 {
	total := p.sum(continuousPair.infinite)
	for _, c := range p {
		if c.isOut {
			total += math.Exp(c.logShare)
		}
	}
	return total
}

// Nodes returns the nodes of one component after the other.
func (p mixedPair) Nodes(tilt, floor, panel float64) (n *Nodes, ok bool) {
	n = &Nodes{tilt: tilt}
	for _, c := range p {
		if c.isOut { // of both distributions the same mass
			n.beyond += math.Exp(c.logShare)
			continue
		}
		one, ok := c.pair.Nodes(tilt, floor-c.logShare, panel)
		if !ok {
			return n, false
		}
		n.append(one, c.logShare)
	}
	return n, true
}

func (p mixedPair) Discretise(step, bottom, side float64, w *meter.Work) (g Grid, ok bool) {
	return discretise(p, step, bottom, side, w)
}

// Center returns the loss in the bulk of the largest component, or 0 if one has an atom there.
func (p mixedPair) Center() float64 {
	center, largest := 0.0, math.Inf(-1)
	for _, c := range p {
		at := c.pair.Center()
		if at == 0 {
			return 0
		}
		if c.logShare > largest {
			center, largest = at, c.logShare
		}
	}
	return center
}

func (p mixedPair) extent() (lowest, highest float64) {
	lowest, highest = math.Inf(1), math.Inf(-1)
	for _, c := range p {
		if c.isOut {
			continue
		}
		low, high := c.pair.extent()
		lowest, highest = math.Min(lowest, low), math.Max(highest, high)
	}
	return lowest, highest
}

func (p mixedPair) mass(from, to float64) (upper, lower float64) {
	for _, c := range p {
		if c.isOut {
			continue
		}
		u, l := c.pair.mass(from, to)
		share := math.Exp(c.logShare)
		upper, lower = upper+share*u, lower+share*l
	}
	return upper, lower
}

// isMirrored reports whether all components are their own mirror images.
func (p mixedPair) isMirrored() bool {
	for _, c := range p {
		if m, ok := c.pair.(mixturePair); c.isOut || ok && len(m.branches) < 2 {
			return false
		}
	}
	return true
}
