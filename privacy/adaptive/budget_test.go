package adaptive

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestApproximateMuValues compares with values of an independent program (numpy, discretised
// losses), for runs of DP-SGD and δ = 1e-6.
func TestApproximateMuValues(t *testing.T) {
	mu, err := ApproximateMu(privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}, 1270, 1e-10)
	if err != nil || math.Abs(mu-0.07788) > 1e-5 {
		t.Errorf("mu %.6f, %v, want 0.07788", mu, err)
	}
	for runs, want := range map[float64]float64{1: 0.3037, 3: 0.547, 7: 0.861, 64: 2.874} {
		if got := gaussian.Epsilon(mu*math.Sqrt(runs), math.Log(1e-6-runs*1e-10)); math.Abs(got-want) > 1e-3 {
			t.Errorf("%g runs: epsilon %.4f, want %g", runs, got, want)
		}
	}
	// A heavy tail makes it loose: 13 and 25 percent above the ε of a run.
	for _, tt := range []struct {
		m     privacy.FixedSizeGaussian
		steps int64
		above float64
	}{{privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 64, NoiseMultiplier: 1}, 2540, 1.13}, {privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 600, NoiseMultiplier: 1}, 109, 1.25}} {
		mu, err := ApproximateMu(tt.m, tt.steps, 1e-10)
		require.NoError(t, err)
		got := gaussian.Epsilon(mu, math.Log(1e-6-1e-10)) / epsilonOf(t, privacy.Exact{}, tt.m, tt.steps, 1e-6).Epsilon
		if math.Abs(got-tt.above) > 0.02 {
			t.Errorf("%+v: %.3f times the ε of a run, want %g", tt.m, got, tt.above)
		}
	}
}

// TestGaussianFilterAdmits: the same program, on coarser losses, gave 9, 33, 114 and 375 runs.
func TestGaussianFilterAdmits(t *testing.T) {
	m := privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}
	for _, tt := range []struct {
		epsilon float64
		runs    int64
	}{{1, 9}, {2, 33}, {4, 115}, {8, 386}} {
		budget, err := NewGaussianBudget(tt.epsilon, 1e-6, 1000)
		require.NoError(t, err)
		cost, err := budget.Cost(m, 1270)
		require.NoError(t, err)
		if got := int64(budget.Squared / cost); got != tt.runs {
			t.Errorf("ε = %g: %d runs, want %d", tt.epsilon, got, tt.runs)
		}
	}
}

