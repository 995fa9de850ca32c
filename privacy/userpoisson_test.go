package privacy

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestSharedUserPoisson compares each direction with another implementation, which rounds losses up to a grid: for 5,000
// steps that adds 0.001 to 0.005. For σ = 1.5, q = 0.001, two records, 5,000 steps and δ = 1e-7, grids of 4e-6, 2e-6 and
// 1e-6 (numpy) give 0.498685, 0.493686 and 0.491185 for removing a user, which extrapolates to 0.48869.
func TestSharedUserPoisson(t *testing.T) {
	tb := privacytest.SharedVectors(t, "user_level_mog_public.csv")
	for _, row := range tb.Rows {
		m := UserPoissonGaussian{tb.Int(row, "group"), tb.Float(row, "q"), tb.Float(row, "sigma"), false}
		losses, err := Losses(m)
		require.NoError(t, err)
		rounding := 0.0
		if tb.Int(row, "steps") == 5000 {
			rounding = 5e-3
		}
		for i, column := range []string{"eps_remove", "eps_add"} {
			want := tb.Float(row, column)
			got, ok := losses.UpperDirections()[i].Epsilon(tb.Float(row, "steps"), math.Log(tb.Float(row, "delta")), 1)
			tb.Compare(column, got, want)
			if !ok || got > want*(1+3e-4) || got < want*(1-3e-4)-rounding {
				t.Errorf("%v: %s %.9g, want %.9g", row[:5], column, got, want)
			}
		}
	}
	g := epsilonOf(t, Exact{}, UserPoissonGaussian{2, 1e-3, 1.5, false}, 5000, 1e-7)
	if privacytest.RelErr(g.Epsilon, 0.48869) > 1e-4 || privacytest.RelErr(g.EpsilonLower, g.Epsilon) > 1e-6 {
		t.Errorf("epsilon %g to %g, want 0.48869", g.EpsilonLower, g.Epsilon)
	}
}

// TestSharedGroups compares groups of k records, which are users whose records are all drawn, with group privacy of Gaussian
// noise. Of what is known of a record only by (ε, δ) or a Rényi divergence the conversions are loose: Gaussian noise with
// that for a record has less for the group.
func TestSharedGroups(t *testing.T) {
	tb := privacytest.SharedVectors(t, "group_privacy_public.csv")
	for _, row := range tb.Rows {
		want, mu := tb.Float(row, "result_a"), tb.Float(row, "a")
		kind := tb.Text(row, "kind")
		switch kind {
		case "zcdp":
			mu = math.Sqrt(2 * mu)
		case "approx":
			mu = gaussian.Mu(mu, math.Log(tb.Float(row, "b")))
		case "rdp_mironov":
			mu = math.Sqrt(2 * tb.Float(row, "b") / mu)
		}
		m := UserPoissonGaussian{RecordsPerUser: tb.Int(row, "k"), SamplingProbability: 1, NoiseMultiplier: 1 / mu}
		switch kind {
		case "approx":
			got := epsilonOf(t, Exact{}, m, 1, tb.Float(row, "result_b")).Epsilon
			tb.Compare("result_a, approx", got, want)
			if !(got > 0 && got < want) {
				t.Errorf("%v: epsilon %.15g, want less than %.15g", row, got, want)
			}
			continue
		case "rdp_mironov":
			got, divergence := m.RenyiCurve().RDP(want), tb.Float(row, "result_b") // want is the order
			tb.Compare("result_b", got, divergence)
			if !(got > 0 && got < divergence) {
				t.Errorf("%v: divergence %.15g, want less than %.15g", row, got, divergence)
			}
			continue
		}
		g := epsilonOf(t, Exact{}, m, 1, 1e-6)
		got := gaussian.Mu(g.Epsilon, math.Log(1e-6))
		if kind == "zcdp" {
			got *= got / 2
		}
		tb.Compare("result_a, "+kind, got, want)
		if privacytest.RelErr(got, want) > 1e-12 || privacytest.RelErr(g.EpsilonLower, g.Epsilon) > 1e-12 {
			t.Errorf("%v: %.15g, want %.15g", row, got, want)
		}
	}
}

