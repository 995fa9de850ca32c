package pld

import (
	"math"

	"github.com/dpareto/dpareto/privacy/meter"
)

// Of sums with few large losses beside many small ones.
const (
	// RareShare is the logarithm of the probability, over δ, of a large loss that is computed apart.
	RareShare = 10
	// rareTilt is by how much such losses are tilted.
	rareTilt = 10
)

// Lowest returns the lowest loss of one run of all parts, or −Inf if it is unbounded.
func (s *Sum) Lowest() float64 {
	sum := 0.0
	for _, p := range s.Parts {
		mixture, ok := p.Pair.(mixturePair)
		if !ok || len(mixture.branches) > 1 || mixture.branches[0].sign < 0 || mixture.q == 1 {
			return math.Inf(-1)
		}
		sum += p.Count * math.Log1p(-mixture.q)
	}
	return sum
}

// LogBelow bounds the logarithm of the probability of a sum of losses below bottom < 0. Where pairs are their own mirror
// image, E[e^{−(c+1)L}] = E[e^{cL}].
func (s *Sum) LogBelow(runs, bottom float64, index int) float64 {
	if bottom <= runs*s.Lowest() {
		return math.Inf(-1)
	}
	for _, p := range s.Parts {
		switch pair := p.Pair.(type) {
		case mixturePair:
			if len(pair.branches) < 2 {
				return 0
			}
		case mixedPair:
			if !pair.isMirrored() {
				return 0
			}
		case groupPair, *allocationPair, *allocationReplacePair, *hullPair, largestLot, wholeAtoms:
			return 0
		}
	}
	return math.Min(0, runs*s.Cumulant(index)+(1+TiltAt(index))*bottom)
}

// Unit returns a loss > 0 of which the losses of all parts with atoms are multiples, but for rounding errors, if there
// is one and all parts have atoms.
func (s *Sum) Unit() (loss float64, one bool) {
	for i, p := range s.Parts {
		unit := 0.0
		switch pair := p.Pair.(type) {
		case boundedPair:
			unit = pair.loss
		case atomPair:
			unit = pair.unit
		}
		if unit == 0 || i > 0 && unit != loss {
			return 0, false
		}
		loss = unit
	}
	return loss, loss > 0
}

// Sum is the loss of independent runs, each of one of its parts. Tilts are
// taken from a geometric grid, so that different δ and numbers of runs share what
// was computed for them. It is not safe for concurrent use.
type Sum struct {
	Parts     []Part
	known     map[int]float64 // log E[e^{cL}] by index of the tilt
	truncated map[int]*Sum
	Saddle    int // index of the tilt of the latest bound
	Work      *meter.Work
}

// Truncate returns the sum with the largest losses of each run made infinite, of which there is one in a number
// of runs with a probability of at most e^logTail. Similar values share a sum.
func (s *Sum) Truncate(runs, logTail float64) *Sum {
	var count float64
	for _, p := range s.Parts {
		count += p.Count
	}
	const share = 8
	index := int(math.Floor((logTail - math.Log(runs*count)) / share))
	t, ok := s.truncated[index]
	if ok {
		return t
	}
	t = &Sum{Work: s.Work}
	changed := false
	for _, p := range s.Parts {
		pair, ok := p.Pair.truncate(float64(index) * share)
		changed = changed || ok
		t.Parts = append(t.Parts, Part{Pair: pair, Count: p.Count, Work: s.Work})
	}
	if !changed {
		return s
	}
	if s.truncated == nil {
		s.truncated = make(map[int]*Sum)
	}
	s.truncated[index] = t
	return t
}

// CountIn counts the work of the sum in w.
func (s *Sum) CountIn(w *meter.Work) {
	s.Work = w
	for i := range s.Parts {
		s.Parts[i].Work = w
	}
	for _, t := range s.truncated {
		t.CountIn(w)
	}
}

// Single returns the least ε >= 0 with δ(ε) <= e^logDelta if there is one run of one pair, and a closed form.
func (s *Sum) Single(runs, logDelta float64) (epsilon float64, ok bool) {
	if len(s.Parts) != 1 || runs*s.Parts[0].Count != 1 {
		return 0, false
	}
	switch s.Parts[0].Pair.(type) {
	case atomPair, *allocationPair, *allocationReplacePair, *hullPair, wholeAtoms: // these count the infinite loss
	default:
		if s.Infinite() > 0 {
			return 0, false
		}
	}
	return s.Parts[0].Pair.Single(logDelta)
}

// UnsampledHolds reports whether Unsampled bounds all parts: it does not for infinite losses of truncated pairs.
func (s *Sum) UnsampledHolds() bool {
	for _, p := range s.Parts {
		switch p.Pair.(type) {
		case *allocationPair, *allocationReplacePair, *hullPair: // infinite losses come from rounding
		default:
			if p.Pair.infinite() > 0 {
				return false
			}
		}
	}
	return true
}

