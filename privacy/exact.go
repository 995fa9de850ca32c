package privacy

import (
	"errors"
	"math"
	"sync"
)

// Exact is the tightest accountant: the (ε, δ) curve of the composed dominating
// pairs of a mechanism, by inversion of their characteristic function, which is
// precise to 1e-9. Where losses are of very different sizes, as for small sampling
// probabilities, it is precise to 1e-5 of log δ; for few steps with little noise
// it falls back on the grid of [PLD].
//
// Epsilon is the least for the pairs, plus bounds of all numerical errors, for every δ > 0. If nothing else
// resolves δ, it is Chernoff's bound, and the accountant of the guarantee is [Chernoff]. EpsilonLower bounds the ε
// of data sets that exist from below, with the same errors taken off; a grid loses about ten times as much as above.
type Exact struct {
	// UpperOnly leaves EpsilonLower out, which may take longer than ε.
	UpperOnly bool
}

// Chernoff is the accountant of guarantees of [Exact] and [PLD] that are only Chernoff's bound of the sum of losses.
const Chernoff = "chernoff"

// Name returns "exact".
func (Exact) Name() string { return "exact" }

// Curve accounts a [Gaussian], [FixedSizeGaussian], [PoissonGaussian], [Laplace],
// [RandomizedResponse], any other [PureMechanism] by the worst one of its ε, or a Composition
// of them. The losses of pure mechanisms have atoms and are composed as by [PLD].
func (a Exact) Curve(m Mechanism) (Curve, error) {
	return newBoundCurve(a, m, exactMethods, a.UpperOnly)
}

// PLD is the accountant by discretised privacy loss distributions: losses are
// rounded pessimistically to a grid and convolved by the fast Fourier transform.
// Its ε is an upper bound, too large by about 2e-5 of it or by up to 1e-5, whichever is more.
type PLD struct {
	// UpperOnly leaves EpsilonLower out, which may take longer than ε.
	UpperOnly bool
}

// Name returns "pld".
func (PLD) Name() string { return "pld" }

// Curve accounts the mechanisms that Exact does.
func (a PLD) Curve(m Mechanism) (Curve, error) {
	return newBoundCurve(a, m, gridMethods, a.UpperOnly)
}

// lossMethod finds ε for a sum of losses.
type lossMethod struct {
	// negligible is −log of what may be left out, relative to δ.
	negligible float64
	// anyScale says that find is as precise if ε is far below its bound.
	anyScale bool
	// find returns ε, given its bound, from above for side = +1 and from below for side = −1.
	find func(s *lossSum, b bound, runs, negligible, side float64) (epsilon float64, ok bool)
}

// The methods of Exact: a contour, contours for losses of very different sizes, which leave out more, and a grid.
var (
	exactMethods = []lossMethod{
		{27, true, (*lossSum).invert},
		{18, true, (*lossSum).invertApart},
		{13, true, (*lossSum).invertApart},
		{spill, false, mesh{meshError, 1 << 18}.find},
	}
	gridMethods = []lossMethod{{spill, false, mesh{meshError, maxGrid}.find}}
)

// lossCurve is the Curve of Exact and PLD.
type lossCurve struct {
	base    Guarantee
	methods []lossMethod

	mu           sync.Mutex // guards what the sums have cached
	upper, lower directions
}

func (c *lossCurve) countIn(w *Work) {
	for _, d := range []directions{c.upper, c.lower} {
		for _, sum := range d {
			sum.countIn(w)
		}
	}
}

// newBoundCurve is newLossCurve, without the lower bound if upperOnly.
func newBoundCurve(a Accountant, m Mechanism, methods []lossMethod, upperOnly bool) (Curve, error) {
	c, err := newLossCurve(a, m, methods)
	if err != nil {
		return nil, err // not a nil *lossCurve
	}
	if upperOnly {
		c.lower = nil
	}
	return c, nil
}

func newLossCurve(a Accountant, m Mechanism, methods []lossMethod) (*lossCurve, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	c := &lossCurve{base: baseGuarantee(a, m), methods: methods}
	for _, p := range flatten(m) {
		upper, lower, err := dominatingPairs(a, p.Mechanism)
		if err != nil {
			return nil, err
		}
		c.upper = c.upper.add(upper, float64(p.Count))
		c.lower = c.lower.add(lower, float64(p.Count))
	}
	return c, nil
}

