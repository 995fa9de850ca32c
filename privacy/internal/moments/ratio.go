package moments

import (
	"math"

	"github.com/dpareto/dpareto/privacy/internal/logexp"
	"github.com/dpareto/dpareto/privacy/meter"
)

// ratioMoments computes the moments B(l) = E_Q[(P/Q − 1)^l] of even order l for
// Q = N(0, z²) and P = N(1, z²). In units of z the ratio is
//
//	P/Q = e^t,  t = s/z − 1/(2z²),  s ~ N(0, 1)
//
// The textbook form of B(l), the alternating sum Σ_i (−1)^i C(l,i) e^{i(i−1)/2z²}, cancels
// catastrophically: at z = 16 no digit is left for l = 16. Here the positive integrand
// φ(s)·(e^t − 1)^l is summed by the trapezoidal rule, which converges geometrically for it.
// Its error relative to B(l) is the Fourier transform of the integrand at ω = 2π/h, about
// (ω²/l)^{l/2}·e^{(l−ω²)/2} <= 2⁻⁵⁶ for the step h that trapezoidStep returns.
type ratioMoments struct {
	z      float64
	grids  []logRatioGrid
	logB   []float64 // logB[k] is log B(2k+2), NaN where unknown
	values []float64 // scratch of one sum
	work   *meter.Work
}

// logRatioGrid holds log|e^t − 1| at s = k·step. Entries are computed on demand.
type logRatioGrid struct {
	step         float64
	nonnegative  []float64 // k = 0, 1, 2, ...
	negative     []float64 // k = −1, −2, ...
	invZ, halfZ2 float64   // 1/z, 1/(2z²)
}

// negligible is the log-ratio below which a term does not change a float64 sum,
// with room for as many terms as a sum has.
const negligible = -44

func newRatioMoments(z float64) *ratioMoments { return &ratioMoments{z: z} }

// trapezoidStep returns the step for moments of order <= l.
func trapezoidStep(l float64) float64 {
	const bits = 85
	return 2 * math.Pi / math.Sqrt(l+bits+1.5*math.Sqrt(bits*l))
}

// logMoment returns log B(l) for even l >= 2.
func (m *ratioMoments) logMoment(l int) float64 {
	k := l/2 - 1
	for len(m.logB) <= k {
		m.logB = append(m.logB, math.NaN())
	}
	if math.IsNaN(m.logB[k]) {
		m.logB[k] = m.compute(l)
	}
	return m.logB[k]
}

func (m *ratioMoments) compute(l int) float64 {
	if l == 2 {
		return math.Log(math.Expm1(1 / (m.z * m.z))) // the variance of P/Q
	}
	// One grid serves all orders up to 32, 128, 512, ...
	level, top := 0, 32
	for top < l {
		level, top = level+1, 4*top
	}
	for len(m.grids) <= level {
		step := trapezoidStep(float64(int(32) << (2 * len(m.grids))))
		m.grids = append(m.grids, logRatioGrid{step: step, invZ: 1 / m.z, halfZ2: 1 / (2 * m.z * m.z)})
	}
	g := &m.grids[level]

	// The integrand has one hump on each side of t = 0 and is log-concave there.
	// The right one, the higher, has its peak near the larger of √l (z large) and
	// l/z (z small), the left one near −√l.
	zero := 0.5 / m.z
	x := math.Max(math.Sqrt(float64(l)), float64(l)/m.z) + zero
	first := int(math.Ceil(zero / g.step))
	m.values = g.hump(m.values[:0], float64(l), int(x/g.step), first, math.MaxInt, math.Inf(-1))
	best := logexp.MaxOf(m.values)
	m.values = g.hump(m.values, float64(l), -int(math.Sqrt(float64(l))/g.step), math.MinInt, first-1, best)
	m.work.Add(4 * len(m.values))
	return logexp.LogSumExp(m.values) + math.Log(g.step) - 0.5*math.Log(2*math.Pi)
}

// hump appends log(√2π·integrand) at the nodes lo <= k <= hi that matter, given
// that the integrand is unimodal there and that the largest value elsewhere is
// best. Start is a guess of the peak.
func (g *logRatioGrid) hump(dst []float64, l float64, start, lo, hi int, best float64) []float64 {
	start = min(max(start, lo), hi)
	previous := math.Inf(-1)
	for k := start; k <= hi; k++ {
		v := g.logIntegrand(k, l)
		dst = append(dst, v)
		if v > best {
			best = v
		}
		if v <= previous && v < best+negligible {
			break
		}
		previous = v
	}
	previous = math.Inf(-1)
	for k := start - 1; k >= lo; k-- {
		v := g.logIntegrand(k, l)
		dst = append(dst, v)
		if v > best {
			best = v
		}
		if v <= previous && v < best+negligible {
			break
		}
		previous = v
	}
	return dst
}

func (g *logRatioGrid) logIntegrand(k int, l float64) float64 {
	s := float64(k) * g.step
	return l*g.logAbsRatio(k) - 0.5*s*s
}

func (g *logRatioGrid) logAbsRatio(k int) float64 {
	side, i := &g.nonnegative, k
	if k < 0 {
		side, i = &g.negative, -k-1
	}
	for len(*side) <= i {
		j := float64(len(*side))
		if k < 0 {
			j = -j - 1
		}
		*side = append(*side, logexp.LogAbsExpm1(j*g.step*g.invZ-g.halfZ2))
	}
	return (*side)[i]
}
