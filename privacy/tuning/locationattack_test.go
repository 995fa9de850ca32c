package tuning

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/internal/profile"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestLocationAttackValues compares with values of an independent program (numpy, discretised losses), for a
// run of DP-SGD and δ = 1e-6.
func TestLocationAttackValues(t *testing.T) {
	base := privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}
	const steps, delta = 1270, 1e-6
	for name, tc := range map[string]struct {
		law  func() privacy.Mechanism
		want float64 // 0 if not known
		most float64 // of the bound, relative to the attack
	}{
		"logarithmic 10":         {func() privacy.Mechanism { return repeated(t, base, steps, 0, 10) }, 0.431, 1.02},
		"logarithmic 32":         {func() privacy.Mechanism { return repeated(t, base, steps, 0, 32) }, 0.484, 1.02},
		"logarithmic 64":         {func() privacy.Mechanism { return repeated(t, base, steps, 0, 64) }, 0.513, 1.02},
		"geometric 10":           {func() privacy.Mechanism { return repeated(t, base, steps, 1, 10) }, 0.454, 1.02},
		"geometric 32":           {func() privacy.Mechanism { return repeated(t, base, steps, 1, 32) }, 0.530, 1.02},
		"geometric 64":           {func() privacy.Mechanism { return repeated(t, base, steps, 1, 64) }, 0.574, 1.02},
		"geometric 32, capped":   {func() privacy.Mechanism { return capped(t, base, steps, 1, 32, 128) }, 0, 1.02},
		"negative binomial, ½":   {func() privacy.Mechanism { return repeated(t, base, steps, 0.5, 32) }, 0, 1.02},
		"negative binomial, 2":   {func() privacy.Mechanism { return repeated(t, base, steps, 2, 32) }, 0, 1.02},
		"Poisson 10":             {func() privacy.Mechanism { return PoissonSelection{base, steps, 10} }, 0.575, 1.02},
		"Poisson 32":             {func() privacy.Mechanism { return PoissonSelection{base, steps, 32} }, 0, 1.2},
		"one candidate, exactly": {func() privacy.Mechanism { return BinomialSelection{base, steps, 1, 1} }, 0.3037128, 1.001},
	} {
		m := tc.law()
		attack, err := Location{}.Attack(m, delta)
		require.NoError(t, err)
		g := epsilonOf(t, Location{}, m, 1, delta)
		if attack > g.Epsilon || g.Epsilon > tc.most*attack {
			t.Errorf("%s: attack %.5f, bound %.5f", name, attack, g.Epsilon)
		}
		if tc.want > 0 && privacytest.RelErr(attack, tc.want) > 3e-3 {
			t.Errorf("%s: attack %.5f, want %.4f", name, attack, tc.want)
		}
		if one := epsilonOf(t, privacy.Exact{}, base, steps, delta).EpsilonLower; g.EpsilonLower > attack || g.EpsilonLower < one*0.9999 {
			t.Errorf("%s: lower bound %.5f, of one run %.5f, attack %.5f", name, g.EpsilonLower, one, attack)
		}
	}
}

// repeated returns a selection with a mean number of candidates.
func repeated(t *testing.T, base privacy.Mechanism, steps int64, eta, mean float64) RepeatedSelection {
	t.Helper()
	gamma, err := SelectionGamma(eta, mean)
	require.NoError(t, err)
	return RepeatedSelection{base, steps, eta, gamma}
}

// capped returns such a selection given a largest number of candidates.
func capped(t *testing.T, base privacy.Mechanism, steps int64, eta, mean float64, most int64) CappedSelection {
	t.Helper()
	m := repeated(t, base, steps, eta, mean)
	return CappedSelection{base, steps, eta, m.Gamma, most}
}

