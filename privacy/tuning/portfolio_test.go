package tuning

import (
	"fmt"
	"math"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// The candidate that makes k independent draws costs the mean, over all k-tuples of mechanisms, of what
// their compositions cost: the composition of a mixture k times is the mixture of the compositions.
func TestPortfolioIsMeanOfCompositions(t *testing.T) {
	mus := []float64{0.2, 0.5, 1.1}
	weights := []float64{5, 3, 2}
	choices := make([]Choice, len(mus))
	for i, mu := range mus {
		choices[i] = Choice{privacy.Gaussian{Sensitivity: 1, StandardDeviation: 1 / mu, Neighbours: privacy.ReplaceOne}, 1, weights[i]}
	}
	mixture, err := NewMixture(choices, nil)
	require.NoError(t, err)
	// mean returns the mean of the profiles of the compositions of k draws, which are Gaussian.
	var mean func(k int, squares, probability, epsilon float64) float64
	mean = func(k int, squares, probability, epsilon float64) float64 {
		if k == 0 {
			return probability * gaussianDelta(math.Sqrt(squares), epsilon)
		}
		sum := 0.0
		for i, mu := range mus {
			sum += mean(k-1, squares+mu*mu, probability*weights[i]/10, epsilon)
		}
		return sum
	}
	const delta = 1e-6
	for _, k := range []int64{1, 2, 3, 5} {
		low, high := 0.0, 50.0
		for range 80 {
			if middle := 0.5 * (low + high); mean(int(k), 0, 1, middle) > delta {
				low = middle
			} else {
				high = middle
			}
		}
		curve, err := privacy.Exact{}.Curve(mixture)
		require.NoError(t, err)
		g, err := curve.Epsilon(k, delta)
		require.NoError(t, err)
		if !(g.Epsilon >= high*(1-1e-9)) || g.Epsilon > high*1.005 {
			t.Errorf("%d draws: ε = %g, want %g, at most 0.5 %% more", k, g.Epsilon, high)
		}
	}
}

// gaussianDelta returns δ(ε) of N(0, 1) against N(mu, 1).
func gaussianDelta(mu, epsilon float64) float64 {
	phi := func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }
	return phi(mu/2-epsilon/mu) - math.Exp(epsilon)*phi(-mu/2-epsilon/mu)
}

// The best of a random number of portfolios costs what the best of as many compositions of a
// single configuration costs, if the list has no other. The example is that of docs/reference/publishing.md.
func TestBestPortfolio(t *testing.T) {
	run := privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}
	const steps, delta = 1270, 1e-6
	one, err := NewMixture([]Choice{{run, steps, 1}}, nil)
	require.NoError(t, err)
	for i, tc := range []struct {
		mean     float64
		k        int64
		coarsely float64 // by another program with a coarse grid, up to 3 % high
	}{
		{8, 2, 0.644}, {32, 2, 0.776}, {8, 4, 0.922}, {32, 4, 1.107}, {8, 8, 1.325}, {32, 8, 1.585},
	} {
		if privacytest.Skips(i, 3) {
			continue
		}
		t.Run(fmt.Sprintf("%d of %g", tc.k, tc.mean), func(t *testing.T) {
			gamma, err := SelectionGamma(1, tc.mean)
			require.NoError(t, err)
			exact, err := privacy.Epsilon(Location{UpperOnly: true}, RepeatedSelection{Base: run, Steps: steps * tc.k, Eta: 1, Gamma: gamma}, 1, delta)
			require.NoError(t, err)
			listed, err := privacy.Epsilon(Location{UpperOnly: true}, RepeatedSelection{Base: one, Steps: tc.k, Eta: 1, Gamma: gamma}, 1, delta)
			require.NoError(t, err)
			t.Logf("exact %.5f, by the mixture %.5f", exact.Epsilon, listed.Epsilon)
			if !(listed.Epsilon >= exact.Epsilon) || listed.Epsilon > 1.005*exact.Epsilon {
				t.Errorf("ε = %g by the mixture, %g exactly", listed.Epsilon, exact.Epsilon)
			}
			if exact.Epsilon > tc.coarsely || exact.Epsilon < 0.97*tc.coarsely {
				t.Errorf("ε = %g, want at most %g, and at most 3 %% less", exact.Epsilon, tc.coarsely)
			}
		})
	}
}

// Ten values of a curve, each an average over 16,281 test records, with noise once each. The numbers come from
// another program, which rounds to three digits.
func TestChoiceAmongCurves(t *testing.T) {
	for _, tc := range []struct{ noise, eta, want float64 }{
		{0.005, 0, 0.236}, {0.005, 1, 0.259}, {0.002, 0, 0.612}, {0.002, 1, 0.671},
	} {
		gamma, err := SelectionGamma(tc.eta, 32)
		require.NoError(t, err)
		values := privacy.Gaussian{Sensitivity: math.Sqrt(10) / 16281, StandardDeviation: tc.noise, Neighbours: privacy.ReplaceOne}
		g, err := privacy.Epsilon(Location{UpperOnly: true}, RepeatedSelection{Base: values, Steps: 1, Eta: tc.eta, Gamma: gamma}, 1, 1e-6)
		if err != nil || math.Abs(g.Epsilon-tc.want) > 1e-3 {
			t.Errorf("noise %g, η = %g: ε = %g, want %g; %v", tc.noise, tc.eta, g.Epsilon, tc.want, err)
		}
	}
}
