package stopping

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/testsize"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/tuning"
)

// numbersOfRuns draw distributions of every kind, with means up to some 1e11.
var numbersOfRuns = map[string]func(*testing.T, *rand.Rand) Distribution{
	"logarithmic":  func(t *testing.T, rng *rand.Rand) Distribution { return withMean(t, rng, 0, 25) },
	"geometric":    func(t *testing.T, rng *rand.Rand) Distribution { return withMean(t, rng, 1, 25) },
	"negative eta": func(t *testing.T, rng *rand.Rand) Distribution { return withMean(t, rng, -0.99*rng.Float64(), 25) },
	"positive eta": func(t *testing.T, rng *rand.Rand) Distribution {
		return withMean(t, rng, math.Exp(-5+10*rng.Float64()), 25)
	},
	"Poisson": func(_ *testing.T, rng *rand.Rand) Distribution { return Poisson{math.Exp(-4 + 25*rng.Float64())} },
	"fixed": func(_ *testing.T, rng *rand.Rand) Distribution {
		return Binomial{1 + int64(math.Exp(20*rng.Float64())), 1}
	},
	"binomial": func(_ *testing.T, rng *rand.Rand) Distribution {
		return Binomial{1 + int64(math.Exp(25*rng.Float64())), math.Exp(-8 * rng.Float64())}
	},
	"capped": func(t *testing.T, rng *rand.Rand) Distribution {
		d := withMean(t, rng, []float64{0, 1, -0.5, 5 * rng.Float64()}[rng.IntN(4)], 7)
		return Capped{d, min(tuning.MaxMostRuns, 1+int64(d.MeanRuns()*math.Exp(2*rng.Float64())))}
	},
}

// withMean returns a distribution of shape eta whose mean is at most 1 + e^most, or a smaller one that it reaches.
func withMean(t *testing.T, rng *rand.Rand, eta, most float64) TruncatedNegativeBinomial {
	t.Helper()
	for mean := math.Exp(-3 + (most+3)*rng.Float64()); mean > 1e-9; mean /= 10 {
		if d, err := ByMean(eta, 1+mean); err == nil {
			return d
		}
	}
	t.Fatalf("eta = %g: no mean is in reach", eta)
	return TruncatedNegativeBinomial{}
}

// attackedRun draws one run of a candidate, and how often it runs: more than once in a portfolio.
func attackedRun(rng *rand.Rand, i int) (base privacy.Mechanism, steps int64) {
	switch i % 500 {
	case 100:
		return privacy.FixedSizeGaussian{DatasetSize: 1000 + rng.Int64N(1e5), BatchSize: 1 + rng.Int64N(900), NoiseMultiplier: 0.5 + 4*rng.Float64()}, 1 + rng.Int64N(1000)
	case 101:
		return privacy.PoissonGaussian{SamplingProbability: math.Exp(-8 * rng.Float64()), NoiseMultiplier: 0.5 + 4*rng.Float64(), Neighbours: privacy.AddRemove}, 1 + rng.Int64N(1000)
	case 102:
		return privacy.Laplace{Sensitivity: 1, Scale: math.Exp(-2 + 4*rng.Float64()), Neighbours: privacy.AddRemove}, 1 + rng.Int64N(20)
	case 103:
		return privacy.RandomizedResponse{Epsilon: 5 * rng.Float64(), Categories: 2 + rng.Int64N(4)}, 1 + rng.Int64N(20)
	default: // μ of 0.002 to 36: ε of one run up to 700
		return privacy.Gaussian{Sensitivity: math.Exp(-6.2 + 9.8*rng.Float64()), StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1 + rng.Int64N(4)*rng.Int64N(2)
	}
}

// TestAttackBelowBound: the attack on random searches is finite and not above the bound, for ε from 0.01 to 700 and
// beyond, δ from 1e-300 to 0.5 and distributions of every kind. Neither is EpsilonLower.
func TestAttackBelowBound(t *testing.T) {
	searches := testsize.Pick(30, 10_000) // of each kind; so many take minutes
	for kind, draw := range numbersOfRuns {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(39, 3))
			shown := 0
			for i := range searches {
				base, steps := attackedRun(rng, i)
				m := draw(t, rng).Mechanism(base, steps)
				delta := math.Pow(10, -0.3-[]float64{20, 299.7}[i%2]*rng.Float64())
				bound, err := privacy.Epsilon(tuning.Location{UpperOnly: true}, m, 1, delta)
				require.NoError(t, err)
				attack, err := tuning.Location{}.Attack(m, delta)
				require.NoError(t, err)
				if !(attack >= 0 && attack <= bound.Epsilon) || math.IsInf(attack, 1) {
					t.Errorf("%+v, delta %g: attack %.12g, bound %.12g", m, delta, attack, bound.Epsilon)
				}
				if attack > 0.4*math.Min(bound.Epsilon, 700) {
					shown++
				}
				if i%10 > 0 {
					continue
				}
				g, err := privacy.Epsilon(tuning.Location{}, m, 1, delta)
				require.NoError(t, err)
				for _, w := range g.Warnings {
					if w.Code == privacy.WarnContradiction {
						t.Errorf("%+v, delta %g: %s", m, delta, w.Message)
					}
				}
			}
			if shown < searches/3 {
				t.Errorf("only %d of %d attacks show half of the bound", shown, searches)
			}
		})
	}
}