// TestLocationAttackOnGaussians: for all truncated negative binomial distributions the attack on Gaussian
// candidates attains nearly the bound. Their pair is attained, so that it is EpsilonLower.
func TestLocationAttackOnGaussians(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, eta := range []float64{0, 0.5, 1, 2} {
		for range 3 {
			mu, mean := math.Exp(-2.5+3*rng.Float64()), math.Exp(1+4*rng.Float64())
			delta := math.Pow(10, -5-4*rng.Float64())
			base := privacy.Gaussian{Sensitivity: mu, StandardDeviation: 1, Neighbours: privacy.AddRemove}
			for _, m := range []privacy.Mechanism{repeated(t, base, 1, eta, mean), capped(t, base, 1, eta, mean, int64(3*mean))} {
				g := epsilonOf(t, Location{}, m, 1, delta)
				if g.EpsilonLower > g.Epsilon || g.Epsilon > 1.02*g.EpsilonLower {
					t.Errorf("%+v, delta %g: from %.5f to %.5f", m, delta, g.EpsilonLower, g.Epsilon)
				}
			}
		}
	}
}

// TestAttackIsAttained computes the probabilities of the sets in closed form: scores that prefer T, then S,
// have at least the ε that the attack on their profile claims, and the tests that the profile promises exist.
func TestAttackIsAttained(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for range privacytest.Few(3, 6) {
		mu, delta := math.Exp(-2+3*rng.Float64()), math.Pow(10, -1-6*rng.Float64())
		looseness := 1e-2 * rng.Float64() * float64(rng.IntN(2)) // of the profile's bounds
		p := newBoundedProfile(1e-3*delta, func(logDelta, side float64) (float64, bool) {
			return gaussian.Epsilon(mu, logDelta) * (1 + side*looseness*rng.Float64()), true
		})
		tests := p.tests()
		if looseness == 0 && len(tests) < attackNodes/2 {
			t.Errorf("μ = %g: only %d tests", mu, len(tests))
		}
		for _, test := range tests {
			// The most powerful test is x > τ with Φ(−τ) = q.
			if power := gaussianPower(mu, test.q.Z); test.p.Z > power*(1+1e-9) {
				t.Errorf("μ = %g: a test with q = %g has p = %g, the largest is %g", mu, test.q.Z, test.p.Z, power)
			}
		}
		for name, law := range testLaws(rng) {
			a := selectionAttack{law: law, delta: delta, forward: p, backward: p}
			bound := newGaussianLocation(mu, delta, 160, law).epsilon(delta)
			if got := a.strongest(); got > bound*(1+1e-9) {
				t.Errorf("μ = %g, delta %g, %s: attack %g, bound %g", mu, delta, name, got, bound)
			}
		}
	}
}

// gaussianPower returns the largest probability under N(μ, 1) of a set of probability q under N(0, 1).
func gaussianPower(mu, q float64) float64 {
	lo, hi := -40.0, 40.0
	for range 200 {
		if mid := 0.5 * (lo + hi); normalAbove(mid) > q {
			lo = mid
		} else {
			hi = mid
		}
	}
	return normalAbove(lo - mu)
}

// normalAbove returns 1 − Φ(x).
func normalAbove(x float64) float64 { return 0.5 * math.Erfc(x/math.Sqrt2) }

// newGaussianLocation returns the bound for N(0, 1) against N(μ, 1) from a number of points of the profile
// down to a share of δ.
func newGaussianLocation(mu, delta float64, nodes int, law runCountDistribution) *locationBound {
	least := math.Max(profile.LeastDelta, locationTail*delta/math.Max(1, law.mean()))
	furthest := math.Sqrt(-math.Log(least))
	points := []profile.Point{{R: 0, Epsilon: 0, Delta: math.Erf(mu / (2 * math.Sqrt2))}}
	first := math.Sqrt(-math.Log(points[0].Delta))
	for i := 1; i <= nodes; i++ {
		r := first + (furthest-first)*float64(i)/float64(nodes)
		points = append(points, profile.Point{R: r, Epsilon: gaussian.Epsilon(mu, -r*r), Delta: math.Exp(-r * r)})
	}
	return newLocationBound(points, points, law)
}

