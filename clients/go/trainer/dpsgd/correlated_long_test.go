//go:build long

package dpsgd

import (
	"maps"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// TestAdultCorrelated compares DP-SGD on Poisson lots, one band, with DP-MF at equal ε on Adult: logistic regression, the
// UCI division, δ = 1e-5, add-remove adjacency with a public number of records, noise calibrated for each number of
// bands, and for each of these the best epochs, lot size and learning rate of a grid by mean test error over three seeded runs.
func TestAdultCorrelated(t *testing.T) {
	const delta, runs = 1e-5, 3
	train, test := adult(t, dataset.Division{Split: dataset.SplitUCI})
	made, err := New(&dataset.Parts{Train: train, Test: test}, Options{Correlated: true})
	require.NoError(t, err)
	for _, epsilon := range []float64{0.1, 0.3, 1, 3, 10} {
		for _, bands := range []int64{1, 4, 16} {
			best := math.Inf(1)
			var chosen trainer.Parameters
			var deviation float64
			for _, epochs := range []int64{4, 16, 64} {
				for _, lot := range []int64{256, 1024} {
					p := trainer.Parameters{
						ParameterEpochs: epochs, ParameterLotSize: lot, ParameterClippingNorm: 1.0, ParameterLearningRate: 1.0,
						ParameterBands: bands, ParameterNoiseMultiplier: 1.0,
					}
					noise, g, err := privacy.CalibrateNoise(privacy.Exact{}, func(noise float64) privacy.Mechanism {
						p[ParameterNoiseMultiplier] = noise
						m, err := made.Mechanism(p)
						require.NoError(t, err)
						return m
					}, 1, epsilon, delta)
					if err != nil || g.Epsilon > epsilon || g.Epsilon < 0.999*epsilon {
						t.Fatalf("%v: %+v, %v", p, g, err)
					}
					p[ParameterNoiseMultiplier] = noise
					for _, rate := range []float64{0.03, 0.1, 0.3, 1, 3} {
						p[ParameterLearningRate] = rate
						m, err := made.Train(t.Context(), trainer.Run{Parameters: p, Replicates: runs, Seed: new(uint64(1))}, nil)
						require.NoError(t, err)
						if mean, spread := stat.MeanStdDev(m.Metrics[MetricError], nil); mean < best {
							best, deviation = mean, spread
							chosen = maps.Clone(p)
						}
					}
				}
			}
			t.Logf("ε %g, %d bands: error %.4f ± %.4f at %d epochs, lots of %d, rate %g, noise %.4g", epsilon, bands, best, deviation,
				chosen[ParameterEpochs], chosen[ParameterLotSize], chosen[ParameterLearningRate], chosen[ParameterNoiseMultiplier])
		}
	}
}
