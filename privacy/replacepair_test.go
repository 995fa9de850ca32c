package privacy

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/privacy/internal/composition"
	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/internal/logexp"
	"github.com/dpareto/dpareto/privacy/internal/pld"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// replaceLoss is the logarithm of their quotient.
func replaceLoss(q, s, x float64) float64 {
	logP := logexp.LogAddExp(math.Log1p(-q), math.Log(q)+(2*x-1)/(2*s*s))
	logQ := logexp.LogAddExp(math.Log1p(-q), math.Log(q)-(2*x+1)/(2*s*s))
	return logP - logQ
}

// replaceDensity is the density of the upper distribution.
func replaceDensity(q, s, x float64) float64 {
	normal := func(d float64) float64 { return math.Exp(-d * d / (2 * s * s)) }
	return ((1-q)*normal(x) + q*normal(x-1)) / (s * math.Sqrt(2*math.Pi))
}

// replaceDelta is δ(ε) of the given number of steps, for few steps: the expectation of
// δ(ε − L) of one step less over the loss L, a smooth function of x.
func replaceDelta(q, s, epsilon float64, steps int) float64 {
	if steps > 1 {
		h, sum := s/8, 0.0
		if steps == 2 && q < 0.1 { // δ(ε) of one step nearly has a kink at 0
			h = s / 256
		}
		for x := -9 * s; x <= 1+9*s; x += h { // trapezoidal rule
			sum += h * replaceDensity(q, s, x) * replaceDelta(q, s, epsilon-replaceLoss(q, s, x), steps-1)
		}
		return sum
	}
	lo, hi := -1.0, 1.0 // of the x with loss ε
	for replaceLoss(q, s, lo) > epsilon {
		lo *= 2
	}
	for replaceLoss(q, s, hi) < epsilon {
		hi *= 2
	}
	for range 100 {
		if mid := 0.5 * (lo + hi); replaceLoss(q, s, mid) < epsilon {
			lo = mid
		} else {
			hi = mid
		}
	}
	above := func(mean float64) float64 { return 0.5 * math.Erfc((lo-mean)/(s*math.Sqrt2)) }
	return (1-q)*(above(0)-math.Exp(epsilon)*above(0)) + q*(above(1)-math.Exp(epsilon)*above(-1))
}

// TestReplaceSingleStep integrates the hockey stick itself, by Simpson's rule from
// where it begins.
func TestReplaceSingleStep(t *testing.T) {
	for _, tc := range []struct{ q, s, epsilon float64 }{{0.1, 1, 0.3}, {0.01, 0.6, 0.1}, {0.7, 2, 1.1}, {0.99, 0.8, 2}} {
		x, hi := 0.0, 100.0 // where the loss is ε
		for mid := 50.0; mid > x && mid < hi; mid = 0.5 * (x + hi) {
			if replaceLoss(tc.q, tc.s, mid) < tc.epsilon {
				x = mid
			} else {
				hi = mid
			}
		}
		const n = 20_000
		h, sum := (2+12*tc.s)/n, 0.0
		for i := range n + 1 {
			weight := []float64{2, 4}[i%2]
			if i == 0 || i == n {
				weight = 1
			}
			at := x + float64(i)*h
			sum += weight * h / 3 * replaceDensity(tc.q, tc.s, at) * -math.Expm1(tc.epsilon-replaceLoss(tc.q, tc.s, at))
		}
		if got := replaceDelta(tc.q, tc.s, tc.epsilon, 1); privacytest.RelErr(got, sum) > 1e-12 {
			t.Errorf("%+v: delta %.15g, by quadrature %.15g", tc, got, sum)
		}
	}
	for _, m := range []PoissonGaussian{
		{0.1, 1, ReplaceOne, false}, {0.9, 0.5, ReplaceOne, false}, {1e-4, 2, ReplaceOne, false}, {0.02, 0.3, ReplaceOne, false}, {0.999, 3, ReplaceOne, false}, {0.5, 40, ReplaceOne, false},
	} {
		q, s := m.SamplingProbability, m.NoiseMultiplier
		for _, delta := range []float64{1e-3, 1e-6, 1e-9} {
			for _, a := range []Accountant{Exact{}, PLD{}} {
				g := epsilonOf(t, a, m, 1, delta)
				if replaceDelta(q, s, 0, 1) < delta {
					if g.Epsilon > 1e-3 || g.EpsilonLower > 0 {
						t.Errorf("%s %+v, delta %g: %+v, want 0", a.Name(), m, delta, g)
					}
					continue
				}
				at := replaceDelta(q, s, g.Epsilon, 1)
				below := replaceDelta(q, s, math.Max(0, g.Epsilon*(1-5e-3)-1e-5), 1)
				lower := replaceDelta(q, s, g.EpsilonLower, 1)
				if at > delta*(1+1e-7) || below < delta || lower < delta*(1-1e-7) {
					t.Errorf("%s %+v: epsilon %g has delta %g, a little below %g, the lower one %g, want %g",
						a.Name(), m, g.Epsilon, at, below, lower, delta)
				}
			}
		}
	}
}