// strongest checks the searches of a file with the strongest attacks on them.
func strongest(t *testing.T, check func(m privacy.Mechanism, delta, attack float64)) {
	t.Helper()
	numbers, _ := readTable(t, "strongest_attacks.csv")
	for _, row := range numbers {
		base := privacy.Gaussian{Sensitivity: row["mu"], StandardDeviation: 1, Neighbours: privacy.AddRemove}
		var d Distribution = TruncatedNegativeBinomial{row["eta"], row["gamma"]}
		switch {
		case row["mean"] > 0:
			d = Poisson{row["mean"]}
		case row["tries"] > 0:
			d = Binomial{int64(row["tries"]), row["success"]}
		}
		check(d.Mechanism(base, 1), row["delta"], row["epsilon"])
	}
}

// TestStrongestAttacks: no attack is above the strongest one, and no bound below it. Where ε is in (0.05, 200) and E[K]
// below 100 the attack attains 0.8 of it at least.
func TestStrongestAttacks(t *testing.T) {
	type selection interface{ MeanRuns() float64 }
	strongest(t, func(m privacy.Mechanism, delta, epsilon float64) {
		bound, err := privacy.Epsilon(tuning.Location{UpperOnly: true}, m, 1, delta)
		require.NoError(t, err)
		attack, err := tuning.Location{}.Attack(m, delta)
		require.NoError(t, err)
		mean := m.(selection).MeanRuns()
		if attack > math.Max(0, epsilon)*(1+1e-9) || bound.Epsilon < epsilon || epsilon > 0.05 && epsilon < 200 && mean < 100 && attack < 0.8*epsilon {
			t.Errorf("%+v, mean %g, delta %g: attack %.9g, strongest %.9g, bound %.9g", m, mean, delta, attack, epsilon, bound.Epsilon)
		}
	})
}

// TestLargeMeans compares E[K] of truncated negative binomial distributions, and the shares of the best that they
// contain, with values of mpmath at 60 digits: means up to 1e30, of shapes of both signs.
func TestLargeMeans(t *testing.T) {
	numbers, _ := readTable(t, "large_means.csv")
	for _, row := range numbers {
		d := TruncatedNegativeBinomial{row["eta"], row["gamma"]}
		for name, pair := range map[string][2]float64{
			"mean": {d.MeanRuns(), row["mean"]}, "P(1)": {d.Probability(1), row["p1"]}, "best share of 1e-9": {d.ContainsTop(1e-9), row["top"]},
		} {
			if got, want := pair[0], pair[1]; !(math.Abs(got-want) <= 1e-12*want) {
				t.Errorf("%+v: %s %.17g, want %.17g", d, name, got, want)
			}
		}
	}
}
