package tuning

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/internal/profile"
	"github.com/dpareto/dpareto/privacy/internal/quadrature"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestLocationValues compares with values of an independent program (numpy, discretised
// losses), for a run of DP-SGD and δ = 1e-6.
func TestLocationValues(t *testing.T) {
	base := privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}
	const steps = 1270
	negative := func(eta, mean float64) privacy.Mechanism {
		gamma, err := SelectionGamma(eta, mean)
		require.NoError(t, err)
		return RepeatedSelection{base, steps, eta, gamma}
	}
	gamma, err := SelectionGamma(1, 32)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		m       privacy.Mechanism
		epsilon float64
	}{
		"logarithmic 10": {negative(0, 10), 0.432}, "logarithmic 32": {negative(0, 32), 0.486}, "logarithmic 64": {negative(0, 64), 0.515},
		"geometric 10": {negative(1, 10), 0.457}, "geometric 32": {negative(1, 32), 0.533},
		"geometric 64": {negative(1, 64), 0.577}, "geometric 128": {negative(1, 128), 0.620},
		"geometric 32 capped": {CappedSelection{base, steps, 1, gamma, 128}, 0.5332},
		"Poisson 10":          {PoissonSelection{base, steps, 10}, 0.580}, "Poisson 32": {PoissonSelection{base, steps, 32}, 1.074},
		"Poisson 64": {PoissonSelection{base, steps, 64}, 1.572},
		"one":        {BinomialSelection{base, steps, 1, 1}, 0.3037128},
		"4":          {BinomialSelection{base, steps, 4, 1}, 0.639}, "32": {BinomialSelection{base, steps, 32, 1}, 1.492},
		"64": {BinomialSelection{base, steps, 64, 1}, 1.880},
	} {
		got := epsilonOf(t, Location{UpperOnly: true}, tc.m, 1, 1e-6)
		if e := got.Epsilon - tc.epsilon; e > 1e-3 || e < -2e-3 { // theirs is on a coarser grid
			t.Errorf("%s: epsilon %.6f, want %.4f", name, got.Epsilon, tc.epsilon)
		}
	}
}

