package composition

import (
	"math"
	"sync"

	"github.com/dpareto/dpareto/privacy/internal/convolution"
	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/internal/inversion"
	"github.com/dpareto/dpareto/privacy/internal/orders"
	"github.com/dpareto/dpareto/privacy/internal/pld"
	"github.com/dpareto/dpareto/privacy/meter"
)

// Method finds ε for a sum of losses.
type Method struct {
	// negligible is −log of what may be left out, relative to δ.
	negligible float64
	// anyScale says that find is as precise if ε is far below its bound.
	anyScale bool
	// find returns ε, given its bound, from above for side = +1 and from below for side = −1.
	find func(s *pld.Sum, b pld.Bound, runs, negligible, side float64) (epsilon float64, ok bool)
}

// The methods of privacy.Exact: a contour, contours for losses of very different sizes, which leave out more, and a grid.
var (
	Exact = []Method{
		{27, true, inversion.Invert},
		{18, true, inversion.InvertApart},
		{13, true, inversion.InvertApart},
		{convolution.Spill, false, convolution.Mesh{Excess: convolution.MeshError, Most: 1 << 18}.Find},
	}
	// Rough leave out 5e-5 of δ, and take half of the time.
	Rough = []Method{{10, true, inversion.Invert}, {10, true, inversion.InvertApart}, Exact[3]}
	Grid  = []Method{{convolution.Spill, false, convolution.Mesh{Excess: convolution.MeshError, Most: pld.MaxGrid}.Find}}
)

// Coarse are a contour and a grid whose excess is about 1e-3.
var Coarse = []Method{Exact[0], {convolution.Spill, false, convolution.Mesh{Excess: 1e-3, Most: pld.MaxGrid}.Find}}

// Losses are the losses of mechanisms that run together. They are safe for concurrent use.
type Losses struct {
	Methods []Method
	ByPure  bool // some part is known by its pure ε only

	mu           sync.Mutex // guards the caches of the sums
	upper, lower []*pld.Sum // by direction in which data sets can differ
}

// New returns losses without parts.
func New(methods []Method) *Losses {
	return &Losses{Methods: methods}
}

// Add adds a number of runs.
func (c *Losses) Add(pairs pld.Pairs, count float64) {
	c.upper = addPairs(c.upper, pairs.Upper, count)
	c.lower = addPairs(c.lower, pairs.Lower, count)
}

// AddPure adds a number of runs of the worst mechanism that is ε-DP.
func (c *Losses) AddPure(epsilon, count float64) {
	c.ByPure = true
	c.Add(pld.Pairs{Upper: []pld.Pair{pld.Pure(epsilon)}}, count)
}

func addPairs(sums []*pld.Sum, pairs []pld.Pair, count float64) []*pld.Sum {
	if len(pairs) == 0 {
		return sums
	}
	for len(sums) < len(pairs) {
		sum := &pld.Sum{}
		if len(sums) > 0 { // the parts so far serve every direction
			for _, p := range sums[0].Parts {
				sum.Parts = append(sum.Parts, pld.Part{Pair: p.Pair, Count: p.Count})
			}
		}
		sums = append(sums, sum)
	}
	for i, sum := range sums {
		sum.Parts = append(sum.Parts, pld.Part{Pair: pairs[min(i, len(pairs)-1)], Count: count})
	}
	return sums
}

// DropLower leaves the bound from below out.
func (c *Losses) DropLower() { c.lower = nil }

// CountIn counts the work of all sums in w.
func (c *Losses) CountIn(w *meter.Work) {
	for _, sums := range [][]*pld.Sum{c.upper, c.lower} {
		for _, sum := range sums {
			sum.CountIn(w)
		}
	}
}

// Direction is the sum of losses of one direction in which data sets can differ.
type Direction struct {
	losses  *Losses
	sum     *pld.Sum
	methods []Method
}

// UpperDirections returns the sums of the pairs that dominate.
func (c *Losses) UpperDirections() []Direction { return c.directionsOf(c.upper) }

// LowerDirections returns the sums of the pairs that some data sets attain.
func (c *Losses) LowerDirections() []Direction { return c.directionsOf(c.lower) }

func (c *Losses) directionsOf(sums []*pld.Sum) []Direction {
	var all []Direction
	for _, sum := range sums {
		all = append(all, Direction{c, sum, c.Methods})
	}
	return all
}

// Quick returns the direction by the first method alone: the others are slow.
func (d Direction) Quick() Direction { return Direction{d.losses, d.sum, d.methods[:1]} }

// Epsilon returns the least ε >= 0 with δ(ε) <= e^logDelta, from above for side = +1 and from below for
// side = −1. ok is false if it is only a Chernoff bound, or 0 from below.
func (d Direction) Epsilon(runs, logDelta, side float64) (epsilon float64, ok bool) {
	d.losses.mu.Lock()
	defer d.losses.mu.Unlock()
	return epsilonOf(d.sum, d.methods, runs, logDelta, side)
}

// Gaussian returns μ of a number of runs if all of them are N(0, 1) against N(μ, 1).
func (c *Losses) Gaussian(runs float64) (mu float64, ok bool) {
	if len(c.upper) != 1 {
		return 0, false
	}
	return normalMu(c.upper[0], runs)
}

// Below returns a bound on ε from below of a number of runs, 0 if there is none.
func (c *Losses) Below(runs, logDelta float64) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	lower := 0.0
	for i, sum := range c.lower {
		if i > 0 && isBelow(sum, lower, runs, logDelta, c.lower[0].Saddle) {
			continue
		}
		if epsilon, ok := epsilonOf(sum, c.Methods, runs, logDelta, -1); ok {
			lower = math.Max(lower, epsilon)
		}
	}
	return lower
}