// TestLocationGridRefinement: more points of the profile only lower the bound.
func TestLocationGridRefinement(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	for range 3 {
		mu, delta := math.Exp(-2+3*rng.Float64()), math.Pow(10, -2-6*rng.Float64())
		for name, law := range testLaws(rng) {
			last := math.Inf(1)
			for _, nodes := range []int{10, 20, 40, 80, 160} {
				got := newGaussianLocation(mu, delta, nodes, law).epsilon(delta)
				if got > last*(1+1e-6)+1e-9 {
					t.Errorf("μ = %g, delta %g, %s: %g with %d points, %g with half of them", mu, delta, name, got, nodes, last)
				}
				last = got
			}
		}
	}
}

// TestLocationBelowProfileBound: the bound is never above the simpler one by the profile alone (Koskela, Redberg
// and Wang, "Privacy profiles for private selection", 2024): u > 0 and u' satisfy
// 1 − u' <= e^ε₁(1 − u) + δ(ε₁), so that φ′(u)/φ′(u') has a bound.
func TestLocationBelowProfileBound(t *testing.T) {
	profile := func(mu, epsilon float64) float64 {
		return normalAbove(epsilon/mu-mu/2) - math.Exp(epsilon)*normalAbove(epsilon/mu+mu/2)
	}
	least := func(mean, mu, delta float64, shift func(first, deltaFirst float64) float64) float64 {
		best := math.Inf(1)
		base := gaussian.Epsilon(mu, math.Log(delta/mean))
		for first := 0.0; first < 12*mu; first += 0.02 * mu {
			best = math.Min(best, base+shift(first, profile(mu, first)))
		}
		return best
	}
	for _, mu := range []float64{0.1, 0.5, 1.5} {
		base := privacy.Gaussian{Sensitivity: mu, StandardDeviation: 1, Neighbours: privacy.AddRemove}
		for _, delta := range []float64{1e-8, 1e-3} {
			for _, eta := range []float64{0, 1, 2} {
				for _, mean := range []float64{3, 30} {
					m := repeated(t, base, 1, eta, mean)
					simple := least(m.MeanRuns(), mu, delta, func(first, at float64) float64 {
						return (eta + 1) * math.Log(math.Exp(first)+at*(1-m.Gamma)/m.Gamma)
					})
					if got := epsilonOf(t, Location{}, m, 1, delta).Epsilon; got > simple {
						t.Errorf("μ = %g, delta %g, η = %g, mean %g: %g, simpler bound %g", mu, delta, eta, mean, got, simple)
					}
				}
			}
			const mean = 10
			simple := least(mean, mu, delta, func(first, at float64) float64 { return mean * (math.Expm1(first) + at) })
			if got := epsilonOf(t, Location{}, PoissonSelection{base, 1, mean}, 1, delta).Epsilon; got > simple {
				t.Errorf("μ = %g, delta %g, Poisson: %g, simpler bound %g", mu, delta, got, simple)
			}
		}
	}
}

// TestSelectionOfOne: as the mean falls to 1, and exactly at 1, a selection costs what its candidate does.
func TestSelectionOfOne(t *testing.T) {
	base := privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: 1.2, Neighbours: privacy.AddRemove, PublicSize: false}
	const steps, delta = 300, 1e-6
	one := epsilonOf(t, privacy.Exact{}, base, steps, delta).Epsilon
	for name, m := range map[string]privacy.Mechanism{
		"exactly": BinomialSelection{base, steps, 1, 1}, "at most": CappedSelection{base, steps, 1, 0.1, 1},
		"nearly": repeated(t, base, steps, 1, 1+1e-7), "logarithmic": repeated(t, base, steps, 0, 1+1e-7),
	} {
		if got := epsilonOf(t, Location{UpperOnly: true}, m, 1, delta).Epsilon; got < one*(1-1e-9) || got > one*(1+2e-4) {
			t.Errorf("%s one: %.6f, the candidate %.6f", name, got, one)
		}
	}
}

