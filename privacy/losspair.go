package privacy

import (
	"math"
	"slices"
)

// A dominating pair (Zhu, Dong and Wang, "Optimal accounting of differential
// privacy via characteristic function", 2022) of a mechanism is two
// distributions, upper and lower, that are at least as easy to tell apart as the
// outputs on any two adjacent data sets. The privacy loss is
// L = log d(upper)/d(lower) under the upper one; losses of composed mechanisms
// add up, and
//
//	δ(ε) = E[(1 − e^{ε−L})₊].

// lossMechanism is a Mechanism with dominating pairs.
type lossMechanism interface {
	Mechanism
	// lossPairs returns a pair for each direction in which two data sets can
	// differ: for removing and for adding a record, or one pair if it serves both.
	lossPairs() []lossPair
}

// lossPair is a dominating pair.
type lossPair interface {
	// normal returns the rate of the cumulants rate·c(c+1) of a pair of two normal
	// distributions; ok is false for other pairs.
	normal() (rate float64, ok bool)
	// cliff returns a tilt from which E[e^{cL}] grows fast, or +Inf.
	cliff() float64
	// largest returns the largest loss, or +Inf.
	largest() float64
	// unsampled returns μ and ε of a mechanism that is no more private: N(0, 1) against
	// N(μ, 1), and randomised response.
	unsampled() (mu, epsilon float64)
	// variation returns δ(0), the total variation distance.
	variation() float64
	// single returns the least ε >= 0 with δ(ε) <= e^logDelta for one run, where there
	// is a closed form of it.
	single(logDelta float64) (epsilon float64, ok bool)
	// truncate returns the pair with its largest losses made infinite, which have a probability
	// of at most e^logTail, so that the moment generating function of what remains grows slowly; or the pair
	// and false where that is not needed.
	truncate(logTail float64) (p lossPair, ok bool)
	// infinite returns the probability of an infinite loss, which the quadrature and the grids leave out.
	infinite() float64
	// nodes returns a quadrature for tilts from 0 to tilt. Panels on which the
	// logarithm of e^{tilt·L} times the density exceeds floor span a range of losses
	// of at most panel. ok is false when that would take too many nodes; n holds those so far.
	nodes(tilt, floor, panel float64) (n *lossNodes, ok bool)
	// discretise rounds losses to a grid. For side = +1 the discrete pair dominates this one, and
	// for side = −1 it is dominated by it. Losses below bottom, which hardly matter, need not be precise.
	// ok is false when that takes too many points.
	discretise(step, bottom, side float64, w *Work) (g grid, ok bool)
}