// dominatingPairs returns the pairs of m, and those that some data sets attain.
func dominatingPairs(a Accountant, m Mechanism) (upper, lower []lossPair, err error) {
	if s, ok := m.(Selection); ok && s.Method == Exponential {
		return nil, nil, &UnsupportedError{a.Name(), m.Name(), "its Rényi divergence is below the one of its pure-DP guarantee"}
	}
	switch mechanism := m.(type) {
	case lowerMechanism:
		return mechanism.lossPairs(), mechanism.lowerPairs(), nil
	case lossMechanism:
		upper = mechanism.lossPairs()
		return upper, upper, nil
	case PureMechanism:
		return []lossPair{purePair(mechanism.PureEpsilon())}, nil, nil
	default:
		return nil, nil, &UnsupportedError{a.Name(), m.Name(), "it has no dominating pair"}
	}
}

// lowerMechanism is a lossMechanism whose pairs may not be attained. Some pair of data sets
// attains its lowerPairs, of which there may be none.
type lowerMechanism interface {
	lossMechanism
	lowerPairs() []lossPair
}

// directions holds the sum of losses for each direction in which data sets can
// differ.
type directions []*lossSum

func (d directions) add(pairs []lossPair, count float64) directions {
	if len(pairs) == 0 {
		return d
	}
	for len(d) < len(pairs) {
		sum := &lossSum{}
		if len(d) > 0 { // the parts so far serve every direction
			for _, p := range d[0].parts {
				sum.parts = append(sum.parts, lossPart{pair: p.pair, count: p.count})
			}
		}
		d = append(d, sum)
	}
	for i, sum := range d {
		sum.parts = append(sum.parts, lossPart{pair: pairs[min(i, len(pairs)-1)], count: count})
	}
	return d
}

// Epsilon takes some milliseconds, less after other calls on the same curve.
func (c *lossCurve) Epsilon(steps int64, delta float64) (Guarantee, error) {
	if err := errors.Join(checkSteps(steps), checkDelta(delta)); err != nil {
		return Guarantee{}, err
	}
	g := c.base
	g.Delta, g.Steps = delta, steps
	if steps == 0 {
		return g, nil
	}
	runs, logDelta := float64(steps), math.Log(delta)
	epsilon, precise := c.above(runs, logDelta)
	g.Epsilon = epsilon
	c.mu.Lock()
	defer c.mu.Unlock()
	lower := 0.0
	for i, sum := range c.lower {
		if i > 0 && sum.isBelow(lower, runs, logDelta, c.lower[0].saddle) {
			continue
		}
		if epsilon, ok := sum.epsilon(c.methods, runs, logDelta, -1); ok {
			lower = math.Max(lower, epsilon)
		}
	}
	g = g.withLower(lower)
	switch {
	case math.IsInf(g.Epsilon, 1):
		g = g.warn(WarnVacuous, "epsilon is infinite: nothing is guaranteed")
	case !precise:
		g.Accountant = Chernoff
		g = g.warn(WarnLooseBound, "the losses could not be composed numerically: epsilon is Chernoff's bound")
	}
	return g, nil
}

// above returns ε of a number of runs > 0, whole or not, and false if it is only the
// Rényi bound.
func (c *lossCurve) above(runs, logDelta float64) (epsilon float64, precise bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	precise = true
	for i, sum := range c.upper {
		if i > 0 && sum.isBelow(epsilon, runs, logDelta, c.upper[0].saddle) {
			continue
		}
		e, ok := sum.epsilon(c.methods, runs, logDelta, 1)
		epsilon = math.Max(epsilon, e)
		precise = precise && ok
	}
	if math.IsNaN(epsilon) { // beyond the range of floats
		epsilon = math.Inf(1)
	}
	return epsilon, precise
}

