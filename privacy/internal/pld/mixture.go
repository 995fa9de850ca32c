package pld

import (
	"math"

	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/meter"
)

func (p mixturePair) Discretise(step, bottom, side float64, w *meter.Work) (g Grid, ok bool) {
	return discretise(p, step, bottom, side, w)
}

// Center returns the loss at the mean of Q, or 0 where that has an atom.
func (p mixturePair) Center() float64 {
	if len(p.branches) > 1 {
		return 0
	}
	return p.branches[0].sign * p.logMixture(-0.5/(p.z*p.z))
}

func (p mixturePair) extent() (lowest, highest float64) {
	furthest := p.end
	if furthest == 0 {
		furthest = 1 + largestDeviation*p.z
	}
	lo, hi := p.logMixture((-largestDeviation*p.z-0.5)/(p.z*p.z)), p.logMixture((furthest-0.5)/(p.z*p.z))
	switch {
	case len(p.branches) > 1:
		return -hi, hi
	case p.branches[0].sign < 0:
		return -hi, -lo
	default:
		return lo, hi
	}
}

// largestDeviation is the distance, in standard deviations, beyond which the mass is below 1e-310.
const largestDeviation = 38

// mass returns the mass of both distributions with loss in (from, to].
func (p mixturePair) mass(from, to float64) (upper, lower float64) {
	for _, b := range p.branches {
		lo, hi := p.position(b, from), p.position(b, to)
		if b.sign < 0 {
			lo, hi = hi, lo
		}
		lo, hi = math.Max(lo, b.from), math.Max(hi, b.from)
		width := (hi - lo) / p.z
		q, shifted := gaussian.Interval(lo/p.z, hi/p.z, width), gaussian.Interval((lo-1)/p.z, (hi-1)/p.z, width)
		upper += (1-b.upper)*q + b.upper*shifted
		lower += (1-b.lower)*q + b.lower*shifted
	}
	if len(p.branches) > 1 && from < 0 && to >= 0 {
		atom := (1 - p.q) * math.Erf(0.5/p.z/math.Sqrt2)
		upper, lower = upper+atom, lower+atom
	}
	return upper, lower
}

// position returns the x at which the loss on branch b is l.
func (p mixturePair) position(b branch, l float64) float64 {
	l *= b.sign
	if math.IsInf(l, 0) {
		return l
	}
	t := l
	if p.q < 1 {
		if l > 30 {
			t = l - math.Log(p.q) + math.Log1p(-(1-p.q)*math.Exp(-l))
		} else {
			t = math.Log1p(math.Max(-1, math.Expm1(l)/p.q)) // −Inf below log(1 − q)
		}
	}
	return p.z*p.z*t + 0.5
}

// mixturePair is a pair made of Q = N(0, z²) and P = N(1, z²). With t =
// (2x − 1)/2z², so that dP/dQ = e^t, the loss at x is ±log(1 + q(e^t − 1)) on
// each of its branches, and 0 with the remaining mass of both distributions.
type mixturePair struct {
	q, z     float64 // 0 < q <= 1, z > 0
	branches []branch
	end      float64 // losses at x > end > 1/2 are infinite; 0 if there are none
}

// branch is the part of a pair that lives on x > from.
type branch struct {
	from         float64 // -Inf, or 1/2 where t = 0
	sign         float64 // of the loss
	upper, lower float64 // share of P in the two distributions, 0 or q; the rest is Q
}

// Gaussian is N(0, 1) against N(mu, 1).
func Gaussian(mu float64) mixturePair {
	return mixturePair{q: 1, z: 1 / mu, branches: []branch{{math.Inf(-1), 1, 1, 0}}}
}

// FixedSize dominates the Gaussian with noise multiplier z on fixed-size
// samples without replacement when one record is replaced:
//
//	δ(ε) = q·(Φ(1/2z − ε₀z) − e^{ε₀}·Φ(−1/2z − ε₀z)), ε₀ = log(1 + (e^ε − 1)/q), ε >= 0
//
// and δ(ε) = 1 − e^ε + e^ε·δ(−ε) below. For ε >= 0 that is the bound of Balle,
// Barthe and Gaboardi, "Privacy amplification by subsampling", 2018, Theorem 9;
// it is convex in e^ε, hence the profile of a pair, which composes (Zhu, Dong and
// Wang, 2022, Theorem 10 and Proposition 30; Dong, Roth and Su, "Gaussian
// differential privacy", 2022, §4).
//
// The argument at [replacePair] proves it too: given the other m − 1 records of the
// sample and the y that takes the place otherwise, the outputs are (1−q)N(y) + qN(x)
// and (1−q)N(y) + qN(x'), which for e^ε >= 1 are easiest to tell apart if x' = y = −x.
func FixedSize(q, z float64) mixturePair {
	if q == 1 {
		return Gaussian(1 / z)
	}
	return mixturePair{q: q, z: z, branches: []branch{{0.5, 1, q, 0}, {0.5, -1, 0, q}}}
}