// TestReplaceFewSteps compares with nested quadratures.
func TestReplaceFewSteps(t *testing.T) {
	for _, tc := range []struct {
		q, s, epsilon float64
		steps         int
	}{{0.3, 1, 1.5, 2}, {0.05, 0.8, 0.5, 2}, {0.8, 2, 2, 2}, {0.2, 1.5, 0.5, 3}} {
		delta := replaceDelta(tc.q, tc.s, tc.epsilon, tc.steps)
		m := PoissonGaussian{tc.q, tc.s, ReplaceOne, false}
		exact := epsilonOf(t, Exact{}, m, int64(tc.steps), delta)
		grid := epsilonOf(t, PLD{}, m, int64(tc.steps), delta)
		if e := exact.Epsilon/tc.epsilon - 1; e < -1e-10 || e > 1e-4 {
			t.Errorf("%+v: exact %.12g", tc, exact.Epsilon)
		}
		if e := grid.Epsilon/tc.epsilon - 1; e < -1e-10 || e > 1e-4 {
			t.Errorf("%+v: PLD %.12g", tc, grid.Epsilon)
		}
		if exact.EpsilonLower > tc.epsilon*(1+1e-10) || exact.EpsilonLower < tc.epsilon*(1-2e-3) {
			t.Errorf("%+v: lower bound %.12g", tc, exact.EpsilonLower)
		}
	}
}

// TestReplaceManySteps inverts the characteristic function on a plain grid:
//
//	δ(ε) = 1/2πi ∫ E[e^{tL}]^steps·e^{−tε}/(t(t+1)) dt,  t = c + iy.
func TestReplaceManySteps(t *testing.T) {
	for _, tc := range []struct {
		q, s, delta float64
		steps       int64
	}{{0.0032, 2, 1e-6, 3120}, {0.05, 3, 1e-5, 1000}, {0.9, 20, 1e-6, 100}} {
		g := epsilonOf(t, Exact{}, PoissonGaussian{tc.q, tc.s, ReplaceOne, false}, tc.steps, tc.delta)
		integrand := func(at complex128) float64 {
			var excess complex128 // E[e^{tL}] − 1
			h := tc.s / 10
			for x := -1 - 12*tc.s; x <= 40+12*tc.s; x += h {
				loss := replaceLoss(tc.q, tc.s, x)
				excess += complex(h*replaceDensity(tc.q, tc.s, x), 0) * (cmplx.Exp(at*complex(loss, 0)) - 1)
			}
			return real(cmplx.Exp(complex(float64(tc.steps), 0)*cmplx.Log(1+excess)-at*complex(g.Epsilon, 0)) / (at * (at + 1)))
		}
		c := 0.5 // close to the saddle
		for integrand(complex(1.3*c, 0)) < integrand(complex(c, 0)) {
			c *= 1.3
		}
		step := c / 40
		sum := 0.5 * step / math.Pi * integrand(complex(c, 0))
		for i := 1; i < 500; i++ {
			sum += step / math.Pi * integrand(complex(c, float64(i)*step))
		}
		if privacytest.RelErr(sum, tc.delta) > 3e-7 {
			t.Errorf("%+v: epsilon %.12g has delta %.12g", tc, g.Epsilon, sum)
		}
		if g.EpsilonLower > g.Epsilon || g.EpsilonLower < g.Epsilon*(1-1e-7) {
			t.Errorf("%+v: lower bound %.12g of %.12g", tc, g.EpsilonLower, g.Epsilon)
		}
	}
	// The value of dp_accounting 0.6 (PLDAccountant, REPLACE_ONE) for this case is 0.743.
	if g := epsilonOf(t, PLD{}, PoissonGaussian{0.0032, 2, ReplaceOne, false}, 3120, 1e-6); math.Abs(g.Epsilon-0.743) > 5e-4 {
		t.Errorf("PLD %g", g.Epsilon)
	}
}