// TestUserPoissonRecord: a pair of one record is that of Poisson sampling, by other code, and users with more records are
// less private, but no less than by group privacy of Gaussian noise.
func TestUserPoissonRecord(t *testing.T) {
	for _, tc := range []struct {
		q, sigma, delta float64
		steps           int64
	}{{0.01, 1, 1e-5, 500}, {0.2, 3, 1e-6, 50}, {0.5, 0.8, 1e-4, 3}, {1e-3, 0.7, 1e-7, 2000}, {0.3, 1.5, 1e-5, 1}} {
		last := epsilonOf(t, Exact{}, PoissonGaussian{tc.q, tc.sigma, AddRemove, false}, tc.steps, tc.delta)
		for records := int64(2); records < 5; records++ {
			m := UserPoissonGaussian{records, tc.q, tc.sigma, false}
			g := epsilonOf(t, Exact{}, m, tc.steps, tc.delta)
			whole := epsilonOf(t, Exact{}, Gaussian{float64(records), tc.sigma, AddRemove}, tc.steps, tc.delta)
			renyi := epsilonOf(t, RDP{}, m, tc.steps, tc.delta)
			if !(g.EpsilonLower > last.EpsilonLower && g.Epsilon <= whole.Epsilon*(1+1e-9) && g.Epsilon <= renyi.Epsilon*(1+1e-4)+1e-5) || g.EpsilonLower > g.Epsilon {
				t.Errorf("%+v: epsilon %g to %g, Gaussian %g, Rényi %g, one record less %g", m, g.EpsilonLower, g.Epsilon, whole.Epsilon, renyi.Epsilon, last.Epsilon)
			}
			last = g
		}
	}
}

// TestUserPoissonBruteForce: the profile of one step is that of the pair by direct quadrature, and vectors of a user that
// differ are more private.
func TestUserPoissonBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(42, 5))
	for range 6 {
		m := UserPoissonGaussian{2 + rng.Int64N(4), 0.1 + 0.6*rng.Float64(), 0.7 + 2*rng.Float64(), false}
		losses, err := Losses(m)
		require.NoError(t, err)
		of := func(values ...int) map[int]float64 { return outcomes(values, len(values), m.SamplingProbability) }
		same, different := make([]int, m.RecordsPerUser), make([]int, m.RecordsPerUser)
		for i := range same {
			same[i], different[i] = 1, rng.IntN(3)-1
		}
		epsilon := 0.3 + rng.Float64()
		nobody := map[int]float64{0: 1}
		for i, deltas := range [][2]float64{
			{hockeyStick(of(same...), nobody, m.NoiseMultiplier, epsilon), hockeyStick(of(different...), nobody, m.NoiseMultiplier, epsilon)},
			{hockeyStick(nobody, of(same...), m.NoiseMultiplier, epsilon), hockeyStick(nobody, of(different...), m.NoiseMultiplier, epsilon)},
		} {
			if deltas[0] < 1e-12 {
				continue
			}
			got, ok := losses.UpperDirections()[i].Epsilon(1, math.Log(deltas[0]), 1)
			if !ok || privacytest.RelErr(got, epsilon) > 1e-3 || deltas[1] > deltas[0]*(1+1e-6) {
				t.Errorf("%+v, direction %d: epsilon %g, want %g; delta %g, of different records %g", m, i, got, epsilon, deltas[0], deltas[1])
			}
		}
	}
}

// TestUserPoissonEdges: at random parameters bounds are in order and monotone.
func TestUserPoissonEdges(t *testing.T) {
	rng := rand.New(rand.NewPCG(42, 6))
	for range privacytest.Few(6, 1000) {
		m := UserPoissonGaussian{
			1 + int64(math.Exp(rng.Float64()*4)), math.Exp(-0.1 - rng.Float64()*9), 0.3 * math.Exp(rng.Float64()*4), false,
		}
		steps := 1 + int64(math.Exp(rng.Float64()*8))
		delta := math.Max(1e-300, math.Exp(-0.7-rng.Float64()*rng.Float64()*690))
		g := epsilonOf(t, Exact{}, m, steps, delta)
		more, noisier := m, m
		more.RecordsPerUser++
		noisier.NoiseMultiplier *= 1.3
		if !(g.EpsilonLower >= 0 && g.EpsilonLower <= g.Epsilon && !math.IsInf(g.Epsilon, 1)) {
			t.Errorf("%+v, %d steps, delta %g: epsilon %g to %g", m, steps, delta, g.EpsilonLower, g.Epsilon)
		}
		for what, less := range map[string][2]float64{
			"records": {g.Epsilon, epsilonOf(t, Exact{UpperOnly: true}, more, steps, delta).Epsilon},
			"noise":   {epsilonOf(t, Exact{UpperOnly: true}, noisier, steps, delta).Epsilon, g.Epsilon},
			"steps":   {epsilonOf(t, Exact{UpperOnly: true}, m, steps-steps/2, delta).Epsilon, g.Epsilon},
			"delta":   {epsilonOf(t, Exact{UpperOnly: true}, m, steps, 1.5*delta).Epsilon, g.Epsilon},
		} {
			if less[0] > less[1]*(1+1e-4)+1e-5 {
				t.Errorf("%+v, %d steps, delta %g: epsilon %g exceeds %g for less %s", m, steps, delta, less[0], less[1], what)
			}
		}
	}
}