// Poisson are the pairs of the Gaussian with noise multiplier z on Poisson
// samples: (1−q)Q + qP against Q when a record is removed, the reverse when one
// is added (Zhu, Dong and Wang, 2022, Theorem 11).
func Poisson(q, z float64) []Pair {
	if q == 1 {
		return []Pair{Gaussian(1 / z)}
	}
	return []Pair{
		mixturePair{q: q, z: z, branches: []branch{{math.Inf(-1), 1, q, 0}}},
		mixturePair{q: q, z: z, branches: []branch{{math.Inf(-1), -1, 0, q}}},
	}
}

// LogMixture returns log(1 + q(e^t − 1)).
func LogMixture(q, t float64) float64 {
	if q == 1 {
		return t
	}
	if t > 700 { // e^t is beyond floats soon; before, q·e^t may be small
		return t + math.Log(q) + math.Log1p((1-q)/q*math.Exp(-t))
	}
	return math.Log1p(q * math.Expm1(t))
}

func (p mixturePair) logMixture(t float64) float64 { return LogMixture(p.q, t) }

func (p mixturePair) Nodes(tilt, floor, panel float64) (n *Nodes, ok bool) {
	if p.z < leastNoise {
		return nil, false
	}
	n = &Nodes{tilt: tilt}
	for _, b := range p.branches {
		if !p.panels(n, b, floor, panel) {
			return n, false
		}
	}
	n.beyond, n.Drift = p.beyond()
	return n, true
}

// truncate uses that Φ(−g) is at most e^{−g²/2}/2, for both components of the mixture.
func (p mixturePair) truncate(logTail float64) (Pair, bool) {
	if p.q == 1 || p.branches[0].sign < 0 || !(logTail < 0) {
		return p, false // a closed form, or bounded losses
	}
	p.end = p.z * math.Sqrt(-2*logTail)
	if rest := logTail - math.Log(p.q); rest < 0 {
		p.end = math.Max(p.end, 1+p.z*math.Sqrt(-2*rest))
	}
	p.end = math.Max(p.end, 1)
	return p, true
}

func (p mixturePair) BeyondOf(small Pair) Pair {
	b := p.branches[0]
	b.from = math.Inf(1)
	if end := small.(mixturePair).end; end > 0 {
		b.from = end
	}
	return mixturePair{q: p.q, z: p.z, branches: []branch{b}, end: p.end}
}

func (p mixturePair) infinite() float64 {
	upper, _ := p.beyond()
	return upper
}

// beyond returns the mass of the infinite losses under the upper distribution, and by how much it
// exceeds the one under the lower distribution.
func (p mixturePair) beyond() (upper, drift float64) {
	if p.end == 0 {
		return 0, 0
	}
	b := p.branches[0] // the only one with large losses
	q, shifted := 0.5*math.Erfc(p.end/p.z/math.Sqrt2), 0.5*math.Erfc((p.end-1)/p.z/math.Sqrt2)
	return (1-b.upper)*q + b.upper*shifted, (b.upper - b.lower) * (shifted - q)
}

func (p mixturePair) Normal() (rate float64, ok bool) {
	return 0.5 / (p.z * p.z), p.q == 1
}

// cliff is where E[e^{cL}], at least q^{c+1}·e^{c(c+1)/2z²}, becomes large.
func (p mixturePair) cliff() float64 {
	if p.q == 1 {
		return math.Inf(1)
	}
	return math.Max(1, 2*p.z*p.z*-math.Log(p.q))
}

func (p mixturePair) Largest() float64 {
	switch {
	case p.end > 0:
		return p.logMixture((p.end - 0.5) / (p.z * p.z))
	case p.branches[0].sign < 0:
		return -math.Log1p(-p.q)
	default:
		return math.Inf(1)
	}
}

func (p mixturePair) Unsampled() (mu, epsilon float64) { return 1 / p.z, 0 }

func (p mixturePair) Variation() float64 { return p.q * math.Erf(1/(2*math.Sqrt2*p.z)) }

// Single: δ(ε) of (1−q)Q + qP against Q is q times δ(log(1 + (e^ε − 1)/q)) of P against Q. In the
// opposite direction it is a·δ(ε + log(q/a)) with a = 1 − (1−q)·e^ε.
func (p mixturePair) Single(logDelta float64) (epsilon float64, ok bool) {
	logQ := math.Log(p.q)
	if logDelta >= logQ {
		return 0, true
	}
	if p.branches[0].sign > 0 {
		whole := gaussian.Epsilon(1/p.z, logDelta-logQ)
		return math.Max(0, p.logMixture(whole)), true
	}
	// With a = q·e^{−w}, δ falls in w. The upper end of the bracket is above the root.
	at := func(w float64) float64 { return math.Log1p(-p.q*math.Exp(-w)) - math.Log1p(-p.q) }
	hi := bisect(0, logQ-logDelta, func(w float64) bool {
		profile, _ := gaussian.Profile(1/p.z, w+at(w))
		return logQ-w+profile > logDelta
	})
	return at(hi), true
}

