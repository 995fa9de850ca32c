package privacy

import (
	"errors"
	"math"
	"sync"
)

// Exact is the tightest accountant: the (ε, δ) curve of the composed dominating
// pairs of a mechanism, by inversion of their characteristic function, which is
// precise to 1e-9. Where that fails, for few steps with little noise, it falls
// back on [PLD].
//
// Epsilon is the least for the pairs. EpsilonLower bounds the ε of data sets that exist, lower
// by 1e-9 of it (by half a percent and 1e-5 after the fallback).
type Exact struct {
	// UpperOnly leaves EpsilonLower out, which may take longer than ε.
	UpperOnly bool
}

// Name returns "exact".
func (Exact) Name() string { return "exact" }

// Curve accounts a [Gaussian], [FixedSizeGaussian], [PoissonGaussian], [Laplace],
// [RandomizedResponse], any other [PureMechanism] by the worst one of its ε, or a Composition
// of them. The losses of pure mechanisms have atoms and are composed as by [PLD].
func (a Exact) Curve(m Mechanism) (Curve, error) {
	return newBoundCurve(a, m, []lossMethod{(*lossSum).invert, pessimistic}, a.UpperOnly)
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
	return newBoundCurve(a, m, []lossMethod{pessimistic}, a.UpperOnly)
}

// lossMethod finds ε for the sum of losses on a line close to the saddle, from above
// for side = +1 and from below for side = −1.
type lossMethod func(s *lossSum, l line, b bound, runs, side float64) (epsilon float64, ok bool)

// pessimistic is the method of PLD. From below, it estimates the excess by a second grid and
// subtracts three times that, and a few thousandths more because the position of ε between two
// grid points matters, too.
func pessimistic(s *lossSum, l line, b bound, runs, side float64) (epsilon float64, ok bool) {
	if side > 0 {
		return s.convolve(l, b, runs, 1, 1, false)
	}
	fine, ok := s.convolve(l, b, runs, 3, 2, true)
	coarse, ok2 := s.convolve(l, b, runs, 6, 1, true)
	excess := math.Max(coarse-fine, 9*meshError*fine)
	return fine - excess - 3e-3*fine - 1e-5, ok && ok2
}

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
			sum.work = w
			for i := range sum.parts {
				sum.parts[i].work = w
			}
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
	for _, sum := range c.lower {
		if epsilon, ok := sum.epsilon(c.methods, runs, logDelta, -1); ok {
			lower = math.Max(lower, epsilon)
		}
	}
	g = g.withLower(lower)
	switch {
	case math.IsInf(g.Epsilon, 1):
		g = g.warn(WarnVacuous, "epsilon is infinite: nothing is guaranteed")
	case !precise:
		g = g.warn(WarnLooseBound, "the losses could not be composed numerically: epsilon is their Rényi bound")
	}
	return g, nil
}

// above returns ε of a number of runs > 0, whole or not, and false if it is only the
// Rényi bound.
func (c *lossCurve) above(runs, logDelta float64) (epsilon float64, precise bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	precise = true
	for _, sum := range c.upper {
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
// the Rényi bound and false.
func (s *lossSum) epsilon(methods []lossMethod, runs, logDelta, side float64) (epsilon float64, ok bool) {
	if mu, normal := s.gaussian(runs); normal {
		return gaussianEpsilon(mu, logDelta), true
	}
	if infinite := runs * s.infinite(); infinite > 0 {
		rest := math.Exp(logDelta) - infinite
		if !(rest > 0) {
			return math.Inf(1), false
		}
		logDelta = math.Log(rest)
	}
	if len(s.parts) == 1 && runs*s.parts[0].count == 1 {
		if epsilon, ok = s.parts[0].pair.single(logDelta); ok {
			return epsilon, true
		}
	}
	var variation float64 // adds up at most
	for _, p := range s.parts {
		variation += runs * p.count * p.pair.variation()
	}
	if math.Log(variation) <= logDelta {
		return 0, true
	}
	least := s.unsampled(runs, logDelta) // of the upper bounds
	b, ok := s.renyi(runs, logDelta)
	if !ok {
		return least, false
	}
	renyi := b
	least = math.Min(least, b.epsilon)
	for range 3 {
		if b.epsilon <= 0 {
			return 0, true
		}
		l := s.chooseLine(b, runs)
		ok = false
		for len(methods) > 0 {
			if epsilon, ok = methods[0](s, l, b, runs, side); ok {
				break
			}
			methods = methods[1:]
		}
		if !ok {
			if side < 0 {
				return 0, false
			}
			return least, false
		}
		// The line was chosen for the bound, and so was the step of a grid, which a
		// contour does not have. Once more if that is far off.
		room := 1 / tiltAt(l.index)
		contour := len(methods) > 1
		if b.epsilon-epsilon < 9*room && (contour || b.epsilon < 8*math.Abs(epsilon)) {
			break
		}
		least = math.Min(least, math.Max(0, epsilon))
		b.epsilon = epsilon + math.Min(room, math.Abs(epsilon))
	}
	if side > 0 && epsilon > 0.9*renyi.epsilon {
		least = math.Min(least, s.refine(renyi, runs))
	}
	return math.Min(least, math.Max(0, epsilon)), true
}

// infinite bounds the probability of an infinite loss in one run of all parts.
func (s *lossSum) infinite() float64 {
	sum := 0.0
	for _, p := range s.parts {
		if pair, ok := p.pair.(atomPair); ok {
			sum += p.count * pair.infinite
		}
	}
	return sum
}

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
