package acquisition

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/dpareto/dpareto/internal/fastexp"
)

// Partial holds the derivatives of a criterion with respect to the Mean and the
// StdDev of a [Distribution]. For a known objective, StdDev = 0, Mean is the derivative
// with respect to the known latent value, which for a Gaussian is the cost
// itself, and StdDev is 0.
type Partial struct{ Mean, StdDev float64 }

// add adds weight·p.
func (d *Partial) add(weight float64, p Partial) {
	d.Mean += weight * p.Mean
	d.StdDev += weight * p.StdDev
}

// scale multiplies by c.
func (d *Partial) scale(c float64) {
	d.Mean *= c
	d.StdDev *= c
}

// LogShortfall returns ln E[(t - X)+] and its derivatives:
//
//	Gaussian          s H(z)                                   z = (t - m)/s
//	LogNormal         t φ(z) [M(z) - M(z-s)]                   z = (ln t - m)/s
//	NegatedLogNormal  -t φ(z) [M(z+s) - M(z)]                  z = (m - ln -t)/s
//	LogitNormal       φ(z) ∫ exp(zv - v²/2) (t - expit(ln(t/(1-t)) - sv)) dv
//
// with H(z) = φ(z) + zΦ(z), M = Φ/φ and v > 0. All but the last are closed
// forms, the two in the middle known from Black and Scholes for a put and a
// call; the time of the last grows with a StdDev above 0.5.
//
// No term underflows, so that the logarithm stays finite and accurate in the far
// tails: given z, to 1e-11, and 1e-8 for LogitNormal, relative to the larger of 1
// and its size. It is -Inf, with derivatives 0, where X < t is impossible: at and
// below a known value or the end of the support, or so far below that the
// logarithm itself overflows.
func (l Distribution) LogShortfall(t float64) (value float64, d Partial) {
	if l.StdDev == 0 {
		return l.logGap(t)
	}
	z := l.standardize(t)
	if z < -1e150 {
		return math.Inf(-1), Partial{}
	}
	switch l.Family {
	case LogNormal:
		if math.IsInf(z, 1) {
			return l.logGap(t)
		}
		value, lower, unit := millsRise(z-l.StdDev, z, l.StdDev)
		return math.Log(t) + value, Partial{Mean: -lower, StdDev: unit - l.StdDev*lower}
	case NegatedLogNormal:
		if math.IsInf(z, 1) { // t >= 0, or as good as that
			mean := l.Mean + l.StdDev*l.StdDev/2 // ln E[-X]
			share := t * math.Exp(-mean)
			w := 1 / (1 + share)
			return mean + math.Log1p(share), Partial{Mean: w, StdDev: w * l.StdDev}
		}
		value, lower, unit := millsRise(z, z+l.StdDev, l.StdDev)
		value += l.StdDev * (z + l.StdDev/2) // from φ(z+s) to φ(z)
		upper := 1 + lower
		return math.Log(-t) + value, Partial{Mean: upper, StdDev: unit + l.StdDev*upper}
	case LogitNormal:
		return l.logitShortfall(t, z)
	default:
		if math.IsInf(z, 1) {
			return l.logGap(t)
		}
		value, distribution, density := logH(z)
		return math.Log(l.StdDev) + value, Partial{Mean: -distribution / l.StdDev, StdDev: density / l.StdDev}
	}
}

// logGap is LogShortfall of a known value, or of one that is as good as known at t.
func (l Distribution) logGap(t float64) (float64, Partial) {
	x := l.Median()
	gap := t - x
	if !(gap > 0) {
		return math.Inf(-1), Partial{}
	}
	return math.Log(gap), Partial{Mean: -l.slope(x) / gap}
}

// slope returns dX/dZ where X = x.
func (l Distribution) slope(x float64) float64 {
	switch l.Family {
	case LogNormal, NegatedLogNormal:
		return x
	case LogitNormal:
		return x * (1 - x)
	default:
		return 1
	}
}