// TestReplaceRenyi compares the divergence with a trapezoidal sum of its logarithms,
// and for small q with the divergence's limit α/2·E_Q[(P/Q − 1)²] = 2αq²·sinh(1/s²).
func TestReplaceRenyi(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for i := range 200 {
		q, s := math.Exp(-6*rng.Float64()), math.Exp(4*rng.Float64()-1.5)
		if i%3 == 0 {
			q = 1 - q*q
		}
		order := 1 + math.Exp(6*rng.Float64()-3)
		h := math.Min(s/20, s*s/50)
		var values []float64
		for x := -1 - 12*s; x <= 2*order+13*s; x += h {
			loss := replaceLoss(q, s, x)
			logP := logexp.LogAddExp(math.Log1p(-q), math.Log(q)+(2*x-1)/(2*s*s)) - 0.5*x*x/(s*s)
			values = append(values, logP+(order-1)*loss+math.Log(h/s)-gaussian.LogSqrt2Pi)
		}
		want := logexp.LogSumExp(values) / (order - 1)
		got := PoissonGaussian{q, s, ReplaceOne, false}.RenyiCurve().RDP(order)
		if math.Abs(got-want) > 1e-12*math.Max(1, order*want)/math.Min(1, order-1) {
			t.Errorf("q = %g, s = %g, order %g: rdp %.17g, want %.17g", q, s, order, got, want)
		}
		const small = 1e-9
		got, want = PoissonGaussian{small, s, ReplaceOne, false}.RenyiCurve().RDP(1+1/order), 2*(1+1/order)*small*small*math.Sinh(1/(s*s))
		if s > 1 && privacytest.RelErr(got, want) > 1e-6 {
			t.Errorf("q = %g, s = %g, order %g: rdp %.17g, want %.17g", small, s, 1+1/order, got, want)
		}
	}
}

// TestReplaceAgainstOthers: of random configurations all accountants agree, and
// replacing a record costs at least as much as removing one, at most as much as
// removing one and adding another, and at most as much as with fixed-size samples.
func TestReplaceAgainstOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 26))
	for i := range 40 {
		m := PoissonGaussian{math.Exp(-8 * rng.Float64()), math.Exp(4*rng.Float64() - 0.5), ReplaceOne, false}
		if i%5 == 0 {
			m.SamplingProbability = 1 - 0.1*m.SamplingProbability
		}
		steps, delta := 1+int64(math.Exp(9*rng.Float64())), math.Exp(-3-20*rng.Float64())
		exact, grid, rdp := epsilonOf(t, Exact{}, m, steps, delta), epsilonOf(t, PLD{}, m, steps, delta), epsilonOf(t, RDP{}, m, steps, delta)
		if len(exact.Warnings) > 0 || exact.Adjacency != ReplaceOne {
			t.Errorf("%+v, %d steps, delta %g: %+v", m, steps, delta, exact)
		}
		if exact.EpsilonLower > exact.Epsilon || exact.EpsilonLower < exact.Epsilon*(1-5e-2)-1e-5 || exact.Epsilon > rdp.Epsilon*(1+1e-9) {
			t.Errorf("%+v, %d steps, delta %g: lower %g, exact %g, Rényi %g",
				m, steps, delta, exact.EpsilonLower, exact.Epsilon, rdp.Epsilon)
		}
		if exact.Epsilon > grid.Epsilon*(1+1e-8)+1e-12 || grid.Epsilon > exact.Epsilon*(1+1e-3)+1e-5 {
			t.Errorf("%+v, %d steps, delta %g: exact %g, PLD %g", m, steps, delta, exact.Epsilon, grid.Epsilon)
		}

		const slack = 1e-4 // of the fallback's precision
		notAbove := func(a float64, what string, b float64) {
			if a > b*(1+slack)+1e-5 {
				t.Errorf("%+v, %d steps, delta %g: %g > %g %s", m, steps, delta, a, b, what)
			}
		}
		other := m
		other.Neighbours = AddRemove
		add := epsilonOf(t, Exact{}, other, steps, delta).Epsilon
		notAbove(add, "for add/remove", exact.Epsilon)
		if total := (1 + math.Exp(add)) * delta; total < 0.5 {
			notAbove(epsilonOf(t, Exact{}, m, steps, total).Epsilon, "for both in turn", 2*add)
		}
		fixed := pld.FixedSize(m.SamplingProbability, m.NoiseMultiplier/2)
		losses := composition.New(composition.Exact)
		losses.Add(pld.Attained(fixed), 1)
		old, _ := losses.Above(float64(steps), math.Log(delta))
		notAbove(exact.Epsilon, "of fixed-size samples", old)
	}
}

// TestReplaceEveryRecord: without sampling the two means are 2 apart.
func TestReplaceEveryRecord(t *testing.T) {
	want := gaussian.Epsilon(2*math.Sqrt(30)/3, math.Log(1e-6))
	for q, tol := range map[float64]float64{1: 1e-13, 1 - 1e-9: 1e-6} {
		g := epsilonOf(t, Exact{}, PoissonGaussian{q, 3, ReplaceOne, false}, 30, 1e-6)
		if privacytest.RelErr(g.Epsilon, want) > tol || privacytest.RelErr(g.EpsilonLower, want) > tol {
			t.Errorf("q = %v: %.15g and %.15g, want %.15g", q, g.Epsilon, g.EpsilonLower, want)
		}
		if got := (PoissonGaussian{q, 3, ReplaceOne, false}).RenyiCurve().RDP(2.5); privacytest.RelErr(got, 2.5*2/9) > tol {
			t.Errorf("q = %v: rdp %.15g, want %.15g", q, got, 2.5*2/9)
		}
	}
}

