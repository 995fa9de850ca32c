package privacy

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

// Exact sums, and values of dp_accounting 0.6.0 for composed runs.
func TestDiscreteVectors(t *testing.T) {
	check := func(tb privacytest.Table, row []string, m Mechanism, sensitivity int64, epsilon, delta float64) {
		t.Helper()
		switch {
		case delta == 0:
			if pure := epsilonOf(t, Pure{}, m, 1, 0).Epsilon; pure > epsilon*(1+1e-12) {
				t.Errorf("%v: pure epsilon %g", row, pure)
			}
		case delta < 1:
			g := epsilonOf(t, Exact{}, m, 1, delta)
			at := shifted(discreteMass(m), g.Epsilon, int(sensitivity))
			tb.Compare("delta at the epsilon of it", at, delta)
			if g.Epsilon < epsilon || g.EpsilonLower > epsilon || math.Abs(at-delta) > 3e-9*math.Max(1e-3, delta) {
				t.Errorf("%v: epsilon %.12g from %.12g, where delta is %.12g", row, g.Epsilon, g.EpsilonLower, at)
			}
		}
	}
	tb := privacytest.SharedVectors(t, "discrete_gaussian_public.csv")
	for _, row := range tb.Rows {
		m := DiscreteGaussian{tb.Int(row, "sensitivity"), tb.Float(row, "sigma"), AddRemove}
		check(tb, row, m, m.Sensitivity, tb.Float(row, "epsilon"), tb.Float(row, "delta"))
		if rho := m.RenyiCurve().RDP(2) / 2; privacytest.RelErr(rho, tb.Float(row, "rho_zcdp")) > 1e-13 {
			t.Errorf("%v: rho %g", row, rho)
		}
	}
	tb = privacytest.SharedVectors(t, "discrete_laplace_public.csv")
	for _, row := range tb.Rows {
		m, runs := DiscreteLaplace{tb.Int(row, "sensitivity"), 1 / tb.Float(row, "a"), AddRemove}, tb.Int(row, "runs")
		epsilon := tb.Float(row, "epsilon")
		if runs == 1 {
			check(tb, row, m, m.Sensitivity, epsilon, tb.Float(row, "delta_exact"))
			continue
		}
		// dp_accounting rounds up, by up to 1e-4 in ε.
		delta := composed(m, runs, epsilon)
		g := epsilonOf(t, Exact{}, m, runs, delta)
		tb.Compare("epsilon at delta_dpacc", g.Epsilon, epsilon)
		if want := tb.Float(row, "delta_dpacc"); delta > want || delta < 0.999*want || math.Abs(g.Epsilon-epsilon) > 1e-3*epsilon || g.EpsilonLower > epsilon {
			t.Errorf("%v: epsilon %.12g from %.12g, delta %.10g", row, g.Epsilon, g.EpsilonLower, delta)
		}
	}
}

// composed returns δ(ε) of runs, by adding up the losses of all sequences of them.
func composed(m DiscreteLaplace, runs int64, epsilon float64) float64 {
	mass, s := discreteMass(m), int(m.Sensitivity)
	one := make([]float64, s+1) // by how often a loss is 2/b above the least
	for x := -discreteReach; x <= discreteReach; x++ {
		one[min(max(x, 0), s)] += mass(x - s)
	}
	all := []float64{1}
	for range runs {
		next := make([]float64, len(all)+s)
		for i, p := range all {
			for j, q := range one {
				next[i+j] += p * q
			}
		}
		all = next
	}
	delta := 0.0
	for i, p := range all {
		delta += p * math.Max(0, -math.Expm1(epsilon-(2*float64(i)-float64(runs)*float64(s))/m.Scale))
	}
	return delta
}

// discreteMass returns the probability of the noise at x, by a sum over all of it.
func discreteMass(m Mechanism) func(x int) float64 {
	weight := func(x int) float64 {
		switch m := m.(type) {
		case DiscreteGaussian:
			return math.Exp(-0.5 * float64(x*x) / (m.Sigma * m.Sigma))
		case DiscreteLaplace:
			return math.Exp(-math.Abs(float64(x)) / m.Scale)
		}
		panic("no discrete noise")
	}
	total := 0.0
	for x := -discreteReach; x <= discreteReach; x++ {
		total += weight(x)
	}
	return func(x int) float64 { return weight(x) / total }
}

const discreteReach = 220 // beyond which the noise of these tests is negligible

// shifted returns δ(ε) of noise shifted by shifts against the noise, each on a statistic of its own, by summing over
// all outcomes.
func shifted(mass func(int) float64, epsilon float64, shifts ...int) float64 {
	if len(shifts) == 0 {
		return math.Max(0, -math.Expm1(epsilon))
	}
	delta := 0.0
	for x := -discreteReach; x <= discreteReach; x++ {
		p, q := mass(x-shifts[0]), mass(x)
		if p > 0 && q > 0 {
			delta += p * shifted(mass, epsilon-math.Log(p/q), shifts[1:]...)
		}
	}
	return delta
}