// TestGaussianBudget: Gaussian noise costs what Gaussian DP says, and accesses that cost next to nothing are
// counted, since each has a slack.
func TestGaussianBudget(t *testing.T) {
	budget, err := NewGaussianBudget(2, 1e-6, 400)
	require.NoError(t, err)
	cost, err := budget.Cost(privacy.Gaussian{Sensitivity: 1, StandardDeviation: 20, Neighbours: privacy.AddRemove}, 1)
	require.NoError(t, err)
	mu, err := privacy.GaussianMu(2, 1e-6)
	require.NoError(t, err)
	if most, admitted := int64(mu*mu*400), int64(budget.Squared/cost); admitted > most || admitted < most-1 {
		t.Errorf("%d runs were admitted; Gaussian DP allows %d", admitted, most)
	}
	if epsilon := budget.Epsilon(budget.Squared, 1e-6); !(epsilon <= 2*(1+1e-12) && epsilon > 1.99) {
		t.Errorf("all of the budget is worth epsilon %g", epsilon)
	}
	cost, err = budget.Cost(privacy.Gaussian{Sensitivity: 1, StandardDeviation: 1e6, Neighbours: privacy.AddRemove}, 1)
	if err != nil || int64(budget.Squared/cost) != 400 {
		t.Errorf("%g accesses were admitted, want 400 (%v)", budget.Squared/cost, err)
	}
	for _, tt := range []struct {
		epsilon, delta float64
		accesses       int64
		field          string
	}{{-1, 1e-6, 9, "epsilon"}, {1, 0, 9, "delta"}, {1, 1e-6, 0, "accesses"}} {
		_, err := NewGaussianBudget(tt.epsilon, tt.delta, tt.accesses)
		if fields := privacy.FieldErrors(err); len(fields) != 1 || fields[0].Field != tt.field {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestApproximateMuErrors(t *testing.T) {
	g := privacy.Gaussian{Sensitivity: 1, StandardDeviation: 1, Neighbours: privacy.AddRemove}
	for field, f := range map[string]func() (float64, error){
		"mechanism": func() (float64, error) { return ApproximateMu(nil, 1, 0.1) },
		"steps":     func() (float64, error) { return ApproximateMu(g, 0, 0.1) },
		"slack":     func() (float64, error) { return ApproximateMu(g, 1, math.NaN()) },
		"standard_deviation": func() (float64, error) {
			return ApproximateMu(privacy.Gaussian{Sensitivity: 1, StandardDeviation: 0, Neighbours: privacy.AddRemove}, 1, 0.1)
		},
	} {
		_, err := f()
		if fields := privacy.FieldErrors(err); len(fields) != 1 || fields[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if mu, err := ApproximateMu(privacy.PoissonGaussian{SamplingProbability: 0.5, NoiseMultiplier: 0.01, Neighbours: privacy.AddRemove, PublicSize: false}, 1000, 1e-10); err != nil || !math.IsInf(mu, 1) {
		t.Errorf("hardly any noise: %g, %v", mu, err)
	}
}

// TestApproximateMuDominates checks the profiles of runs of mechanisms between the points at which
// ApproximateMu looks at them, and that no much smaller μ would do.
func TestApproximateMuDominates(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 1))
	for range privacytest.Few(2, 4) {
		slack := math.Pow(10, -4-8*rng.Float64())
		z, steps := math.Exp(2*rng.Float64()), 1+rng.Int64N(1000)
		for _, m := range []privacy.Mechanism{
			privacy.FixedSizeGaussian{DatasetSize: 1000, BatchSize: 1 + rng.Int64N(300), NoiseMultiplier: z},
			privacy.PoissonGaussian{SamplingProbability: 0.3 * rng.Float64(), NoiseMultiplier: z, Neighbours: privacy.AddRemove, PublicSize: false},
			privacy.Laplace{Sensitivity: 1, Scale: 20 + 100*rng.Float64(), Neighbours: privacy.AddRemove},
		} {
			if _, ok := m.(privacy.Laplace); ok {
				steps = 1 + steps%10
			}
			mu, err := ApproximateMu(m, steps, slack)
			require.NoError(t, err)
			if math.IsInf(mu, 1) {
				continue
			}
			curve, err := (privacy.Tightest{}).Curve(m)
			require.NoError(t, err)
			for range privacytest.Few(10, 40) {
				delta := math.Pow(slack, rng.Float64())
				g, err := curve.Epsilon(steps, delta)
				require.NoError(t, err)
				if g.Epsilon == 0 {
					continue
				}
				logDelta, _ := gaussian.Profile(mu, g.Epsilon)
				if bound := slack + (1-slack)*math.Exp(logDelta); delta > bound*(1+1e-6) {
					t.Errorf("%+v, %d steps, slack %g: δ(%g) = %g, but %g with μ = %g", m, steps, slack, g.Epsilon, delta, bound, mu)
				}
			}
		}
	}
}

// finiteMu is ApproximateMu of a mechanism with finitely many outputs.
func finiteMu(t *testing.T, p, q []float64, slack float64) float64 {
	t.Helper()
	mu := 0.0
	for _, pair := range [][2][]float64{{p, q}, {q, p}} {
		one, err := approximateMu(func(logDelta float64) (float64, error) {
			lo, hi := 0.0, 100.0
			if privacytest.HockeyStick(pair[0], pair[1], 0) <= math.Exp(logDelta) {
				return 0, nil
			}
			for range 80 {
				if mid := 0.5 * (lo + hi); privacytest.HockeyStick(pair[0], pair[1], mid) <= math.Exp(logDelta) {
					hi = mid
				} else {
					lo = mid
				}
			}
			return hi, nil
		}, slack)
		require.NoError(t, err)
		mu = math.Max(mu, one)
	}
	return mu
}

// TestAdaptiveSearchUnderFilters computes what the worst adaptive search shows, exactly, of random
// mechanisms with few outputs: the Gaussian filter keeps its word, the least δ for its budget. The
// filter that composes what was used exactly and stops at its ε and δ does not.
func TestAdaptiveSearchUnderFilters(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 2))
	const slack, depth, searches = 1e-6, 3, 150
	natural, closest := 0, 0.0
	for range searches {
		mechanisms := privacytest.RandomMechanisms(rng, 3)
		var costs []float64 // μ²
		for _, m := range mechanisms {
			mu := finiteMu(t, m.P, m.Q, slack)
			costs = append(costs, mu*mu)
		}
		budget := costs[0] * (1 + 2*rng.Float64())
		if budget == 0 {
			continue
		}
		epsilon := math.Sqrt(budget) * 2 * rng.Float64()
		logDelta, _ := gaussian.Profile(math.Sqrt(budget), epsilon)
		declared := depth*slack + math.Exp(logDelta)
		for _, orientation := range []func(privacytest.FiniteMechanism) privacytest.FiniteMechanism{
			func(m privacytest.FiniteMechanism) privacytest.FiniteMechanism { return m }, privacytest.FiniteMechanism.Reversed,
		} {
			var oriented []privacytest.FiniteMechanism
			for _, m := range mechanisms {
				oriented = append(oriented, orientation(m))
			}
			gaussian := privacytest.MostAdaptive(oriented, epsilon, 0, depth, nil, func(path []int) bool {
				spent := 0.0
				for _, i := range path {
					spent += costs[i]
				}
				return spent <= budget
			})
			closest = math.Max(closest, gaussian/declared)
			exact := privacytest.MostAdaptive(oriented, epsilon, 0, depth, nil, func(path []int) bool {
				return privacytest.ComposedDelta(oriented, path, epsilon, 0) <= declared
			})
			if exact > declared*(1+1e-9) {
				natural++
			}
		}
	}
	t.Logf("%.3g of the declared δ at most; the natural filter breaks %d of %d", closest, natural, 2*searches)
	if closest > 1 {
		t.Errorf("a search under the Gaussian filter shows %g times the declared δ", closest)
	}
	if closest < 0.5 || natural < 10 {
		t.Error("the searches find too little")
	}
}

// TestNaturalFilterIsNotPrivate is such a search by hand. After randomised response with ε = 1, one
// goes on with another one of ε = 1/2 if the answer was "yes", and shows everything with probability
// .179 if it was "no". Both compositions have δ(1) = .179; the search has .227.
func TestNaturalFilterIsNotPrivate(t *testing.T) {
	response := func(epsilon float64) privacytest.FiniteMechanism {
		yes := 1 / (1 + math.Exp(-epsilon))
		return privacytest.FiniteMechanism{P: []float64{yes, 1 - yes}, Q: []float64{1 - yes, yes}}
	}
	first, second := response(1), response(0.5)
	delta := privacytest.ComposedDelta([]privacytest.FiniteMechanism{first, second}, []int{0, 1}, 1, 0)
	shown := privacytest.FiniteMechanism{P: []float64{delta, 0, 1 - delta}, Q: []float64{0, delta, 1 - delta}}
	all := []privacytest.FiniteMechanism{first, second, shown}
	admits := func(path []int) bool {
		return len(path) > 0 && path[0] == 0 && privacytest.ComposedDelta(all, path, 1, 0) <= delta*(1+1e-12)
	}
	if got := privacytest.ComposedDelta(all, []int{0, 2}, 1, 0); math.Abs(got-delta) > 1e-12 || math.Abs(delta-0.179) > 5e-4 {
		t.Fatalf("δ(1) = %.4f and %.4f, want .179", delta, got)
	}
	if got := privacytest.MostAdaptive(all, 1, 0, 2, nil, admits); math.Abs(got-0.227) > 5e-4 {
		t.Errorf("δ(1) = %.4f of the search, want .227", got)
	}
}

// epsilonOf returns a guarantee.
func epsilonOf(t testing.TB, a privacy.Accountant, m privacy.Mechanism, steps int64, delta float64) privacy.Guarantee {
	t.Helper()
	g, err := privacy.Epsilon(a, m, steps, delta)
	require.NoError(t, err)
	return g
}
