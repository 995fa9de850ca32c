//go:build long

package dpsgd

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// TestAdultGrid measures how much the random division of Adult into 40,000 training
// and 8,842 test rows matters, without any engine: the hypervolume of the 3⁵ grid of
// Avent et al. (2020), Appendix C, one run per cell, δ = 1e-6, noise variance in
// [0.1, 16], anti-ideal point (10, 1). Cells with ε ≥ 10 add nothing and are not run.
func TestAdultGrid(t *testing.T) {
	for seed := range uint64(10) {
		train, test := adult(t, dataset.Division{Split: dataset.SplitShuffled, Seed: seed})
		dpsgd, err := New(&dataset.Parts{Train: train, Test: test}, Options{})
		require.NoError(t, err)
		var points [][]float64
		for _, epochs := range []int64{1, 32, 64} {
			for _, lot := range []int64{8, 260, 512} {
				for _, variance := range []float64{0.1, 8.05, 16} {
					epsilon := gridEpsilon(t, int64(train.Rows), lot, epochs, variance)
					if epsilon >= 10 {
						continue
					}
					for _, rate := range []float64{0.001, 0.0505, 0.1} {
						for _, clip := range []float64{0.1, 2.05, 4} {
							m, err := dpsgd.Train(t.Context(), trainer.Run{
								Parameters: trainer.Parameters{
									"epochs": epochs, "lot_size": lot, "learning_rate": rate,
									"clipping_norm": clip, "noise_variance": variance,
								},
								Replicates: 1,
								Seed:       new(uint64(uint64(len(points) + 1))),
							}, nil)
							require.NoError(t, err)
							points = append(points, []float64{epsilon, m.Metrics["error"][0]})
						}
					}
				}
			}
		}
		t.Logf("split seed %d: grid hypervolume %.4f\n", seed, pareto.Hypervolume(points, []float64{10, 1}))
	}
}

func gridEpsilon(t *testing.T, rows, lot, epochs int64, variance float64) float64 {
	t.Helper()
	steps, err := privacy.Steps(rows, lot, epochs)
	require.NoError(t, err)
	mechanism := privacy.FixedSizeGaussian{DatasetSize: rows, BatchSize: lot, NoiseMultiplier: math.Sqrt(variance)}
	g, err := privacy.Epsilon(privacy.RDP{}, mechanism, steps, 1e-6)
	require.NoError(t, err)
	return g.Epsilon
}