// The pair dominates every shift within the sensitivity, on one statistic or two, and is one of them.
func TestDiscreteNoiseDominates(t *testing.T) {
	rng := rand.New(rand.NewPCG(42, 5))
	for range privacytest.Few(6, 60) {
		sensitivity := 1 + rng.IntN(6)
		for _, m := range []Mechanism{
			DiscreteGaussian{int64(sensitivity), 0.3 + 5*rng.Float64(), AddRemove},
			DiscreteLaplace{int64(sensitivity), 0.3 + 4*rng.Float64(), AddRemove},
		} {
			mass := discreteMass(m)
			for range 4 {
				epsilon := 3 * rng.Float64()
				delta := shifted(mass, epsilon, sensitivity)
				if delta < 1e-9 {
					continue
				}
				g := epsilonOf(t, Exact{}, m, 1, delta)
				if g.Epsilon < epsilon*(1-1e-9) || g.EpsilonLower > epsilon*(1+1e-9) || shifted(mass, g.Epsilon, sensitivity) < delta-3e-9 {
					t.Errorf("%+v: epsilon %.12g, want %.12g", m, g.Epsilon, epsilon)
				}
				if smaller := shifted(mass, epsilon, rng.IntN(sensitivity)); smaller > delta*(1+1e-12) {
					t.Errorf("%+v: a smaller shift has delta %g, not %g", m, smaller, delta)
				}
				if _, ok := m.(DiscreteLaplace); ok {
					first := rng.IntN(sensitivity + 1)
					if both := shifted(mass, epsilon, first, sensitivity-first); both > delta*(1+1e-9) {
						t.Errorf("%+v: shifts of %d and %d have delta %g, not %g", m, first, sensitivity-first, both, delta)
					}
				}
			}
		}
	}
}

// The divergences are those of the sums over all outcomes, and bounds are in order.
func TestDiscreteBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(42, 6))
	for range privacytest.Few(20, 500) {
		sensitivity := 1 + rng.Int64N(5)
		width := 0.3 * math.Exp(3*rng.Float64())
		runs, delta := int64(math.Exp(7*rng.Float64())), 0.5*math.Exp(-690*rng.Float64()*rng.Float64()*rng.Float64())
		for _, m := range []RenyiMechanism{DiscreteGaussian{sensitivity, width, AddRemove}, DiscreteLaplace{sensitivity, width, ReplaceOne}} {
			g := epsilonOf(t, Exact{}, m, runs, delta)
			if !(g.EpsilonLower <= g.Epsilon) || math.IsInf(g.Epsilon, 1) || g.Epsilon > epsilonOf(t, RDP{}, m, runs, delta).Epsilon*(1+1e-9) {
				t.Errorf("%+v, %d runs, delta %g: %+v", m, runs, delta, g)
			}
			if more := epsilonOf(t, Exact{}, m, runs, delta/3).Epsilon; more < g.Epsilon*(1-1e-4) {
				t.Errorf("%+v, %d runs: epsilon %g at delta %g, %g at a third", m, runs, g.Epsilon, delta, more)
			}
			order := 1.1 + 4*rng.Float64()
			mass, sum := discreteMass(m), 0.0
			for x := -discreteReach; x <= discreteReach; x++ {
				if p, q := mass(x-int(sensitivity)), mass(x); p > 0 && q > 0 {
					sum += math.Exp(order*math.Log(p) - (order-1)*math.Log(q))
				}
			}
			want, got := math.Log(sum)/(order-1), m.RenyiCurve().RDP(order)
			if _, exact := m.(DiscreteLaplace); width < 4 && got*(order-1) < 600 && (want > got*(1+1e-9)+1e-12 || exact && privacytest.RelErr(got, want) > 1e-6) {
				t.Errorf("%+v: divergence of order %g %.12g, want %.12g", m, order, got, want)
			}
		}
	}
}

// At the ends of the parameters' ranges ε is what little or much noise gives, and its bounds are in order.
func TestDiscreteEnds(t *testing.T) {
	for _, width := range []float64{leastDiscrete, mostDiscrete} {
		for _, sensitivity := range []int64{1, mostDiscrete} {
			for _, m := range []RenyiMechanism{DiscreteGaussian{sensitivity, width, AddRemove}, DiscreteLaplace{sensitivity, width, AddRemove}} {
				for _, runs := range []int64{1, 100} {
					for _, delta := range []float64{1e-300, 1e-5, 0.4} {
						g, most := epsilonOf(t, Exact{}, m, runs, delta), epsilonOf(t, RDP{}, m, runs, delta).Epsilon
						if width < 1 && !(g.Epsilon > 90) || g.EpsilonLower > g.Epsilon || g.EpsilonLower > most*(1+1e-9) || g.Epsilon > most*(1+1e-6) {
							t.Errorf("%+v, %d runs, delta %g: %g to %g, Rényi %g", m, runs, delta, g.EpsilonLower, g.Epsilon, most)
						}
					}
				}
			}
		}
	}
}

func TestDiscreteValidate(t *testing.T) {
	for _, m := range []Mechanism{
		DiscreteGaussian{0, 1, AddRemove}, DiscreteGaussian{1, 0, AddRemove}, DiscreteGaussian{1, 1e-200, AddRemove}, DiscreteLaplace{1, 0.009, AddRemove}, DiscreteGaussian{1, math.Inf(1), AddRemove},
		DiscreteGaussian{1, 1, 0}, DiscreteLaplace{10001, 1, AddRemove}, DiscreteLaplace{1, 10001, AddRemove}, DiscreteLaplace{1, math.NaN(), AddRemove},
	} {
		if len(FieldErrors(m.Validate())) == 0 {
			t.Errorf("%+v is accepted", m)
		}
	}
}