// countTable is a distribution on 1, 2, …, by its probabilities.
type countTable []float64

func (c countTable) mean() float64 {
	value, _ := c.at(at(1))
	return value
}

func (c countTable) at(s profile.Split) (value, slope float64) {
	z := s.Z
	for i, probability := range slices.Backward(c) { // Horner's rule for Σ k·c_k·z^{k−1}, and its derivative
		slope = slope*z + value
		value = value*z + float64(i+1)*probability
	}
	return value, slope
}

// given is the distribution of K given that K <= N, term by term.
func given(law negativeBinomial, most int64) countTable {
	c, total := make(countTable, most), 0.0
	scale, _ := math.Lgamma(1 + law.eta)
	for i := range c { // logarithms
		k := float64(i + 1)
		up, _ := math.Lgamma(k + law.eta)
		down, _ := math.Lgamma(k + 1)
		c[i] = up - down - scale + (k-1)*math.Log1p(-law.gamma)
	}
	largest := slices.Max(c)
	for i := range c {
		c[i] = math.Exp(c[i] - largest)
		total += c[i]
	}
	for i := range c {
		c[i] /= total
	}
	return c
}

// overflowing are numbers of runs for which γ^−(η+2), or the sum of the terms relative to the first, is beyond
// the range of floats.
var overflowing = []struct {
	law  negativeBinomial
	most int64
}{
	{negativeBinomial{40, 1e-8}, 64}, {negativeBinomial{100, 1e-4}, 128}, {negativeBinomial{0.5, 1e-300}, 100},
	{negativeBinomial{900, 1e-3}, MaxMostRuns}, {negativeBinomial{999, 0.6}, MaxMostRuns}, {negativeBinomial{1e5, 0.9}, 3000},
}

// TestCappedMatchesItsTerms compares the capped distribution with the sums over its probabilities.
func TestCappedMatchesItsTerms(t *testing.T) {
	overflows := 0
	check := func(law negativeBinomial, most int64, v float64) {
		if -(law.eta+2)*math.Log(law.gamma+(1-law.gamma)*v) > mostBetaLog {
			overflows++
		}
		const tiny = 1e-250
		value, slope := newCappedNegativeBinomial(law, most).at(profile.Split{Z: 1 - v, V: v})
		wantValue, wantSlope := given(law, most).at(profile.Split{Z: 1 - v, V: v})
		if math.Abs(value-wantValue) > countRounding*wantValue+tiny || math.Abs(slope-wantSlope) > countRounding*wantSlope+tiny ||
			math.IsNaN(value+slope) || most == 1 && slope != 0 {
			t.Errorf("%+v, at most %d, at %g: %.12g and %.12g, want %.12g and %.12g", law, most, v, value, slope, wantValue, wantSlope)
		}
	}
	for _, tc := range overflowing {
		for _, v := range []float64{0, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 1} {
			check(tc.law, tc.most, v)
		}
	}
	rng := rand.New(rand.NewPCG(5, 12))
	for i := range 600 {
		law := negativeBinomial{eta: 0.999*math.Expm1(math.Log(100)*rng.Float64()) - 0.99*rng.Float64(), gamma: math.Exp(-8 * rng.Float64())}
		most := min(MaxMostRuns, 1+int64(math.Exp(10*rng.Float64())))
		v := rng.Float64()
		switch rng.IntN(4) {
		case 0:
			v = math.Exp(-20 * v)
		case 1:
			v = float64(rng.IntN(2))
		}
		if i%3 != 0 { // factors overflow in about every second of these
			law.eta, law.gamma, v = math.Exp(1+7*rng.Float64()), math.Exp(-40*rng.Float64()), math.Exp(-40*rng.Float64())
		}
		check(law, most, v)
	}
	if overflows < 200 {
		t.Errorf("only %d cases in which factors overflow", overflows)
	}
}