// Above returns ε of a number of runs > 0, whole or not, and false if it is only the
// Rényi bound.
func (c *Losses) Above(runs, logDelta float64) (epsilon float64, precise bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	precise = true
	for i, sum := range c.upper {
		if i > 0 && isBelow(sum, epsilon, runs, logDelta, c.upper[0].Saddle) {
			continue
		}
		e, ok := epsilonOf(sum, c.Methods, runs, logDelta, 1)
		epsilon = math.Max(epsilon, e)
		precise = precise && ok
	}
	if math.IsNaN(epsilon) { // beyond the range of floats
		epsilon = math.Inf(1)
	}
	return epsilon, precise
}

// epsilonOf returns the least ε >= 0 with δ(ε) <= e^logDelta, from above (side = +1)
// or below (side = −1), by the first method that works. If none does it returns
// Chernoff's bound, or 0, and false.
func epsilonOf(s *pld.Sum, methods []Method, runs, logDelta, side float64) (epsilon float64, ok bool) {
	margin := closedMargin * (1 - logDelta)
	closed := logDelta - side*margin
	if mu, normal := normalMu(s, runs); normal {
		return gaussian.Epsilon(mu, closed), true
	}
	if epsilon, ok = s.Single(runs, closed); ok {
		if epsilon > 0 {
			epsilon = math.Nextafter(epsilon, side*math.Inf(1))
		}
		return epsilon, true
	}
	var variation float64 // adds up at most
	for _, p := range s.Parts {
		variation += runs * p.Count * p.Pair.Variation()
	}
	if math.Log(variation+runs*s.Infinite()) <= closed {
		return 0, true
	}
	least := math.Inf(1) // of the upper bounds
	if s.UnsampledHolds() {
		least = unsampled(s, runs, closed)
	}
	for _, m := range methods {
		epsilon, chernoff, ok := epsilonBy(s, m, runs, logDelta, side)
		least = math.Min(least, chernoff)
		if ok && side < 0 {
			return math.Max(0, epsilon), true
		}
		if ok {
			epsilon = math.Max(0, epsilon)
			// If Chernoff's bound is far less, a grid is too coarse. Both may be 0, which is exact.
			return math.Min(least, epsilon), chernoff >= 0.99*epsilon
		}
	}
	if side < 0 {
		return 0, false
	}
	return least, false
}

// isBelow reports whether the largest loss, or Chernoff's bound for a tilt, is at most epsilon. For adding a
// record it often is, by the tilt for removing one.
func isBelow(s *pld.Sum, epsilon, runs, logDelta float64, index int) bool {
	if !(epsilon > 0) || s.Infinite() > 0 {
		return false
	}
	if runs*s.Largest()*(1+closedMargin) <= epsilon {
		return true
	}
	c := pld.TiltAt(index)
	bound := runs*s.Cumulant(index)/c + orders.Surcharge(1+c, logDelta)
	return bound+quadratureMargin*(math.Abs(bound)+1/c) <= epsilon
}

// closedMargin covers the rounding errors of closed forms in log δ, over 1 − log δ.
const closedMargin = 1e-14

// epsilonBy returns ε by a method, and Chernoff's bound of it.
func epsilonBy(s *pld.Sum, m Method, runs, logDelta, side float64) (epsilon, chernoff float64, ok bool) {
	whole := s
	s = s.Truncate(runs, logDelta-m.negligible)
	if side > 0 {
		share := math.Exp(math.Log(runs*s.Infinite()) - logDelta)
		if !(share < 1) {
			return 0, math.Inf(1), false
		}
		logDelta += math.Log1p(-share)
	}
	b, ok := s.Renyi(runs, logDelta)
	if !ok {
		return 0, math.Inf(1), false
	}
	whole.Saddle = b.Index
	best := b
	margin := quadratureMargin * (math.Abs(b.Epsilon) + 1/pld.TiltAt(b.Index))
	if b.Epsilon+margin <= 0 {
		return 0, 0, true
	}
	chernoff = b.Epsilon + margin
	for range 3 {
		if epsilon, ok = m.find(s, b, runs, m.negligible, side); !ok {
			return 0, chernoff, false
		}
		// The line was chosen for the bound, and so was the step of a grid, which a
		// contour does not have. Once more if that is far off.
		room := 1 / pld.TiltAt(b.Index)
		if b.Epsilon-epsilon < 9*room && (m.anyScale || b.Epsilon < 8*math.Abs(epsilon)) {
			break
		}
		b.Epsilon = epsilon + math.Min(room, math.Abs(epsilon))
	}
	if side > 0 && epsilon > 0.9*chernoff {
		chernoff = math.Min(chernoff, math.Max(0, s.Refine(best, runs)+margin))
	}
	return epsilon, chernoff, true
}

// quadratureMargin covers the errors of a quadrature of E[e^{cL}], in its logarithm for all runs over the one of δ.
const quadratureMargin = 1e-10

// unsampled returns ε without the gain by sampling, which is finite unless it
// exceeds the range of floats.
func unsampled(s *pld.Sum, runs, logDelta float64) float64 {
	var squared, pure float64
	for _, p := range s.Parts {
		mu, epsilon := p.Pair.Unsampled()
		squared += runs * p.Count * mu * mu
		pure += runs * p.Count * epsilon
	}
	return gaussian.Epsilon(math.Sqrt(squared), logDelta) + pure
}

// normalMu returns μ of all runs if every part is N(0, 1) against N(μ, 1).
func normalMu(s *pld.Sum, runs float64) (mu float64, normal bool) {
	var squared float64
	for _, p := range s.Parts {
		rate, ok := p.Pair.Normal()
		if !ok {
			return 0, false
		}
		squared += p.Count * 2 * rate
	}
	return math.Sqrt(runs * squared), true
}
