package surrogate

import (
	"context"
	"fmt"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// benchmarkD is the number of inputs, and benchmarkSizes the numbers of
// observations: 272 are 16 initial points and 256 suggestions.
const benchmarkD = 5

var benchmarkSizes = []int{100, 272, 1000}

// benchmarkGP runs a benchmark for posteriors of every size.
func benchmarkGP(b *testing.B, run func(b *testing.B, g *GP)) {
	b.Helper()
	for _, n := range benchmarkSizes {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			g := mustNew(b, nil, someHyperparameters(benchmarkD), randomObservations(newRand(1), n, benchmarkD))
			b.ReportAllocs()
			run(b, g)
		})
	}
}

// benchmarkConditioned runs a benchmark for 16 draws at 20 base points.
func benchmarkConditioned(b *testing.B, run func(b *testing.B, c *Conditioned)) {
	b.Helper()
	benchmarkGP(b, func(b *testing.B, g *GP) {
		rng := newRand(2)
		run(b, mustCondition(b, g, randomPoints(rng, 20, benchmarkD), randomNormals(rng, 16, 20)))
	})
}

func BenchmarkFit(b *testing.B) {
	for _, n := range []int{64, 272} {
		obs := randomObservations(newRand(1), n, benchmarkD)
		b.Run(fmt.Sprintf("cold/n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, require.ErrOf(Fit(context.Background(), obs, Options{})))
			}
		})
		// The hyperparameters of the first nine tenths of the observations.
		m := n * 9 / 10
		start := mustFit(b, Observations{X: obs.X[:m], Y: obs.Y[:m], NoiseVariance: obs.NoiseVariance[:m]}, Options{}).Hyperparameters()
		b.Run(fmt.Sprintf("warm/n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, require.ErrOf(Fit(context.Background(), obs, Options{Start: &start, Restarts: -1, Tolerance: 0.01})))
			}
		})
	}
}

// BenchmarkFitEvaluation is one evaluation of what Fit maximises, with gradient
// and all parts of the noise.
func BenchmarkFitEvaluation(b *testing.B) {
	for _, n := range benchmarkSizes {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			p := newProblem(Matern52{}, DefaultPrior(benchmarkD), checkpoints(1, n, benchmarkD), standardisation{scale: 1}, Options{NoiseSlopes: true})
			f, theta := newLogPosterior(p), p.typical()
			grad := make([]float64, len(theta))
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, require.ErrOf(f.Value(theta)))
				f.Gradient(grad)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for _, n := range benchmarkSizes {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			obs, h := randomObservations(newRand(1), n, benchmarkD), someHyperparameters(benchmarkD)
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, require.ErrOf(New(nil, h, obs)))
			}
		})
	}
}

// BenchmarkAppend adds eight observations one after the other, as for pending
// suggestions.
func BenchmarkAppend(b *testing.B) {
	benchmarkGP(b, func(b *testing.B, g *GP) {
		x := randomPoints(newRand(2), 8, benchmarkD)
		for b.Loop() {
			next := g
			for _, p := range x {
				var err error
				if next, err = next.Append(p, 1, 0); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

func BenchmarkPredict(b *testing.B) {
	x := randomPoints(newRand(3), 1, benchmarkD)[0]
	benchmarkGP(b, func(b *testing.B, g *GP) {
		for b.Loop() {
			g.Predict(x)
		}
	})
}

// BenchmarkPredictGradient is a prediction of 16 copies with a gradient.
func BenchmarkPredictGradient(b *testing.B) {
	x := randomPoints(newRand(3), 1, benchmarkD)[0]
	benchmarkConditioned(b, func(b *testing.B, c *Conditioned) {
		var p Partial
		means, grad := make([]float64, c.Samples()), make([]float64, benchmarkD)
		for b.Loop() {
			variance := c.PredictPartial(&p, means, x)
			p.Gradient(grad, means, variance)
		}
	})
}

// BenchmarkPredictBatch is a prediction of 16 copies at 512 points.
func BenchmarkPredictBatch(b *testing.B) {
	x := randomPoints(newRand(3), 512, benchmarkD)
	benchmarkConditioned(b, func(b *testing.B, c *Conditioned) {
		means, variances := make([]float64, len(x)*c.Samples()), make([]float64, len(x))
		for b.Loop() {
			c.PredictBatch(means, variances, x)
		}
	})
}

func BenchmarkCondition(b *testing.B) {
	rng := newRand(2)
	points, normals := randomPoints(rng, 20, benchmarkD), randomNormals(rng, 16, 20)
	benchmarkGP(b, func(b *testing.B, g *GP) {
		for b.Loop() {
			require.NoError(b, require.ErrOf(g.Condition(points, normals)))
		}
	})
}