// bisect returns the upper end of the last interval within [lo, hi] at whose lower end isLow holds and at
// whose upper end it does not.
func bisect(lo, hi float64, isLow func(x float64) bool) float64 {
	for {
		mid := lo + 0.5*(hi-lo)
		if !(mid > lo && mid < hi) || hi-lo <= 1e-15*hi {
			return hi
		}
		if isLow(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
}

// logDensity returns the logarithm of the upper density of branch b at x times
// e^{tilt·loss}, without the constant, and the loss.
func (p mixturePair) logDensity(b branch, x, tilt float64) (logDensity, loss float64) {
	t := (x - 0.5) / (p.z * p.z)
	mixture := p.logMixture(t)
	loss = b.sign * mixture
	logDensity = -0.5*(x/p.z)*(x/p.z) + tilt*loss
	if b.upper > 0 {
		logDensity += mixture
	}
	return logDensity, loss
}

// interval returns where the integrands of branch b matter.
func (p mixturePair) interval(b branch, tilt float64) (lo, hi float64) {
	lo, hi = p.untruncated(b, tilt)
	if p.end > 0 && b.sign > 0 {
		hi = math.Min(hi, p.end)
	}
	return lo, hi
}

// untruncated is interval without the end of the losses, if that is further away.
func (p mixturePair) untruncated(b branch, tilt float64) (lo, hi float64) {
	slope := tilt * b.sign // power of the mixture in the integrand
	if b.upper > 0 {
		slope++
	}
	lo = -reach * p.z
	if slope < 0 {
		lo += slope * p.q
	}
	lo = math.Max(lo, b.from)
	hi = 1 + reach*p.z
	if slope <= 1 {
		return lo, hi
	}
	// A peak solves x = slope·share(x), share = q·e^t/(1 − q + q·e^t) rising in x.
	// There are at most two; iteration from below and from above finds them.
	fixedPoint := func(x float64) float64 {
		for range 200 {
			t := (x - 0.5) / (p.z * p.z)
			next := slope / (1 + (1-p.q)/p.q*math.Exp(-t))
			if math.Abs(next-x) <= 0.01*p.z {
				break
			}
			x = next
		}
		return x
	}
	const depth = 80 // −log of the share that is negligible even next to E[e^{cL}] − 1
	left, right := math.Max(0.5, fixedPoint(0)), fixedPoint(slope)
	top, _ := p.logDensity(b, left, tilt)
	hi = math.Max(hi, left+reach*p.z)
	if v, _ := p.logDensity(b, right, tilt); v > top-depth {
		hi = math.Max(hi, right+reach*p.z)
	}
	for { // there may be a shoulder; beyond maxNodes the interval is of no use
		if v, _ := p.logDensity(b, hi, tilt); !(v >= top-depth) || hi-lo > maxNodes*p.z || hi+p.z == hi || p.end > 0 && hi > p.end {
			return lo, hi
		}
		hi += p.z
	}
}

// width returns the width of a panel that begins at x. Integrands vary at the scale
// z of the density, and at the scale z² around the zero of 1 − q + q·e^t next to the
// real line.
func (p mixturePair) width(x float64) float64 {
	turn := 0.5 + p.z*p.z*math.Log((1-p.q)/p.q)
	near := math.Max(1.5*p.z*p.z, 0.5*math.Max(x-turn, 0.5*(turn-x)))
	return math.Min(2*p.z, near)
}

// panels appends a composite Gauss-Legendre rule for branch b.
func (p mixturePair) panels(n *Nodes, b branch, floor, panel float64) (ok bool) {
	lo, hi := p.interval(b, n.tilt)
	logDensity := func(x, tilt float64) (float64, float64) { return p.logDensity(b, x, tilt) }
	n.grow(usualNodes)
	first := len(n.spans)
	ok = n.panels(lo, hi, floor, panel, p.z, logDensity, p.slope, p.width)
	for i := range n.spans[first:] {
		n.spans[first+i].sign = b.sign
	}
	return ok
}

// slope returns the absolute derivative of the loss at x.
func (p mixturePair) slope(x float64) float64 {
	return 1 / (p.z * p.z * (1 + (1-p.q)/p.q*math.Exp((0.5-x)/(p.z*p.z))))
}
