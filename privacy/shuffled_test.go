package privacy

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestShuffledIsGaussianPerEpoch: T epochs cost what T releases with the full noise
// do, of which the exact ε is known (Balle and Wang, 2018).
func TestShuffledIsGaussianPerEpoch(t *testing.T) {
	m := ShuffledGaussian{NoiseMultiplier: 4}
	for _, a := range []Accountant{Exact{}, GDP{}, Tightest{}} {
		got := epsilonOf(t, a, m, 9, 1e-5)
		want := epsilonOf(t, GDP{}, Gaussian{0.75, 1, ReplaceOne}, 1, 1e-5) // μ = √9/4
		if privacytest.RelErr(got.Epsilon, want.Epsilon) > 1e-12 || got.Adjacency != ReplaceOne || len(got.Assumptions) == 0 {
			t.Errorf("%s: %+v, want epsilon %v", a.Name(), got, want.Epsilon)
		}
	}
	if got := m.RenyiCurve().RDP(3); privacytest.RelErr(got, 3.0/32) > 1e-15 {
		t.Errorf("divergence of order 3: %v", got)
	}
	for _, sigma := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if fields := FieldErrors((ShuffledGaussian{sigma}).Validate()); len(fields) != 1 || fields[0].Field != "noise_multiplier" {
			t.Errorf("noise multiplier %g: %v", sigma, fields)
		}
	}
}

// TestShufflingIsNeverBetterThanFixedSize: what is claimed for one epoch of shuffled
// batches is at least what holds for as many independent ones.
func TestShufflingIsNeverBetterThanFixedSize(t *testing.T) {
	for _, sigma := range []float64{0.7, 1, 3, 10} {
		shuffled := epsilonOf(t, Exact{}, ShuffledGaussian{sigma}, 5, 1e-6)
		sampled := epsilonOf(t, Exact{}, FixedSizeGaussian{1000, 10, sigma}, 500, 1e-6)
		if shuffled.Epsilon < sampled.EpsilonLower {
			t.Errorf("noise multiplier %g: shuffled %g, sampled at least %g", sigma, shuffled.Epsilon, sampled.EpsilonLower)
		}
	}
}
