package privacy

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// laplaceProfile is δ(ε) of Laplace noise with shift x over scale, for every ε.
func laplaceProfile(x, epsilon float64) float64 {
	switch {
	case epsilon >= x:
		return 0
	case epsilon > -x:
		return 1 - math.Exp((epsilon-x)/2)
	default:
		return 1 - math.Exp(epsilon)
	}
}

// afterLaplace returns E[profile(ε − L)] over the loss L of Laplace noise: δ(ε) of
// the composition.
func afterLaplace(x, epsilon float64, profile func(float64) float64) float64 {
	sum := 0.5*profile(epsilon-x) + 0.5*math.Exp(-x)*profile(epsilon+x)
	const n = 20000 // midpoint rule
	h := 2 * x / n
	for i := range n {
		l := -x + (float64(i)+0.5)*h
		sum += h * 0.25 * math.Exp((l-x)/2) * profile(epsilon-l)
	}
	return sum
}

func normalProfile(mu, epsilon float64) float64 {
	phi := func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }
	return phi(mu/2-epsilon/mu) - math.Exp(epsilon)*phi(-mu/2-epsilon/mu)
}

func TestSharedLaplaceProfile(t *testing.T) {
	tb := privacytest.SharedVectors(t, "laplace_public.csv")
	for _, row := range tb.Rows {
		m := Laplace{1, tb.Float(row, "b_over_sens"), AddRemove}
		for _, a := range []Accountant{Exact{}, PLD{}} {
			c, err := a.Curve(m)
			require.NoError(t, err)
			got, want := epsilonOf(t, a, m, 1, 1e-6).Epsilon, tb.Float(row, "eps_at_delta_1e-6")
			tb.Compare("eps_at_delta_1e-6", got, want)
			if privacytest.RelErr(got, want) > 1e-12 {
				t.Errorf("%s, %v: epsilon %.15g, want %.15g", a.Name(), row, got, want)
			}
			for column, epsilon := range map[string]float64{"delta_at_eps_0": 0, "delta_at_eps_0.1": 0.1, "delta_at_eps_0.5": 0.5} {
				g, err := Delta(c, 1, epsilon)
				require.NoError(t, err)
				if want := tb.Float(row, column); math.Abs(g.Delta-want) > 2e-9*want+1e-299 {
					t.Errorf("%s, %v: %s %.12g, want %.12g", a.Name(), row, column, g.Delta, want)
				}
			}
		}
	}
}

// TestLaplaceCompositions compares two runs, and a run beside a Gaussian, with
// their profiles by quadrature.
func TestLaplaceCompositions(t *testing.T) {
	for _, x := range []float64{0.01, 0.25, 1, 5} {
		laplace := Laplace{x, 1, AddRemove}
		for _, mu := range []float64{0, 0.1, 1} {
			m := Composition{{laplace, 2}}
			profile := func(e float64) float64 { return laplaceProfile(x, e) }
			if mu > 0 {
				m = Composition{{laplace, 1}, {Gaussian{mu, 1, AddRemove}, 1}}
				profile = func(e float64) float64 { return normalProfile(mu, e) }
			}
			for _, delta := range []float64{1e-2, 1e-4} {
				g := epsilonOf(t, Exact{}, m, 1, delta)
				if g.Epsilon == 0 {
					if at := afterLaplace(x, 0, profile); at > delta*(1+1e-6) {
						t.Errorf("x %g, mu %g: delta(0) is %g, want %g", x, mu, at, delta)
					}
					continue
				}
				if at := afterLaplace(x, g.Epsilon*(1+1e-7), profile); at > delta*(1+1e-6) {
					t.Errorf("x %g, mu %g: epsilon %g has delta %g, want %g", x, mu, g.Epsilon, at, delta)
				}
				if below := afterLaplace(x, g.Epsilon*(1-5e-3)-1e-4, profile); below < delta {
					t.Errorf("x %g, mu %g: epsilon %g is too large for delta %g", x, mu, g.Epsilon, delta)
				}
				if at := afterLaplace(x, g.EpsilonLower*(1-1e-7), profile); at < delta*(1-1e-6) {
					t.Errorf("x %g, mu %g: lower bound %g has delta %g, want %g", x, mu, g.EpsilonLower, at, delta)
				}
				if g.EpsilonLower < g.Epsilon*(1-1e-2)-1e-4 {
					t.Errorf("x %g, mu %g: from %g to %g", x, mu, g.EpsilonLower, g.Epsilon)
				}
			}
		}
	}
}

// TestRandomizedResponseCompositions: many runs with two answers have a binomial
// loss.
func TestRandomizedResponseCompositions(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	for range 40 {
		each, runs := math.Exp(rng.Float64()*6-4), 2+rng.Int64N(500)
		delta := math.Exp(-3 - 25*rng.Float64())
		m := RandomizedResponse{each, 2}
		g := epsilonOf(t, Exact{}, m, runs, delta)
		want := optimalPure(each, float64(runs), delta)
		if g.Epsilon < want*(1-1e-9) || g.Epsilon > want*(1+1e-3)+1e-6 || g.EpsilonLower > want*(1+1e-9) {
			t.Errorf("%d runs of %g, delta %g: %.12g to %.12g, want %.12g", runs, each, delta, g.EpsilonLower, g.Epsilon, want)
		}
		if rdp := epsilonOf(t, RDP{}, m, runs, delta).Epsilon; g.Epsilon > rdp*(1+1e-9) {
			t.Errorf("%d runs of %g, delta %g: %g, Rényi %g", runs, each, delta, g.Epsilon, rdp)
		}
		// More answers are less often wrong in the worst way.
		many := epsilonOf(t, Exact{}, RandomizedResponse{each, 10}, runs, delta).Epsilon
		if many > g.Epsilon*(1+1e-6)+1e-6 {
			t.Errorf("%d runs of %g, delta %g: two answers %g, ten %g", runs, each, delta, g.Epsilon, many)
		}
	}
}

// TestExactPure: all accountants of a mixture of kinds, from tight to loose.
func TestExactPure(t *testing.T) {
	m := Composition{
		{Laplace{1, 20, ReplaceOne}, 40},
		{SparseVector{1, 100, ReplaceOne}, 3},
		{Selection{PermuteAndFlip, 0.1, ReplaceOne}, 5},
		{RandomizedResponse{0.1, 4}, 7},
	}
	exact := epsilonOf(t, Exact{}, m, 1, 1e-6)
	rdp := epsilonOf(t, RDP{}, m, 1, 1e-6)
	if !(exact.Epsilon < rdp.Epsilon && exact.EpsilonLower < exact.Epsilon) || len(exact.Warnings) > 0 {
		t.Errorf("exact %g from %g, Rényi %g, %v", exact.Epsilon, exact.EpsilonLower, rdp.Epsilon, exact.Warnings)
	}
	if _, err := (Exact{}).Curve(Selection{Exponential, 0.1, ReplaceOne}); err == nil {
		t.Error("the exponential mechanism was accepted")
	}
	if g := epsilonOf(t, Exact{}, SparseVector{1, 100, ReplaceOne}, 5, 1e-6); g.EpsilonLower != 0 {
		t.Errorf("sparse vector: lower bound %g", g.EpsilonLower)
	}
}

func BenchmarkExactLaplace(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, require.ErrOf(Epsilon(Exact{}, Laplace{1, 20, AddRemove}, 100, 1e-6)))
	}
}