// millsRise returns ln φ(b)[M(b) - M(a)], M = Φ/φ, for b = a + s with s > 0, and
// M(a) and 1 relative to the rise M(b) - M(a).
func millsRise(a, b, s float64) (value, lower, unit float64) {
	if b > 5 {
		// M(b) overflows sooner or later: gap = ln M(b)/M(a).
		cdf := logPhi(b)
		gap := s*(a+b)/2 + cdf - logPhi(a)
		fall := log1mexp(gap)
		return cdf + fall, 1 / math.Expm1(gap), math.Exp(-b*b/2 - logSqrt2Pi - cdf - fall)
	}
	ma := mills(a)
	var rise float64
	if s*math.Max(1, math.Max(math.Abs(a), math.Abs(b))) < 0.5 {
		// The difference would cancel: integrate the derivative of M.
		for _, n := range shortRule {
			u := a + s*n.x
			rise += s * n.w * densityExcess(u, mills(u))
		}
	} else {
		rise = mills(b) - ma
	}
	return math.Log(rise) - b*b/2 - logSqrt2Pi, ma / rise, 1 / rise
}

// node is one of a Gauss-Legendre rule on [0, 1].
type node struct{ x, w float64 }

// The rules of what is short compared with its scale, and of a panel.
var (
	shortRule = gaussLegendre(5)
	panelRule = gaussLegendre(14)
)

func gaussLegendre(n int) []node {
	x, w := make([]float64, n), make([]float64, n)
	quad.Legendre{}.FixedLocations(x, w, 0, 1)
	rule := make([]node, n)
	for i := range rule {
		rule[i] = node{x[i], w[i]}
	}
	return rule
}

// Of the Gaussian weight in the integral of a LogitNormal, less than
// exp(-negligible) of the largest value is left out.
const negligible = 26

// maxSteepness bounds the number of panels, which grows with the StdDev. Distributions
// beyond it, whose outcomes are nearly all 0 or 1, lose accuracy.
const maxSteepness = 1000

var farQuantile = math.Sqrt(2 * negligible)

// logitShortfall is LogShortfall of a LogitNormal, z being the quantile of t. It
// integrates from z, or from where the Gaussian ends, downwards in v. With
// r = exp(-sv) and p = expit(m + s·top) at the upper limit,
//
//	X = pr/(1-p+pr),  t - X = t - p + p(1-p)(1-r)/(1-p+pr),  dX/dZ = p(1-p)r/(1-p+pr)²
//
// are free of cancellation. The length of a panel is limited by the weight,
// which is a Gaussian or an exponential, and by the poles of X at distance π/s.
func (l Distribution) logitShortfall(t, z float64) (float64, Partial) {
	if math.IsInf(z, -1) {
		return math.Inf(-1), Partial{}
	}
	top := math.Min(z, farQuantile)
	length := top + farQuantile
	if top < 0 {
		length = 2 * negligible / (math.Sqrt(top*top+2*negligible) - top)
	}
	eta := l.Mean + l.StdDev*top
	p, q := expit(eta), expit(-eta)
	excess := 0.0 // t - p
	if top < z {
		excess = t - p
		if t > 0.5 {
			excess = t - 1 + q
		}
	}
	panels := math.Ceil(length * math.Hypot(1.0/8, math.Min(l.StdDev, maxSteepness)/6))
	width := length / panels
	var mass, falls, slopes, moments float64
	for k := range int(panels) {
		for _, n := range panelRule {
			v := width * (float64(k) + n.x)
			power, rest := fastexp.Split(v * (top - v/2))
			w := n.w * (power + rest)
			fall := -l.StdDev * v
			if fall < fastexp.Least {
				fall = fastexp.Least
			}
			power, rest = fastexp.Split(fall)
			r := power + rest
			inverse := 1 / (q + p*r)
			mass += w
			w *= inverse
			falls += w * (1 - power - rest)
			w *= inverse * r
			slopes += w
			moments += w * v
		}
	}
	pq := p * q
	sum := excess*mass + pq*falls
	return math.Log(sum*width) - top*top/2 - logSqrt2Pi, Partial{
		Mean:   -pq * slopes / sum,
		StdDev: -pq * (top*slopes - moments) / sum,
	}
}
