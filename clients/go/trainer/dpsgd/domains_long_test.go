//go:build long

package dpsgd

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// TestRates trains at equal ε with several rates times clipping norm, at clipping norm 1: logistic regression on Adult,
// 20 epochs of lots of 512, and softmax regression on MNIST, 10 epochs of lots of 600, on pixels and on histograms of
// gradients. δ = 1e-5, replace-one.
func TestRates(t *testing.T) {
	train, test := adult(t, dataset.Division{Split: dataset.SplitUCI})
	parts, err := dataset.Load(t.Context(), dataset.NameMNIST, dataset.Division{}, dataset.Source{DataDir: datasettest.Folder(t, dataset.NameMNIST)})
	require.NoError(t, err)
	softmax := model.Spec{Kind: model.SoftmaxRegression}
	for _, tt := range []struct {
		name        string
		parts       *dataset.Parts
		options     Options
		epochs, lot int64
		epsilons    []float64
		rates       []float64
	}{
		{"Adult", &dataset.Parts{Train: train, Test: test}, Options{}, 20, 512, []float64{0.1, 0.3, 1, 3}, []float64{0.05, 0.5, 1, 2, 4, 8}},
		{"MNIST", parts, Options{Model: softmax}, 10, 600, []float64{1, 3}, []float64{1, 2, 4, 8}},
		{"MNIST, HOG", parts, Options{Model: softmax, Features: HOG}, 10, 600, []float64{1, 3}, []float64{1, 2, 4, 8}},
	} {
		made, err := New(tt.parts, tt.options)
		require.NoError(t, err)
		for _, epsilon := range tt.epsilons {
			p := trainer.Parameters{ParameterEpochs: tt.epochs, ParameterLotSize: tt.lot, ParameterClippingNorm: 1.0, ParameterNormalizedRate: 1.0}
			noise, _, err := privacy.CalibrateNoise(privacy.Exact{}, func(noise float64) privacy.Mechanism {
				p[ParameterNoiseMultiplier] = noise
				m, err := made.Mechanism(p)
				require.NoError(t, err)
				return m
			}, 1, epsilon, 1e-5)
			require.NoError(t, err)
			p[ParameterNoiseMultiplier] = noise
			for _, rate := range tt.rates {
				p[ParameterNormalizedRate] = rate
				m, err := made.Train(t.Context(), trainer.Run{Parameters: p, Replicates: 2, Seed: new(uint64(3))}, nil)
				require.NoError(t, err)
				t.Logf("%s, ε %g, noise %.3f, rate %g: errors %.4f", tt.name, epsilon, noise, rate, m.Metrics[MetricError])
			}
		}
	}
}

// TestDomains draws 32 configurations from the domain of Table 1 of Avent et al. (2020) and from the domain of the
// bundled study, which has rate times clipping norm in [0.05, 8] in place of a rate in [5e-4, 5e-2], and logs the least
// error at several ε: logistic regression on Adult, and on the breast cancer data that no domain was chosen on.
func TestDomains(t *testing.T) {
	train, test := adult(t, dataset.Division{Split: dataset.SplitUCI})
	cancer, err := dataset.Load(t.Context(), dataset.NameBreastCancer, dataset.Division{},
		dataset.Source{DataDir: datasettest.Folder(t, dataset.NameBreastCancer)})
	require.NoError(t, err)
	epsilons := []float64{0.1, 0.3, 1, 3, 10}
	for name, parts := range map[string]*dataset.Parts{"Adult": {Train: train, Test: test}, "breast cancer": cancer} {
		made, err := New(parts, Options{})
		require.NoError(t, err)
		for _, isPaper := range []bool{true, false} {
			mean := make([]float64, len(epsilons))
			const seeds = 3
			for seed := range uint64(seeds) {
				rng := rand.New(rand.NewPCG(seed, 1))
				within := func(lo, hi float64) float64 { return lo * math.Pow(hi/lo, rng.Float64()) }
				best := []float64{0.5, 0.5, 0.5, 0.5, 0.5}
				for range 32 {
					p := trainer.Parameters{
						ParameterEpochs: int64(within(1, 65)), ParameterLotSize: int64(within(8, float64(min(513, parts.Train.Rows)))),
						ParameterClippingNorm: within(0.1, 4), ParameterNoiseMultiplier: within(0.1, 16),
					}
					if isPaper {
						p[ParameterLearningRate] = within(5e-4, 5e-2)
					} else {
						p[ParameterNormalizedRate] = within(0.05, 8)
					}
					mechanism, err := made.Mechanism(p)
					require.NoError(t, err)
					g, err := privacy.Epsilon(privacy.RDP{}, mechanism, 1, 1e-5) // fast
					require.NoError(t, err)
					if g.Epsilon > epsilons[len(epsilons)-1] {
						continue
					}
					m, err := made.Train(t.Context(), trainer.Run{Parameters: p, Replicates: 1, Seed: new(seed)}, nil)
					require.NoError(t, err)
					for i, epsilon := range epsilons {
						if g.Epsilon <= epsilon {
							best[i] = min(best[i], m.Metrics[MetricError][0])
						}
					}
				}
				for i := range best {
					mean[i] += best[i] / seeds
				}
			}
			t.Logf("%s, the paper's domain %t: errors %.4f at ε %v", name, isPaper, mean, epsilons)
		}
	}
}