// epsilon returns the least ε >= 0 with δ(ε) <= e^logDelta, from above (side = +1)
// or below (side = −1), by the first method that works. If none does it returns
// Chernoff's bound, or 0, and false.
func (s *lossSum) epsilon(methods []lossMethod, runs, logDelta, side float64) (epsilon float64, ok bool) {
	margin := closedMargin * (1 - logDelta)
	closed := logDelta - side*margin
	if mu, normal := s.gaussian(runs); normal {
		return gaussianEpsilon(mu, closed), true
	}
	if len(s.parts) == 1 && runs*s.parts[0].count == 1 && s.infinite() == 0 {
		if epsilon, ok = s.parts[0].pair.single(closed); ok {
			if epsilon > 0 {
				epsilon = math.Nextafter(epsilon, side*math.Inf(1))
			}
			return epsilon, true
		}
	}
	var variation float64 // adds up at most
	for _, p := range s.parts {
		variation += runs * p.count * p.pair.variation()
	}
	if math.Log(variation+runs*s.infinite()) <= closed {
		return 0, true
	}
	least := math.Inf(1) // of the upper bounds
	if s.infinite() == 0 {
		least = s.unsampled(runs, closed)
	}
	for _, m := range methods {
		epsilon, chernoff, ok := s.by(m, runs, logDelta, side)
		least = math.Min(least, chernoff)
		if ok && side < 0 {
			return math.Max(0, epsilon), true
		}
		if ok {
			epsilon = math.Max(0, epsilon)
			return math.Min(least, epsilon), chernoff > 0.99*epsilon // else a grid is too coarse
		}
	}
	if side < 0 {
		return 0, false
	}
	return least, false
}

// isBelow reports whether the largest loss, or Chernoff's bound for a tilt, is at most epsilon. For adding a
// record it often is, by the tilt for removing one.
func (s *lossSum) isBelow(epsilon, runs, logDelta float64, index int) bool {
	if !(epsilon > 0) {
		return false
	}
	if s.infinite() == 0 && runs*s.largest()*(1+closedMargin) <= epsilon {
		return true
	}
	c := tiltAt(index)
	bound := runs*s.cumulant(index)/c + Improved.surcharge(1+c, logDelta)
	return s.infinite() == 0 && bound+quadratureMargin*(math.Abs(bound)+1/c) <= epsilon
}

// closedMargin covers the rounding errors of closed forms in log δ, over 1 − log δ.
const closedMargin = 1e-14

// by returns ε by a method, and Chernoff's bound of it.
func (s *lossSum) by(m lossMethod, runs, logDelta, side float64) (epsilon, chernoff float64, ok bool) {
	whole := s
	s = s.truncate(runs, logDelta-m.negligible)
	if side > 0 {
		share := math.Exp(math.Log(runs*s.infinite()) - logDelta)
		if !(share < 1) {
			return 0, math.Inf(1), false
		}
		logDelta += math.Log1p(-share)
	}
	b, ok := s.renyi(runs, logDelta)
	if !ok {
		return 0, math.Inf(1), false
	}
	whole.saddle = b.index
	best := b
	margin := quadratureMargin * (math.Abs(b.epsilon) + 1/tiltAt(b.index))
	if b.epsilon+margin <= 0 {
		return 0, 0, true
	}
	chernoff = b.epsilon + margin
	for range 3 {
		if epsilon, ok = m.find(s, b, runs, m.negligible, side); !ok {
			return 0, chernoff, false
		}
		// The line was chosen for the bound, and so was the step of a grid, which a
		// contour does not have. Once more if that is far off.
		room := 1 / tiltAt(b.index)
		if b.epsilon-epsilon < 9*room && (m.anyScale || b.epsilon < 8*math.Abs(epsilon)) {
			break
		}
		b.epsilon = epsilon + math.Min(room, math.Abs(epsilon))
	}
	if side > 0 && epsilon > 0.9*chernoff {
		chernoff = math.Min(chernoff, math.Max(0, s.refine(best, runs)+margin))
	}
	return epsilon, chernoff, true
}

// quadratureMargin covers the errors of a quadrature of E[e^{cL}], in its logarithm for all runs over the one of δ.
const quadratureMargin = 1e-10

// unsampled returns ε without the gain by sampling, which is finite unless it
// exceeds the range of floats.
func (s *lossSum) unsampled(runs, logDelta float64) float64 {
	var squared, pure float64
	for _, p := range s.parts {
		mu, epsilon := p.pair.unsampled()
		squared += runs * p.count * mu * mu
		pure += runs * p.count * epsilon
	}
	return gaussianEpsilon(math.Sqrt(squared), logDelta) + pure
}

// gaussian returns μ of all runs if every part is N(0, 1) against N(μ, 1).
func (s *lossSum) gaussian(runs float64) (mu float64, normal bool) {
	var squared float64
	for _, p := range s.parts {
		rate, ok := p.pair.normal()
		if !ok {
			return 0, false
		}
		squared += p.count * 2 * rate
	}
	return math.Sqrt(runs * squared), true
}