// Infinite bounds the probability of an infinite loss in one run of all parts.
func (s *Sum) Infinite() float64 {
	sum := 0.0
	for _, p := range s.Parts {
		sum += p.Count * p.Pair.infinite()
	}
	return sum
}

// Part is a pair with how often it runs in one run of all parts. It keeps the quadratures of the pair.
type Part struct {
	Pair  Pair
	Count float64
	nodes map[int]*Nodes // see cover; nil where there are too many
	Work  *meter.Work
}

// cumulants are log E[e^{cL}] at some tilt c and its first two derivatives.
type cumulants struct{ K, k2 float64 }

// TiltGrid is the number of tilts in an octave. A contour may pass the saddle at
// a distance of a few percent.
const TiltGrid = 16

// TiltAt returns the tilt of an index of the grid.
func TiltAt(index int) float64 { return math.Exp2(float64(index) / TiltGrid) }

// Cumulant returns log E[e^{cL}] of one run of all parts at a tilt of the grid.
func (s *Sum) Cumulant(index int) float64 {
	sum, ok := s.known[index]
	if !ok {
		sum = s.logMoment(TiltAt(index))
		if s.known == nil {
			s.known = make(map[int]float64)
		}
		s.known[index] = sum
	}
	return sum
}

// logMoment returns log E[e^{cL}] of one run of all parts.
func (s *Sum) logMoment(c float64) float64 {
	sum := 0.0
	for i := range s.Parts {
		sum += s.Parts[i].Count * s.Parts[i].Cumulant(c)
	}
	return sum
}

// cumulantAt returns the cumulants of one run of all parts at any tilt.
func (s *Sum) cumulantAt(c float64) cumulants {
	var sum cumulants
	for i := range s.Parts {
		p := &s.Parts[i]
		one := p.Cumulants(c)
		sum.K += p.Count * one.K
		sum.k2 += p.Count * one.k2
	}
	return sum
}

// Cumulants returns the cumulants of one run of the part, infinite if the quadrature would be
// too long.
func (p *Part) Cumulants(c float64) cumulants {
	if rate, ok := p.Pair.Normal(); ok {
		return cumulants{rate * c * (c + 1), 2 * rate}
	}
	nodes, ok := p.Cover(c)
	if !ok {
		return cumulants{math.Inf(1), math.Inf(1)}
	}
	p.Work.Add(len(nodes.Loss))
	return nodes.cumulants(c)
}

// Cumulant returns log E[e^{cL}] alone.
func (p *Part) Cumulant(c float64) float64 {
	if rate, ok := p.Pair.Normal(); ok {
		return rate * c * (c + 1)
	}
	nodes, ok := p.Cover(c)
	if !ok {
		return math.Inf(1)
	}
	p.Work.Add(len(nodes.Loss))
	return nodes.Cumulant(c)
}

// Cover returns a quadrature for the tilt c; it reports false where that would take too many nodes. Tilts between
// powers of two share one, so that results do not depend on the order of calls.
func (p *Part) Cover(c float64) (*Nodes, bool) {
	const smallest = 3 // one quadrature serves all tilts up to 8, unless it has too many nodes
	level := int(math.Ceil(math.Log2(c)))
	if level < smallest {
		if nodes, ok := p.coverLevel(smallest); ok {
			return nodes, true
		}
	}
	return p.coverLevel(level)
}

// coverLevel returns the quadrature for the tilt 2^level.
func (p *Part) coverLevel(level int) (*Nodes, bool) {
	if nodes, ok := p.nodes[level]; ok {
		return nodes, nodes != nil
	}
	nodes, ok := p.Pair.Nodes(math.Exp2(float64(level)), math.Inf(1), 0)
	p.Work.Add(nodes.Size() * NodeWork)
	if !ok {
		nodes = nil
	}
	if p.nodes == nil {
		p.nodes = make(map[int]*Nodes)
	}
	p.nodes[level] = nodes
	return nodes, ok
}

// Largest returns the largest loss of one run of all parts, or +Inf.
func (s *Sum) Largest() float64 {
	var sum float64
	for _, p := range s.Parts {
		sum += p.Count * p.Pair.Largest()
	}
	return sum
}

// RareTilt returns the index of a tilt for sums with a rare large loss, at most the one for small losses.
func (s *Sum) RareTilt(near Bound) int {
	largest := 0.0
	for _, p := range s.Parts {
		if l := p.Pair.Largest(); !math.IsInf(l, 1) { // others are not truncated
			largest = math.Max(largest, l)
		}
	}
	return min(near.Index, int(TiltGrid*math.Log2(rareTilt/largest)))
}