func TestReplaceExtremes(t *testing.T) {
	for _, m := range []PoissonGaussian{
		{1e-9, 1e-200, ReplaceOne, false}, {1e-9, 1e-3, ReplaceOne, false}, {1 - 1e-16, 1e-3, ReplaceOne, false}, {1e-300, 1e6, ReplaceOne, false},
		{0.5, 1e6, ReplaceOne, false}, {0.5, 1e200, ReplaceOne, false},
	} {
		for _, delta := range []float64{1e-300, 0.9} {
			g := epsilonOf(t, Exact{}, m, 1e9, delta)
			if !(g.EpsilonLower >= 0 && g.EpsilonLower <= g.Epsilon) || math.IsInf(g.Epsilon, 1) && m.NoiseMultiplier >= 1e-3 {
				t.Errorf("%+v, delta %g: %+v", m, delta, g)
			}
		}
	}
}

// TestWorstPlanarVectors: of all pairs of mixtures of normal distributions in the
// plane, with means of norm at most 1, those on a diameter are the worst, both with
// the third mean at 0 (replacePair) and with it anywhere (fixedSizePair).
func TestWorstPlanarVectors(t *testing.T) {
	type point [2]float64
	const n = 300
	// hockeyStick is ∫(P − αQ)₊ by the midpoint rule.
	hockeyStick := func(q, s, alpha float64, rest, v, w point) float64 {
		h := 2 * (1 + 8*s) / n
		axis := func(mean float64) (density [n]float64) {
			for i := range density {
				x := (float64(i)+0.5)*h - 1 - 8*s - mean
				density[i] = h / (s * math.Sqrt(2*math.Pi)) * math.Exp(-x*x/(2*s*s))
			}
			return density
		}
		r0, v0, w0, r1, v1, w1 := axis(rest[0]), axis(v[0]), axis(w[0]), axis(rest[1]), axis(v[1]), axis(w[1])
		sum := 0.0
		for i := range n {
			for j := range n {
				sum += math.Max(0, (1-q)*(1-alpha)*r0[i]*r1[j]+q*v0[i]*v1[j]-alpha*q*w0[i]*w1[j])
			}
		}
		return sum
	}
	rng := rand.New(rand.NewPCG(27, 28))
	random := func() point {
		angle, radius := 2*math.Pi*rng.Float64(), 1.0
		if rng.IntN(2) == 0 {
			radius = math.Sqrt(rng.Float64())
		}
		return point{radius * math.Cos(angle), radius * math.Sin(angle)}
	}
	for range 300 {
		q, s := math.Exp(-4*rng.Float64()), math.Exp(2*rng.Float64()-0.7)
		alpha := math.Exp(q * (4*rng.Float64() - 2) / s)
		rest, v, w := random(), random(), random()
		worst := hockeyStick(q, s, alpha, point{}, point{1, 0}, point{-1, 0})
		if math.Abs(worst-replaceDelta(q, s, math.Log(alpha), 1)) > 1e-3*worst+1e-9 {
			t.Fatalf("q = %g, s = %g, alpha = %g: %g, in closed form %g", q, s, alpha, worst, replaceDelta(q, s, math.Log(alpha), 1))
		}
		if got := hockeyStick(q, s, alpha, point{}, v, w); got > worst*(1+1e-3)+1e-9 {
			t.Errorf("q = %g, s = %g, alpha = %g, %v, %v: %g, antipodal %g", q, s, alpha, v, w, got, worst)
		}
		rare := singleStep(q, s/2, math.Abs(math.Log(alpha)))
		if alpha < 1 {
			rare = 1 - alpha + alpha*rare
		}
		if got := hockeyStick(q, s, alpha, rest, v, w); got > rare*(1+1e-3)+1e-9 {
			t.Errorf("q = %g, s = %g, alpha = %g, %v, %v, %v: %g, of the pair %g", q, s, alpha, rest, v, w, got, rare)
		}
	}
	// The bound for fixed-size samples is attained, for α >= 1 as for α < 1.
	for alpha, rest := range map[float64]point{1.2: {-1, 0}, 1 / 1.2: {1, 0}} {
		got, want := hockeyStick(0.3, 0.8, alpha, rest, point{1, 0}, point{-1, 0}), singleStep(0.3, 0.4, math.Log(1.2))
		if alpha < 1 {
			want = 1 - alpha + alpha*want
		}
		if privacytest.RelErr(got, want) > 1e-3 {
			t.Errorf("alpha = %g: %g, want %g", alpha, got, want)
		}
	}
}