// rarePair is a lossPair of which few losses may be large.
type rarePair interface {
	// beyondOf returns the losses that are infinite in small, a truncated pair, and not in this one.
	beyondOf(small lossPair) lossPair
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

// gaussianPair is N(0, 1) against N(mu, 1).
func gaussianPair(mu float64) mixturePair {
	return mixturePair{q: 1, z: 1 / mu, branches: []branch{{math.Inf(-1), 1, 1, 0}}}
}

// fixedSizePair dominates the Gaussian with noise multiplier z on fixed-size
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
func fixedSizePair(q, z float64) mixturePair {
	if q == 1 {
		return gaussianPair(1 / z)
	}
	return mixturePair{q: q, z: z, branches: []branch{{0.5, 1, q, 0}, {0.5, -1, 0, q}}}
}

// poissonPairs are the pairs of the Gaussian with noise multiplier z on Poisson
// samples: (1−q)Q + qP against Q when a record is removed, the reverse when one
// is added (Zhu, Dong and Wang, 2022, Theorem 11).
func poissonPairs(q, z float64) []lossPair {
	if q == 1 {
		return []lossPair{gaussianPair(1 / z)}
	}
	return []lossPair{
		mixturePair{q: q, z: z, branches: []branch{{math.Inf(-1), 1, q, 0}}},
		mixturePair{q: q, z: z, branches: []branch{{math.Inf(-1), -1, 0, q}}},
	}
}

// logMixture returns log(1 + q(e^t − 1)).
func (p mixturePair) logMixture(t float64) float64 {
	if p.q == 1 {
		return t
	}
	if t > 700 { // e^t is beyond floats soon; before, q·e^t may be small
		return t + math.Log(p.q) + math.Log1p((1-p.q)/p.q*math.Exp(-t))
	}
	return math.Log1p(p.q * math.Expm1(t))
}

// lossNodes is a quadrature of a pair: E[f(L)] ≈ Σ mass·f(loss) plus the mass at
// 0, for f that grow up to e^{tilt·L}.
type lossNodes struct {
	tilt          float64
	widest        float64 // largest range of losses on a panel that matters
	loss, logMass []float64
	mass, lower   []float64 // of the upper distribution and of the lower one
	second        []float64 // e^{−loss} − 1 + loss where the loss is small, else 0
	width         []float64 // range of losses that a node of a continuous density stands for
	beyond, drift float64   // of what was truncated: its mass, and by how much that exceeds its lower mass
	spans         []panelSpan
	ellipses      [][]ellipse // around each span, as far as they were needed
}

// reach is how many standard deviations of Q a quadrature goes beyond a peak.
const reach = 10

func (p mixturePair) nodes(tilt, floor, panel float64) (n *lossNodes, ok bool) {
	if p.z < leastNoise {
		return nil, false
	}
	n = &lossNodes{tilt: tilt}
	for _, b := range p.branches {
		if !p.panels(n, b, floor, panel) {
			return n, false
		}
	}
	n.beyond, n.drift = p.beyond()
	return n, true
}

// truncate uses that Φ(−g) is at most e^{−g²/2}/2, for both components of the mixture.
func (p mixturePair) truncate(logTail float64) (lossPair, bool) {
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

func (p mixturePair) beyondOf(small lossPair) lossPair {
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

// highestOf returns the largest value of a function with few peaks, whose flanks are wide, on an interval.
func highestOf(f func(x float64) float64, lo, hi float64) float64 {
	const scan = 32
	width := (hi - lo) / scan
	var values [scan + 1]float64
	for i := range values {
		values[i] = f(lo + width*float64(i))
	}
	top := math.Inf(-1)
	for i, v := range values {
		if i > 0 && values[i-1] > v || i < scan && values[i+1] > v {
			continue
		}
		a, b := lo+width*float64(max(0, i-1)), lo+width*float64(min(scan, i+1))
		for range 60 {
			first, second := a+(b-a)/3, b-(b-a)/3
			if f(first) < f(second) {
				a = first
			} else {
				b = second
			}
		}
		top = math.Max(top, math.Max(v, f(a)))
	}
	return top
}

// panelGrowth is by how much the logarithm of e^{tilt·L} times the density may change on a panel of 16 points: the
// error is then below 1e-15 of the highest value.
const panelGrowth = 16

// negligibleDensity is −log of a density, relative to the highest one, that does not matter.
const negligibleDensity = 60

// leastNoise is the noise below which quadratures, of about 1/z² panels, are not tried.
const leastNoise = 1e-4

// nodeWork is the number of operations that a node of a quadrature takes.
const nodeWork = 8

// usualNodes is the number of nodes for which there is room at the start.
const usualNodes = 1 << 9

// grow makes room for more nodes.
func (n *lossNodes) grow(count int) {
	n.loss, n.logMass = slices.Grow(n.loss, count), slices.Grow(n.logMass, count)
	n.mass, n.lower = slices.Grow(n.mass, count), slices.Grow(n.lower, count)
	n.second, n.width = slices.Grow(n.second, count), slices.Grow(n.width, count)
}

// size returns the number of nodes so far, 0 for nil.
func (n *lossNodes) size() int {
	if n == nil {
		return 0
	}
	return len(n.loss)
}

// Bounds of the length of a quadrature.
const (
	maxNodes    = 1 << 16
	maxAllNodes = 1 << 18 // of one without a floor, for losses that are rare
)

func (p mixturePair) normal() (rate float64, ok bool) {
	return 0.5 / (p.z * p.z), p.q == 1
}

// cliff is where E[e^{cL}], at least q^{c+1}·e^{c(c+1)/2z²}, becomes large.
func (p mixturePair) cliff() float64 {
	if p.q == 1 {
		return math.Inf(1)
	}
	return math.Max(1, 2*p.z*p.z*-math.Log(p.q))
}

func (p mixturePair) largest() float64 {
	switch {
	case p.end > 0:
		return p.logMixture((p.end - 0.5) / (p.z * p.z))
	case p.branches[0].sign < 0:
		return -math.Log1p(-p.q)
	default:
		return math.Inf(1)
	}
}

func (p mixturePair) unsampled() (mu, epsilon float64) { return 1 / p.z, 0 }

func (p mixturePair) variation() float64 { return p.q * math.Erf(1/(2*math.Sqrt2*p.z)) }

// single: δ(ε) of (1−q)Q + qP against Q is q times δ(log(1 + (e^ε − 1)/q)) of P against Q. In the
// opposite direction it is a·δ(ε + log(q/a)) with a = 1 − (1−q)·e^ε.
func (p mixturePair) single(logDelta float64) (epsilon float64, ok bool) {
	logQ := math.Log(p.q)
	if logDelta >= logQ {
		return 0, true
	}
	if p.branches[0].sign > 0 {
		whole := gaussianEpsilon(1/p.z, logDelta-logQ)
		return math.Max(0, p.logMixture(whole)), true
	}
	// With a = q·e^{−w}, δ falls in w. The upper end of the bracket is above the root.
	at := func(w float64) float64 { return math.Log1p(-p.q*math.Exp(-w)) - math.Log1p(-p.q) }
	hi := bisect(0, logQ-logDelta, func(w float64) bool {
		profile, _ := gaussianProfile(1/p.z, w+at(w))
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
	const depth = 80 // −log of what is negligible even beside E[e^{cL}] − 1
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
func (p mixturePair) panels(n *lossNodes, b branch, floor, panel float64) (ok bool) {
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

// panels appends a composite Gauss-Legendre rule on [lo, hi] for a density with the
// constant 1/(z√2π), on panels of at most the given width.
func (n *lossNodes) panels(
	lo, hi, floor, panel, z float64, logDensity func(x, tilt float64) (logDensity, loss float64), slope, width func(x float64) float64,
) (ok bool) {
	logNorm := math.Log(z) + logSqrt2Pi
	most := maxNodes
	if math.IsInf(floor, -1) {
		most = maxAllNodes
	}
	top := highestOf(func(x float64) float64 {
		v, _ := logDensity(x, n.tilt)
		return v
	}, lo, hi)
	density, loss := logDensity(lo, n.tilt)
	for lo < hi {
		if len(n.loss) > most {
			return false
		}
		width := width(lo)
		var end, endDensity, endLoss float64
		for {
			end = math.Min(hi, lo+width)
			endDensity, endLoss = logDensity(end, n.tilt)
			highest := math.Max(density, endDensity)
			if !(math.Abs(endLoss-loss) > panel && highest-logNorm >= floor) &&
				!(math.Abs(endDensity-density) > panelGrowth && highest >= top-negligibleDensity) {
				break
			}
			width *= 0.5
		}
		if !(end > lo) { // the spacing of floats
			return hi-lo <= 0x1p-50*math.Abs(hi)
		}
		if math.Max(density, endDensity)-logNorm >= floor {
			n.widest = math.Max(n.widest, math.Abs(endLoss-loss))
		}
		n.spans = append(n.spans, panelSpan{lo: lo, hi: end})
		mid, half := 0.5*(lo+end), 0.5*(end-lo)
		for i, g := range gauss16 {
			for _, x := range [2]float64{mid - half*g, mid + half*g} {
				v, l := logDensity(x, 0)
				logMass := v - logNorm + math.Log(half*weight16[i])
				n.add(l, logMass)
				n.width = append(n.width, half*weight16[i]*slope(x))
			}
		}
		lo, density, loss = end, endDensity, endLoss
	}
	return true
}

// cumulants returns K(c) = log E[e^{cL}] and its second derivative, c >= 0.
//
// With E[e^{−L} − 1] = 0, E[e^{cL}] − 1 is the sum of mass·(e^{cl} − 1 +
// c(e^{−l} − 1)), whose terms are not negative and of second order in l: small
// losses do not cancel. What was truncated is missing in both, and taken off.
func (n *lossNodes) cumulants(c float64) cumulants {
	var m, m1, m2 float64
	for i, l := range n.loss {
		p, a := n.mass[i], c*l
		e := math.Exp(n.logMass[i] + a)
		if math.Abs(l) < smallLoss && a < 500 {
			m += p * (expm1MinusArg(a) + c*n.second[i])
			m1 += p * (l*math.Expm1(a) + n.second[i])
		} else {
			m += e - p + c*(n.lower[i]-p)
			m1 += e*l + n.lower[i] - p
		}
		m2 += e * l * l
	}
	if math.IsInf(m, 1) || math.IsInf(m2, 1) {
		return n.largeCumulants(c)
	}
	m -= c*n.drift + n.beyond
	m1 -= n.drift
	k1 := m1 / (1 + m)
	return cumulants{math.Log1p(m), m2/(1+m) - k1*k1}
}

// cumulant returns K(c) alone.
func (n *lossNodes) cumulant(c float64) float64 {
	var m float64
	for i, l := range n.loss {
		p, a := n.mass[i], c*l
		if math.Abs(l) < smallLoss && a < 500 {
			m += p * (expm1MinusArg(a) + c*n.second[i])
		} else {
			m += math.Exp(n.logMass[i]+a) - p + c*(n.lower[i]-p)
		}
	}
	if math.IsInf(m, 1) {
		return n.largeCumulants(c).k
	}
	m -= c*n.drift + n.beyond
	return math.Log1p(m)
}

// largeCumulants is cumulants for E[e^{cL}] beyond the range of floats.
func (n *lossNodes) largeCumulants(c float64) cumulants {
	top := math.Inf(-1)
	for i, l := range n.loss {
		if v := n.logMass[i] + c*l; v > top {
			top = v
		}
	}
	var m, m1, m2 float64
	for i, l := range n.loss {
		e := math.Exp(n.logMass[i] + c*l - top)
		m += e
		m1 += e * l
		m2 += e * l * l
	}
	return cumulants{top + math.Log(m), m2/m - m1*m1/(m*m)}
}

// smallLoss is the loss below which cancellation matters.
const smallLoss = 0.1

// expm1MinusArg returns e^x − 1 − x.
func expm1MinusArg(x float64) float64 {
	if math.Abs(x) > 0.2 {
		return math.Expm1(x) - x
	}
	// x²/2·(1 + x/3·(1 + x/4·(... (1 + x/13)))); x¹²·2/14! is negligible.
	sum := 1 + x*(1.0/13)
	sum = 1 + x*(1.0/12)*sum
	sum = 1 + x*(1.0/11)*sum
	sum = 1 + x*(1.0/10)*sum
	sum = 1 + x*(1.0/9)*sum
	sum = 1 + x*(1.0/8)*sum
	sum = 1 + x*(1.0/7)*sum
	sum = 1 + x*(1.0/6)*sum
	sum = 1 + x*(1.0/5)*sum
	sum = 1 + x*(1.0/4)*sum
	sum = 1 + x*(1.0/3)*sum
	return 0.5 * x * x * sum
}
