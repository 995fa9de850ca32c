package correlated

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// One band is DP-SGD on Poisson samples; the more ε, the less sampling is worth against cancelling noise.
func TestPlan(t *testing.T) {
	plan := Plan{Records: 30000, Lot: 300, Steps: 400, Delta: 1e-5, Neighbours: privacy.AddRemove, Objective: LastError}
	bands := 0
	for _, epsilon := range []float64{0.3, 8} {
		plan.Epsilon = epsilon
		best, err := plan.Choose(t.Context(), 1, 4, 16, 1000)
		require.NoError(t, err)
		if best.Guarantee.Epsilon > epsilon || best.Guarantee.Epsilon < 0.999*epsilon {
			t.Errorf("epsilon %g, want %g", best.Guarantee.Epsilon, epsilon)
		}
		single, err := plan.Choose(t.Context(), 1)
		require.NoError(t, err)
		noise, _, err := privacy.CalibrateNoise(privacy.Exact{}, func(noise float64) privacy.Mechanism {
			return privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: noise, Neighbours: privacy.AddRemove}
		}, 400, epsilon, 1e-5)
		if err != nil || math.Abs(single.Error-20*noise) > 1e-9*noise {
			t.Errorf("one band: error %g, %v, want 20 times %g", single.Error, err, noise)
		}
		if best.Error > single.Error || len(best.Column) < bands {
			t.Errorf("epsilon %g: %d bands, error %g, after %d bands; one band %g", epsilon, len(best.Column), best.Error, bands, single.Error)
		}
		bands = len(best.Column)
		t.Logf("epsilon %g: %d bands, error %.4g, one band %.4g", epsilon, bands, best.Error, single.Error)
	}
	if bands == 1 {
		t.Error("one band is best at epsilon 8")
	}
	if _, err := plan.Choose(t.Context(), 101); err == nil {
		t.Error("101 groups for 100 lots of records")
	}
}