// TestCappedBeyondFactors: the ε of capped selections is what the sums over the probabilities give where the
// factors of the closed form overflow.
func TestCappedBeyondFactors(t *testing.T) {
	for _, tc := range overflowing[:3] {
		m := CappedSelection{privacy.Gaussian{Sensitivity: 1, StandardDeviation: 10, Neighbours: privacy.AddRemove}, 1, tc.law.eta, tc.law.gamma, tc.most}
		got := epsilonOf(t, Location{}, m, 1, 1e-6).Epsilon
		if want := independentLocation(0.1, 1e-6, given(tc.law, tc.most)); got < want*(1-1e-5) || got > want*(1+2e-3) {
			t.Errorf("%+v, at most %d: epsilon %.5f, term by term %.5f", tc.law, tc.most, got, want)
		}
	}
}

// brokenLaw is a distribution with a wrong value and slope beyond 0.5.
type brokenLaw struct{ value, slope float64 }

func (brokenLaw) mean() float64 { return 4 }

func (l brokenLaw) at(s profile.Split) (value, slope float64) {
	if s.V < 0.5 {
		return binomialCount{4, 1}.at(s)
	}
	return l.value, l.slope
}

// TestLocationOfNoNumber: ε is infinite where φ′ or φ″ is no finite number. A mean that is none does not lower it.
func TestLocationOfNoNumber(t *testing.T) {
	for _, law := range []brokenLaw{{math.Inf(1), 0}, {math.NaN(), 0}, {0, math.Inf(1)}, {0, math.NaN()}} {
		if got := newGaussianLocation(0.1, 1e-6, 40, law).epsilon(1e-6); !math.IsInf(got, 1) {
			t.Errorf("%+v: epsilon %g", law, got)
		}
	}
	for _, m := range []RepeatedSelection{{privacy.Gaussian{Sensitivity: 1, StandardDeviation: 10, Neighbours: privacy.AddRemove}, 1, -0.99, 5e-324}, {privacy.Gaussian{Sensitivity: 1, StandardDeviation: 10, Neighbours: privacy.AddRemove}, 1, 1e300, 0.5}} {
		if got := epsilonOf(t, Location{UpperOnly: true}, m, 1, 1e-6).Epsilon; !(got >= 0.3) {
			t.Errorf("%+v: epsilon %g", m, got)
		}
	}
}

// atMost is the distribution of min(K, N).
func atMost(law negativeBinomial, most int64) countTable {
	conditional := given(law, most)
	// P(K = 1) = φ′(0).
	first, _ := law.at(at(0))
	c, sum := make(countTable, most), 0.0
	for i := range c {
		c[i] = conditional[i] / conditional[0] * first
		sum += c[i]
	}
	c[most-1] += 1 - sum
	return c
}

