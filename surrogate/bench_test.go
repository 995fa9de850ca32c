package surrogate

import (
	"context"
	"fmt"
	"testing"
)

// 272 observations of 5 inputs are 16 initial points and 256 suggestions.
const (
	benchmarkN = 272
	benchmarkD = 5
)

func benchmarkGP(b *testing.B) (*GP, []float64) {
	b.Helper()
	rng := newRand(1)
	obs := randomObservations(rng, benchmarkN, benchmarkD)
	return mustNew(b, nil, someHyperparameters(benchmarkD), obs), randomPoints(rng, 1, benchmarkD)[0]
}

func BenchmarkFit(b *testing.B) {
	for _, n := range []int{64, benchmarkN} {
		obs := randomObservations(newRand(1), n, benchmarkD)
		b.Run(fmt.Sprintf("cold/n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Fit(context.Background(), obs, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		// The hyperparameters of the first nine tenths of the observations.
		m := n * 9 / 10
		start := mustFit(b, Observations{X: obs.X[:m], Y: obs.Y[:m], NoiseVariance: obs.NoiseVariance[:m]}, Options{}).Hyperparameters()
		b.Run(fmt.Sprintf("warm/n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Fit(context.Background(), obs, Options{Start: &start, Restarts: -1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPosterior is one evaluation of what Fit maximises, with gradient.
func BenchmarkPosterior(b *testing.B) {
	obs := randomObservations(newRand(1), benchmarkN, benchmarkD)
	p := newProblem(Matern52{}, DefaultPrior(benchmarkD), obs, standardisation{scale: 1}, Options{})
	f, theta := newLogPosterior(p), p.typical()
	grad := make([]float64, len(theta))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.value(theta); err != nil {
			b.Fatal(err)
		}
		f.gradient(grad)
	}
}

func BenchmarkNew(b *testing.B) {
	obs := randomObservations(newRand(1), benchmarkN, benchmarkD)
	h := someHyperparameters(benchmarkD)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(nil, h, obs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPredict(b *testing.B) {
	g, x := benchmarkGP(b)
	b.ReportAllocs()
	for b.Loop() {
		g.Predict(x)
	}
}

func BenchmarkPredictGradient(b *testing.B) {
	g, x := benchmarkGP(b)
	dMean, dVariance := make([]float64, benchmarkD), make([]float64, benchmarkD)
	b.ReportAllocs()
	for b.Loop() {
		g.PredictGradient(dMean, dVariance, x)
	}
}

func BenchmarkPredictJoint(b *testing.B) {
	g, _ := benchmarkGP(b)
	x := randomPoints(newRand(2), 16, benchmarkD)
	b.ReportAllocs()
	for b.Loop() {
		g.PredictJoint(x)
	}
}

func BenchmarkAppend(b *testing.B) {
	g, x := benchmarkGP(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Append(x, 1, 0); err != nil {
			b.Fatal(err)
		}
	}
}
