package pld

import (
	"math"

	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/meter"
)

// replacePair dominates the Gaussian with noise multiplier s, relative to the
// clipping norm, on Poisson samples when one record is replaced:
//
//	P = (1−q)·N(0, s²) + q·N(1, s²),  Q = (1−q)·N(0, s²) + q·N(−1, s²).
//
// Its two directions are mirror images. It is attained if the vectors of the two records are
// opposite and all others vanish.
//
// Proof. By joint convexity the sample of the other records may be taken as known,
// so that the outputs are P = (1−q)N(0) + qN(v) and Q = (1−q)N(0) + qN(v') with
// |v|, |v'| <= 1. Let α >= 1 and c = (α−1)(1−q)/q >= 0. Then
//
//	∫(P − αQ)₊ = q·E[(1 − α·e^A − c·e^B)₊]
//
// under N(v), with A = log dN(v')/dN(v) and B = log dN(0)/dN(v). They are jointly
// normal; their means are minus half of their variances |v'−v|²/s² and |v|²/s², and
// their covariance is ⟨v'−v, −v⟩/s². The expectation of a convex function of
// α·e^A + c·e^B does not decrease in any of the three (Kahane, "Une inégalité du type
// de Slepian et Gordon sur les processus gaussiens", 1986), and all three are largest
// at v' = −v, |v| = 1. For α < 1, ∫(P − αQ)₊ = 1 − α + α·∫(Q − P/α)₊.
//
// The pair is also used by Google's dp_accounting library and by Lebeda, Regehr,
// Kamath and Steinke, "Avoiding pitfalls for privacy accounting of subsampled
// mechanisms under composition", 2024, and it follows from Schuchardt, Stoian,
// Kosmala and Günnemann, "Unified mechanism-specific amplification by subsampling and
// group privacy amplification", 2024.
//
// With m(x) = log(1 − q + q·e^{t(x)}), t(x) = (2x−1)/2s², the density of P is e^{m(x)} times
// the density of N(0, s²), and the loss is m(x) − m(−x), odd and rising.
type replacePair struct {
	q, s    float64 // 0 < q < 1, s > 0
	mixture mixturePair
	start   float64 // losses at x < start are left out, unless it is 0
	end     float64 // losses at x > end > 0 are infinite; 0 if there are none
}

// ReplaceOne returns the pair for 0 < q <= 1.
func ReplaceOne(q, s float64) Pair {
	if q == 1 {
		return Gaussian(2 / s)
	}
	return replacePair{q: q, s: s, mixture: mixturePair{q: q, z: s}}
}

func (p replacePair) Normal() (rate float64, ok bool) { return 0, false }

// cliff is where E[e^{cL}], at least q^{c+1}·e^{c(c+1)/2s²}, becomes large.
func (p replacePair) cliff() float64 { return p.mixture.cliff() }

func (p replacePair) Largest() float64 {
	if p.end > 0 {
		return p.loss(p.end)
	}
	return math.Inf(1)
}

// truncate works as for mixturePair.
func (p replacePair) truncate(logTail float64) (Pair, bool) {
	if !(logTail < 0) {
		return p, false
	}
	p.end = p.s * math.Sqrt(-2*logTail)
	if rest := logTail - math.Log(p.q); rest < 0 {
		p.end = math.Max(p.end, 1+p.s*math.Sqrt(-2*rest))
	}
	return p, true
}

func (p replacePair) BeyondOf(small Pair) Pair {
	p.start = small.(replacePair).end
	return p
}

func (p replacePair) infinite() float64 {
	if p.end == 0 {
		return 0
	}
	upper, _ := p.mass(p.loss(p.end), math.Inf(1))
	return upper
}

func (p replacePair) Unsampled() (mu, epsilon float64) { return 2 / p.s, 0 }

func (p replacePair) Variation() float64 { return p.q * math.Erf(1/(math.Sqrt2*p.s)) }

// loss returns the loss at x.
func (p replacePair) loss(x float64) float64 {
	if x < 0 {
		return -p.loss(-x)
	}
	t, mirrored := (x-0.5)/(p.s*p.s), (-x-0.5)/(p.s*p.s)
	if t > 30 {
		return p.mixture.logMixture(t) - p.mixture.logMixture(mirrored)
	}
	excess := -math.Exp(t) * math.Expm1(-2*x/(p.s*p.s)) // e^t − e^mirrored
	return math.Log1p(p.q * excess / (1 - p.q + p.q*math.Exp(mirrored)))
}

// position returns the x at which the loss is l: in units of s²,
//
//	l/2 + arsinh(e^{1/2s²}·(1−q)/q·sinh(l/2)).
func (p replacePair) position(l float64) float64 {
	if l < 0 {
		return -p.position(-l)
	}
	if l == 0 || math.IsInf(l, 1) {
		return l
	}
	logArgument := 0.5/(p.s*p.s) + math.Log((1-p.q)/p.q) + 0.5*l + math.Log(-0.5*math.Expm1(-l))
	arsinh := logArgument + math.Ln2
	if logArgument < 30 {
		arsinh = math.Asinh(math.Exp(logArgument))
	}
	return p.s * p.s * (0.5*l + arsinh)
}