// TestSilentCapIsUnsound: an implementation that stops at N candidates and says nothing costs more than the
// distribution without the cap, which is too little to be counted: the exact attack shows it.
func TestSilentCapIsUnsound(t *testing.T) {
	const mu, delta = 0.5, 1e-6
	m := repeated(t, privacy.Gaussian{Sensitivity: mu, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 1, 10)
	law := m.law().(negativeBinomial)
	claim := newGaussianLocation(mu, delta, 640, law).epsilon(delta)
	for most, excess := range map[int64]float64{20: 0.0103, 50: 0.00012} {
		capped := atMost(law, most)
		if mean := law.mean() * (1 - math.Pow(1-law.gamma, float64(most))); privacytest.RelErr(capped.mean(), mean) > 1e-12 {
			t.Errorf("at most %d: mean %g, want %g", most, capped.mean(), mean) // of a geometric distribution
		}
		got := newGaussianLocation(mu, delta, 640, capped).epsilon(delta)
		if math.Abs(got/claim-1-excess) > 0.05*excess+2e-5 {
			t.Errorf("at most %d: %.5f, without a cap %.5f", most, got, claim)
		}
		if again := independentLocation(mu, delta, capped); got < again*(1-1e-5) || got > again*(1+2e-4) {
			t.Errorf("at most %d: %.6f, by quadrature %.6f", most, got, again)
		}
	}
	p := newBoundedProfile(1e-3*delta, func(logDelta, _ float64) (float64, bool) { return gaussian.Epsilon(mu, logDelta), true })
	attack := selectionAttack{law: atMost(law, 20), delta: delta, forward: p, backward: p}.strongest()
	if !(attack > claim) {
		t.Errorf("the attack shows %.5f, the claim is %.5f", attack, claim)
	}
	// Drawing K again is accounted for: it costs less.
	again := epsilonOf(t, Location{}, CappedSelection{privacy.Gaussian{Sensitivity: mu, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 1, law.gamma, 20}, 1, delta).Epsilon
	if !(again < claim) {
		t.Errorf("drawn again %.5f, without a cap %.5f", again, claim)
	}
}

// countedSearch runs a geometric search whose score ranks outputs below cut first, and outputs above from next. It
// reports how many candidates ran, and whether the best lies in the second set.
func countedSearch(rng *rand.Rand, candidate func() float64, gamma, cut, from float64) (runs int, hit bool) {
	top := false
	for {
		x := candidate()
		runs++
		top = top || x < cut
		hit = hit || x > from
		if rng.Float64() < gamma {
			return runs, hit && !top
		}
	}
}

// worstScore returns the sets of countedSearch that show the largest ε, in closed form. Above gives the probability of
// outputs above a value on the first or the second data set.
func worstScore(law runCountDistribution, delta float64, above func(x float64, second bool) float64) (cut, from, epsilon float64) {
	for c := -3.0; c < 1; c += 0.1 {
		for f := math.Max(c, 0); f < 4; f += 0.1 {
			share := func(second bool) float64 {
				top, s := 1-above(c, second), above(f, second)
				return generating(law, 1-top-s, 1-top)
			}
			if e := math.Log((share(false) - delta) / share(true)); e > epsilon {
				cut, from, epsilon = c, f, e
			}
		}
	}
	return cut, from, epsilon
}

// Parameters of the counted searches.
const (
	countedGamma = 0.1
	countedDelta = 1e-2
	countedRuns  = 300_000
)

// TestSelectionAudit counts outcomes of a geometric search with the worst score among Gaussian candidates: the
// bound holds, and what is shown is nearly all of it. More is shown if K is, and if candidates are made from
// what earlier ones gave. What accounting in wrong ways claims is less than what is shown.
func TestSelectionAudit(t *testing.T) {
	const mu = 0.5
	m := RepeatedSelection{privacy.Gaussian{Sensitivity: mu, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 1, countedGamma}
	claim := epsilonOf(t, Location{}, m, 1, countedDelta)
	law := m.law()
	cut, from, best := worstScore(law, countedDelta, func(x float64, second bool) float64 {
		if second {
			return normalAbove(x)
		}
		return normalAbove(x - mu)
	})
	if best > claim.Epsilon || claim.EpsilonLower < 0.99*best {
		t.Errorf("closed form %.4f, claim from %.4f to %.4f", best, claim.EpsilonLower, claim.Epsilon)
	}
	rng := rand.New(rand.NewPCG(61, 1))
	candidate := func(second bool) func() float64 {
		if second {
			return rng.NormFloat64
		}
		return func() float64 { return mu + rng.NormFloat64() }
	}
	bestInSet := func(second bool) bool {
		_, hit := countedSearch(rng, candidate(second), countedGamma, cut, from)
		return hit
	}
	privacytest.Audit{
		Epsilon: claim.Epsilon, Delta: countedDelta, Runs: countedRuns, Power: 0.8, Event: bestInSet,
		Broken: func(second bool) bool { // K is shown
			runs, hit := countedSearch(rng, candidate(second), countedGamma, -0.8, 2.2)
			return hit && runs >= 12
		},
	}.Check(t)
	fromEarlier := privacytest.EpsilonLower(countedRuns, countedDelta, func(second bool) bool {
		// The last candidate has the best score, and its configuration is the sum of the results before.
		x, loss := candidate(second), 0.0
		for {
			loss += mu * (x() - mu/2)
			if rng.Float64() < countedGamma {
				return loss > 3
			}
		}
	})
	if !(fromEarlier > claim.Epsilon) {
		t.Errorf("candidates from earlier results: not caught, claim %.3f, attack %.3f", claim.Epsilon, fromEarlier)
	}
	shown := privacytest.EpsilonLower(countedRuns, countedDelta, bestInSet)
	for name, wrong := range map[string]float64{
		// ∫ sup[φ′(u) − xφ′(u)]₊ = E[K]·[1 − x]₊
		"u in the place of β(u)": gaussian.Epsilon(mu, math.Log(countedDelta/law.mean())),
		"the candidate alone":    gaussian.Epsilon(mu, math.Log(countedDelta)),
	} {
		if !(shown > wrong) {
			t.Errorf("%s: not caught, claim %.3f, attack %.3f", name, wrong, shown)
		}
	}
}

// TestSelectionAuditBothOrders: a record that is added shows less than one that is removed. What the accounting of the
// former alone claims is less than what counting shows of the latter.
func TestSelectionAuditBothOrders(t *testing.T) {
	base := privacy.PoissonGaussian{SamplingProbability: 0.3, NoiseMultiplier: 0.7, Neighbours: privacy.AddRemove, PublicSize: false}
	m := RepeatedSelection{base, 1, 1, countedGamma}
	claim := epsilonOf(t, Location{}, m, 1, countedDelta)
	// The profiles: (1−q)N(0) + qN(1) against N(0), x > τ, and the reverse, x < τ, where the ratio of densities is e^{±ε}.
	q, z := base.SamplingProbability, base.NoiseMultiplier
	var removed, added []profile.Point
	for epsilon := 0.0; epsilon < 12; epsilon += 0.02 {
		tau := 0.5 + z*z*math.Log1p(math.Expm1(epsilon)/q)
		without := normalAbove(tau / z)
		removed = append(removed, profile.Point{R: 0, Epsilon: epsilon, Delta: (1-q)*without + q*normalAbove((tau-1)/z) - math.Exp(epsilon)*without})
		delta := 0.0
		if e := math.Expm1(-epsilon) / q; e > -1 {
			tau = 0.5 + z*z*math.Log1p(e)
			without = normalAbove(-tau / z)
			delta = without - math.Exp(epsilon)*((1-q)*without+q*normalAbove((1-tau)/z))
		}
		added = append(added, profile.Point{R: 0, Epsilon: epsilon, Delta: delta})
	}
	wrong := newLocationBound(added, removed, m.law()).epsilon(countedDelta)
	right := newLocationBound(removed, added, m.law()).epsilon(countedDelta)
	cut, from, _ := worstScore(m.law(), countedDelta, func(x float64, second bool) float64 {
		without := normalAbove(x / z)
		if second {
			return without
		}
		return (1-q)*without + q*normalAbove((x-1)/z)
	})
	rng := rand.New(rand.NewPCG(61, 2))
	shown := privacytest.EpsilonLower(countedRuns, countedDelta, func(second bool) bool {
		_, hit := countedSearch(rng, func() float64 {
			x := z * rng.NormFloat64()
			if !second && rng.Float64() < q {
				x++
			}
			return x
		}, countedGamma, cut, from)
		return hit
	})
	t.Logf("attack %.3f, bound %.3f, claim %.3f, of the other order %.3f", shown, right, claim.Epsilon, wrong)
	if !(wrong < shown && shown < claim.Epsilon) || math.Abs(claim.Epsilon-right) > 0.01*right { // right is of coarser points
		t.Error("want them to rise from the other order to the claim, which is the bound")
	}
}