// TestLocationOfGaussians: the same for N(0, 1) against N(μ, 1).
func TestLocationOfGaussians(t *testing.T) {
	for _, tc := range []struct{ mu, log10, geo10, log100, geo100, poisson10 float64 }{
		{0.1, 0.5617, 0.5939, 0.6918, 0.7841, 0.7539},
		{0.25, 1.4742, 1.5567, 1.7983, 2.0339, 1.9702},
		{0.5, 3.0867, 3.2564, 3.7343, 4.2157, 4.1117},
	} {
		base := privacy.Gaussian{Sensitivity: tc.mu, StandardDeviation: 1, Neighbours: privacy.AddRemove}
		for _, of := range []struct{ eta, mean, want float64 }{{0, 10, tc.log10}, {1, 10, tc.geo10}, {0, 100, tc.log100}, {1, 100, tc.geo100}} {
			gamma, err := SelectionGamma(of.eta, of.mean)
			require.NoError(t, err)
			got := epsilonOf(t, Location{}, RepeatedSelection{base, 1, of.eta, gamma}, 1, 1e-6).Epsilon
			if privacytest.RelErr(got, of.want) > 1e-3 {
				t.Errorf("mu %g, eta %g, mean %g: epsilon %.5f, want %.4f", tc.mu, of.eta, of.mean, got, of.want)
			}
		}
		if got := epsilonOf(t, Location{}, PoissonSelection{base, 1, 10}, 1, 1e-6).Epsilon; privacytest.RelErr(got, tc.poisson10) > 1e-3 {
			t.Errorf("mu %g, Poisson: epsilon %.5f, want %.4f", tc.mu, got, tc.poisson10)
		}
	}
	got := epsilonOf(t, Location{}, CappedSelection{privacy.Gaussian{Sensitivity: 0.5, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 1, 0.1, 20}, 1, 1e-6).Epsilon
	if math.Abs(got-3.208) > 4e-3 {
		t.Errorf("geometric 10 given at most 20: epsilon %.5f, want 3.208", got)
	}
}

// testLaws are distributions of every kind with a mean.
func testLaws(rng *rand.Rand) map[string]runCountDistribution {
	gamma := math.Exp(-5 * rng.Float64())
	return map[string]runCountDistribution{
		"logarithmic": negativeBinomial{0, gamma}, "geometric": negativeBinomial{1, gamma},
		"negative binomial": negativeBinomial{-0.9 + 4*rng.Float64(), gamma},
		"Poisson":           poissonCount(0.1 + 20*rng.Float64()),
		"binomial":          binomialCount{1 + rng.Int64N(20), rng.Float64()},
		"fixed":             binomialCount{1 + rng.Int64N(20), 1},
		"capped":            newCappedNegativeBinomial(negativeBinomial{2*rng.Float64() - 0.5, gamma}, 1+rng.Int64N(30)),
	}
}

// at is the split of z.
func at(z float64) profile.Split { return profile.Split{Z: z, V: 1 - z} }

// generating returns φ(b) − φ(a) of a law by quadrature of φ′.
func generating(law runCountDistribution, a, b float64) float64 {
	const parts = 8
	var sum float64
	for i := range parts {
		lo, hi := a+(b-a)*float64(i)/parts, a+(b-a)*float64(i+1)/parts
		mid, half := 0.5*(lo+hi), 0.5*(hi-lo)
		for k, g := range quadrature.Nodes16 {
			low, _ := law.at(at(mid - half*g))
			high, _ := law.at(at(mid + half*g))
			sum += half * quadrature.Weights16[k] * (low + high)
		}
	}
	return sum
}

// profileOfOutputs returns the profile of a pair of finite distributions at its corners.
func profileOfOutputs(p, q []float64) []profile.Point {
	points := []profile.Point{{R: 0, Epsilon: 0, Delta: privacytest.HockeyStick(p, q, 0)}}
	for i := range p {
		if loss := math.Log(p[i] / q[i]); loss > 0 && !math.IsInf(loss, 1) {
			points = append(points, profile.Point{R: 0, Epsilon: loss, Delta: privacytest.HockeyStick(p, q, loss)})
		}
	}
	return points
}

// permutations calls f with every order of 0, …, n − 1.
func permutations(n int, f func([]int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var at func(int)
	at = func(i int) {
		if i == n {
			f(order)
			return
		}
		for j := i; j < n; j++ {
			order[i], order[j] = order[j], order[i]
			at(i + 1)
			order[i], order[j] = order[j], order[i]
		}
	}
	at(0)
}

// selections returns the distribution of the best of K outputs by an order of them.
func selections(law runCountDistribution, p []float64) func(order []int) []float64 {
	shares := make(map[[2]int]float64) // of an output, by the set of outputs below it
	return func(order []int) []float64 {
		best := make([]float64, len(p))
		var set int
		var below float64
		for _, i := range order {
			share, ok := shares[[2]int{set, i}]
			if !ok {
				share = generating(law, below, math.Min(1, below+p[i]))
				shares[[2]int{set, i}] = share
			}
			best[i] = share
			set |= 1 << i
			below = math.Min(1, below+p[i])
		}
		return best
	}
}

// largestExcess returns by how much the exact δ(ε) of selections exceeds the bound: the largest
// over all orders of the outputs of random mechanisms, relative to the bound.
func largestExcess(seed uint64, mechanisms int, bound func(p, q []float64, law runCountDistribution) func(epsilon float64) float64) (worst float64, where string) {
	rng := rand.New(rand.NewPCG(seed, 0))
	worst = math.Inf(-1)
	for i := range mechanisms {
		n := 2 + rng.IntN(mostOutputs-1)
		p, q := privacytest.RandomOutputs(rng, n), privacytest.RandomOutputs(rng, n)
		for name, law := range testLaws(rng) {
			delta := bound(p, q, law)
			epsilons := []float64{0, 0.3, 1, 2.5}
			var bounds []float64
			for _, epsilon := range epsilons {
				bounds = append(bounds, delta(epsilon))
			}
			ofP, ofQ := selections(law, p), selections(law, q)
			permutations(n, func(order []int) {
				upper, lower := ofP(order), ofQ(order)
				for k, epsilon := range epsilons {
					exact, above := privacytest.HockeyStick(upper, lower, epsilon), bounds[k]
					if excess := (exact - above) / (above + 1e-9); excess > worst {
						worst, where = excess, fmt.Sprintf("mechanism %d, %s, order %v, epsilon %g: %g above %g", i, name, order, epsilon, exact, above)
					}
				}
			})
		}
	}
	return worst, where
}

// mostOutputs is the largest number of outputs of random mechanisms.
const mostOutputs = 5

func locationOfOutputs(p, q []float64, law runCountDistribution) func(epsilon float64) float64 {
	return newLocationBound(profileOfOutputs(p, q), profileOfOutputs(q, p), law).delta
}

// TestLocationBruteForce: no order of the outputs of small random mechanisms costs more than the
// bound.
func TestLocationBruteForce(t *testing.T) {
	if worst, where := largestExcess(1, privacytest.Few(100, 100_000), locationOfOutputs); worst > 1e-7 {
		t.Errorf("excess %g: %s", worst, where)
	}
}

// TestUnsoundLocationIsCaught: the brute force finds bounds that are wrong in the ways in
// which they could be.
func TestUnsoundLocationIsCaught(t *testing.T) {
	for name, bound := range map[string]func(p, q []float64, law runCountDistribution) func(float64) float64{
		"u in the place of β(u)": func(p, q []float64, law runCountDistribution) func(float64) float64 {
			l := newLocationBound(profileOfOutputs(p, q), profileOfOutputs(q, p), law)
			var lines []selectionLine
			for _, u := range l.pair.U {
				value, _ := law.at(u)
				lines = append(lines, selectionLine{value, value})
			}
			l.hull = upperHull(lines)
			return l.delta
		},
		"one order of the data sets": func(p, q []float64, law runCountDistribution) func(float64) float64 {
			return locationOfOutputs(q, p, law)
		},
		"mass at infinity is lost": func(p, q []float64, law runCountDistribution) func(float64) float64 {
			l := newLocationBound(profileOfOutputs(p, q), profileOfOutputs(q, p), law)
			l.pair.Upper[0] = 0
			return l.delta
		},
		"chords below G": func(p, q []float64, law runCountDistribution) func(float64) float64 {
			l := newLocationBound(profileOfOutputs(p, q), profileOfOutputs(q, p), law)
			l.hull = []selectionLine{l.hull[0], l.hull[len(l.hull)-1]}
			return l.delta
		},
		"the candidate alone": func(p, q []float64, _ runCountDistribution) func(float64) float64 {
			return locationOfOutputs(p, q, binomialCount{1, 1})
		},
	} {
		if worst, _ := largestExcess(2, 40, bound); !(worst > 1e-3) {
			t.Errorf("%s: not caught, excess %g", name, worst)
		}
	}
}

// TestLocationIsNearlyAttained: an attack on Gaussian candidates needs almost the bound. The score
// ranks outputs of low loss highest, the set T, and next those of high loss, the set S. The
// probabilities of S on the two data sets are a lower bound on ε.
func TestLocationIsNearlyAttained(t *testing.T) {
	const mu, delta = 0.25, 1e-6
	for name, tc := range map[string]struct {
		m    privacy.Mechanism
		most float64
	}{
		"logarithmic": {RepeatedSelection{privacy.Gaussian{Sensitivity: mu, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 0, 0.03}, 1.02},
		"geometric":   {RepeatedSelection{privacy.Gaussian{Sensitivity: mu, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 1, 0.1}, 1.02},
		"Poisson":     {PoissonSelection{privacy.Gaussian{Sensitivity: mu, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 10}, 1.03},
	} {
		law := tc.m.(selectionOfRuns).law()
		attack := func(epsilon float64) float64 { // δ
			var best float64
			for cut := -6.0; cut < 3; cut += 0.25 { // T is below, of N(μ, 1) against N(0, 1)
				for from := math.Max(cut, 0); from < 8; from += 0.1 { // S is above
					share := func(mean float64) float64 {
						top, s := gaussian.Interval(math.Inf(-1), cut-mean, math.Inf(1)), gaussian.Interval(from-mean, math.Inf(1), math.Inf(1))
						return generating(law, 1-top-s, 1-top)
					}
					best = math.Max(best, share(mu)-math.Exp(epsilon)*share(0))
				}
			}
			return best
		}
		bound := epsilonOf(t, Location{}, tc.m, 1, delta).Epsilon
		if got := attack(bound); got > delta {
			t.Errorf("%s: an attack has delta %g at the bound %g", name, got, bound)
		}
		if got := attack(bound / tc.most); got < delta {
			t.Errorf("%s: the attack has delta %g only at %g, the bound is %g", name, got, bound/tc.most, bound)
		}
	}
}

// TestLocationMonotone: more candidates, a larger η and less noise cost more, and the cost is at
// least a candidate's.
func TestLocationMonotone(t *testing.T) {
	of := func(sigma, eta, mean float64) float64 {
		gamma, err := SelectionGamma(eta, mean)
		require.NoError(t, err)
		return epsilonOf(t, Location{UpperOnly: true}, RepeatedSelection{privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: sigma, Neighbours: privacy.AddRemove, PublicSize: false}, 200, eta, gamma}, 1, 1e-6).Epsilon
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for range privacytest.Few(2, 4) {
		sigma, eta, mean := 0.8+2*rng.Float64(), 2*rng.Float64()-0.5, 1.5+30*rng.Float64()
		base := of(sigma, eta, mean)
		one := epsilonOf(t, privacy.Exact{}, privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: sigma, Neighbours: privacy.AddRemove, PublicSize: false}, 200, 1e-6).Epsilon
		for name, other := range map[string]float64{
			"mean": of(sigma, eta, 1.2*mean), "eta": of(sigma, eta+0.2, mean), "noise": of(0.97*sigma, eta, mean),
		} {
			if !(other > base) || !(base > one) {
				t.Errorf("%s: %g at σ = %g, η = %g, mean %g, then %g; one candidate costs %g", name, base, sigma, eta, mean, other, one)
			}
		}
	}
}

// Noise and means beyond the range of floats give a bound that is infinite or safe, never 0.
func TestLocationExtremes(t *testing.T) {
	t.Parallel()
	settings := 0
	for _, sigma := range []float64{1e-300, 1e-100, 1e-12, 1e-4} {
		for _, base := range []privacy.Mechanism{privacy.FixedSizeGaussian{DatasetSize: 1000, BatchSize: 10, NoiseMultiplier: sigma}, privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: sigma, Neighbours: privacy.AddRemove, PublicSize: false}, privacy.Gaussian{Sensitivity: 1, StandardDeviation: sigma, Neighbours: privacy.AddRemove}} {
			for _, m := range []privacy.Mechanism{
				RepeatedSelection{base, 10, 1, 1e-3}, RepeatedSelection{base, 10, 0, 1e-200}, PoissonSelection{base, 10, 1e300}, BinomialSelection{base, 10, 50, 0.5},
			} {
				for _, delta := range []float64{1e-6, 1e-300} {
					settings++
					if privacytest.Skips(settings, 11) {
						continue
					}
					if got := epsilonOf(t, Location{}, m, 1, delta); !(got.Epsilon > 1) {
						t.Errorf("%+v, delta %g: epsilon %g", m, delta, got.Epsilon)
					}
				}
			}
		}
	}
}

// BenchmarkLocation bounds a geometric search over runs of DP-SGD from the start.
func BenchmarkLocation(b *testing.B) {
	gamma, err := SelectionGamma(1, 32)
	require.NoError(b, err)
	m := RepeatedSelection{privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}, 1270, 1, gamma}
	for b.Loop() {
		curve, err := Location{}.Curve(m)
		require.NoError(b, err)
		require.NoError(b, require.ErrOf(curve.Epsilon(1, 1e-6)))
	}
}

// epsilonOf returns a guarantee.
func epsilonOf(t testing.TB, a privacy.Accountant, m privacy.Mechanism, steps int64, delta float64) privacy.Guarantee {
	t.Helper()
	g, err := privacy.Epsilon(a, m, steps, delta)
	require.NoError(t, err)
	return g
}