// logDensity returns the logarithm of the density of P at x times e^{tilt·loss},
// without the constant, and the loss.
func (p replacePair) logDensity(x, tilt float64) (logDensity, loss float64) {
	loss = p.loss(x)
	return -0.5*(x/p.s)*(x/p.s) + p.mixture.logMixture((x-0.5)/(p.s*p.s)) + tilt*loss, loss
}

// Single solves δ(ε) = P[L > ε] − e^ε·Q[L > ε], which falls. It fails where δ or e^ε is not in the range of floats.
func (p replacePair) Single(logDelta float64) (epsilon float64, ok bool) {
	if logDelta < -700 {
		return 0, false
	}
	delta := math.Exp(logDelta)
	if p.Variation() <= delta {
		return 0, true
	}
	most := gaussian.Epsilon(2/p.s, logDelta)
	if most > 700 {
		return 0, false // e^ε is not in the range of floats
	}
	return bisect(0, most, func(epsilon float64) bool {
		x := p.position(epsilon)
		// (1−q)(1 − e^ε)·P[N > x] + q·(P[N > x − 1] − e^ε·P[N > x + 1]), N normal
		above := func(x float64) float64 { return 0.5 * math.Erfc(x/p.s/math.Sqrt2) }
		return p.q*(above(x-1)-math.Exp(epsilon)*above(x+1))-(1-p.q)*math.Expm1(epsilon)*above(x) > delta
	}), true
}

func (p replacePair) Nodes(tilt, floor, panel float64) (n *Nodes, ok bool) {
	if p.s < leastNoise {
		return nil, false
	}
	n = &Nodes{tilt: tilt}
	n.grow(usualNodes)
	// The integrands also vary at the scale of the mirrored zero.
	width := func(x float64) float64 { return math.Min(p.mixture.width(x), p.mixture.width(-x)) }
	slope := func(x float64) float64 { return p.mixture.slope(x) + p.mixture.slope(-x) }
	hi := p.last(tilt)
	if p.end > 0 {
		hi = math.Min(hi, p.end)
		upper, lower := p.mass(p.loss(p.end), math.Inf(1))
		n.beyond, n.Drift = upper, upper-lower
	}
	lo := -1 - reach*p.s
	if p.start > 0 {
		lo = p.start
	}
	ok = n.panels(lo, hi, floor, panel, p.s, p.logDensity, slope, width)
	return n, ok
}

// last returns a point beyond which the integrands do not matter.
func (p replacePair) last(tilt float64) float64 {
	// The derivative of logDensity is (slope(x) − x)/s², slope(x) <= 1 + 2·tilt.
	share := func(x float64) float64 { return 1 / (1 + (1-p.q)/p.q*math.Exp((0.5-x)/(p.s*p.s))) }
	top := math.Inf(-1)
	for _, x := range [2]float64{0.5, 1 + 2*tilt} { // near peaks, if these are stable
		for range 20 {
			x = (1+tilt)*share(x) + tilt*share(-x)
		}
		v, _ := p.logDensity(x, tilt)
		top = math.Max(top, v)
	}
	const depth = 80 // −log of the share that is negligible even next to E[e^{cL}] − 1
	// last returns the upper end of the last small interval in [a, b] that may matter,
	// or 0: m rises, so that the integrand is at most the one below.
	var last func(a, b float64) float64
	last = func(a, b float64) float64 {
		v, _ := p.logDensity(b, tilt)
		if v+0.5*(b/p.s)*(b/p.s)-0.5*(a/p.s)*(a/p.s) < top-depth {
			return 0
		}
		mid := 0.5 * (a + b)
		if b-a <= p.s || !(mid > a && mid < b) {
			return b
		}
		if x := last(mid, b); x > 0 {
			return x
		}
		return last(a, mid)
	}
	return math.Max(1+reach*p.s, last(0, 1+2*tilt+2*reach*p.s))
}

func (p replacePair) Discretise(step, bottom, side float64, w *meter.Work) (g Grid, ok bool) {
	return discretise(p, step, bottom, side, w)
}

// Center returns the loss at 0.
func (p replacePair) Center() float64 { return 0 }

func (p replacePair) extent() (lowest, highest float64) {
	furthest := p.end
	if furthest == 0 {
		furthest = 1 + largestDeviation*p.s
	}
	return -p.loss(furthest), p.loss(furthest)
}

// mass returns the mass of both distributions with loss in (from, to].
func (p replacePair) mass(from, to float64) (upper, lower float64) {
	lo, hi := p.position(from), p.position(to)
	width := (hi - lo) / p.s
	rest := (1 - p.q) * gaussian.Interval(lo/p.s, hi/p.s, width)
	upper = rest + p.q*gaussian.Interval((lo-1)/p.s, (hi-1)/p.s, width)
	return upper, rest + p.q*gaussian.Interval((lo+1)/p.s, (hi+1)/p.s, width)
}
