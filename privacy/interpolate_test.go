package privacy

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

// interpolationBox is a box of n = 30956 records.
func interpolationBox(leastNoise float64, mostBatch int64, mostEpochs float64) InterpolationDomain {
	return InterpolationDomain{
		NoiseMultiplier: [2]float64{leastNoise, 16},
		SamplingRate:    [2]float64{8. / 30956, float64(mostBatch) / 30956},
		Passes:          [2]float64{0.98, 1.02 * mostEpochs}, // an epoch is a whole number of steps
	}
}

// checkInterpolation compares at random configurations of the box.
func checkInterpolation(t *testing.T, p *Interpolant, leastNoise float64, mostBatch, mostEpochs int64, count int) {
	t.Helper()
	const n, delta = 30956, 1e-5
	rng := rand.New(rand.NewPCG(17, 18))
	for range count {
		m := FixedSizeGaussian{n, int64(8 * math.Exp(rng.Float64()*math.Log(float64(mostBatch)/8))), leastNoise * math.Exp(rng.Float64()*math.Log(16/leastNoise))}
		steps, err := Steps(n, m.BatchSize, 1+rng.Int64N(mostEpochs))
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Epsilon(m.NoiseMultiplier, m.rate(), steps)
		if err != nil {
			t.Fatal(err)
		}
		if want := epsilonOf(t, Exact{}, m, steps, delta).Epsilon; relErr(got, want) > InterpolationError {
			t.Errorf("%+v, %d steps: interpolated %g, exact %g", m, steps, got, want)
		}
	}
}

func TestInterpolateFixedSize(t *testing.T) {
	p, err := InterpolateFixedSize(interpolationBox(1, 512, 64), 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	checkInterpolation(t, p, 1, 512, 64, 300)
	// Outside it is the exact value.
	m := FixedSizeGaussian{30956, 128, 0.9}
	got, err := p.Epsilon(0.9, m.rate(), 2420)
	if want := epsilonOf(t, Exact{}, m, 2420, 1e-5).Epsilon; err != nil || relErr(got, want) > 1e-9 {
		t.Errorf("outside: %g, exact %g, %v", got, want, err)
	}
	if got, err := p.Epsilon(2, m.rate(), 0); err != nil || got != 0 {
		t.Errorf("no steps: %g, %v", got, err)
	}
}

func TestInterpolatePoisson(t *testing.T) {
	domain := InterpolationDomain{[2]float64{2, 4}, [2]float64{0.01, 0.01}, [2]float64{5, 10}}
	for _, neighbours := range []Adjacency{AddRemove, ReplaceOne} {
		p, err := InterpolatePoisson(domain, 1e-6, neighbours)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Build(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, noise := range []float64{2, 2.3, 3.1, 4} {
			got, err := p.Epsilon(noise, 0.01, 777)
			want := epsilonOf(t, Exact{}, PoissonGaussian{0.01, noise, neighbours}, 777, 1e-6).Epsilon
			if err != nil || relErr(got, want) > InterpolationError || got == want {
				t.Errorf("%s, noise %g: interpolated %g, exact %g, %v", neighbours, noise, got, want, err)
			}
		}
	}
}

// TestInterpolantWithoutPolynomial: where nothing is sampled ε is 0.
func TestInterpolantWithoutPolynomial(t *testing.T) {
	p, err := InterpolateFixedSize(InterpolationDomain{[2]float64{1, 2}, [2]float64{1e-9, 1e-8}, [2]float64{1e-8, 1e-7}}, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Epsilon(1, 5e-9, 3); err != nil || got != 0 {
		t.Errorf("epsilon %g, %v", got, err)
	}
}

func TestInterpolantConcurrently(t *testing.T) {
	p, err := InterpolateFixedSize(InterpolationDomain{[2]float64{2, 4}, [2]float64{0.01, 0.02}, [2]float64{5, 10}}, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	results := make([][]float64, 4)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			for noise := 2.0; noise <= 4; noise += 0.1 {
				epsilon, err := p.Epsilon(noise, 0.015, 500)
				if err != nil {
					t.Error(err)
				}
				results[i] = append(results[i], epsilon)
			}
		})
	}
	wg.Wait()
	for i, epsilon := range results[0] {
		for _, r := range results[1:] {
			if r[i] != epsilon {
				t.Fatalf("goroutines disagree: %g and %g", r[i], epsilon)
			}
		}
		if i > 0 && !(epsilon < results[0][i-1]) {
			t.Errorf("epsilon %g does not fall with the noise", epsilon)
		}
	}
}

func TestInterpolantErrors(t *testing.T) {
	if _, err := InterpolateFixedSize(InterpolationDomain{[2]float64{0, 1}, [2]float64{0.5, 2}, [2]float64{2, 1}}, 0); len(FieldErrors(err)) != 4 {
		t.Errorf("errors %v", err)
	}
	if _, err := InterpolatePoisson(interpolationBox(1, 64, 8), 1e-5, 0); len(FieldErrors(err)) != 1 {
		t.Errorf("errors %v", err)
	}
	p, err := InterpolateFixedSize(interpolationBox(1, 64, 8), 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Epsilon(math.NaN(), 2, -1); len(FieldErrors(err)) != 3 {
		t.Errorf("errors %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Build(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func BenchmarkInterpolantEpsilon(b *testing.B) {
	p, err := InterpolateFixedSize(interpolationBox(1, 512, 64), 1e-5)
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Build(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Epsilon(1.3, 128./30956, 2420); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInterpolantBuild(b *testing.B) {
	for _, bc := range []struct {
		name  string
		noise float64
	}{{"noise-1-to-16", 1}, {"noise-0.5-to-16", 0.5}} {
		b.Run(bc.name, func(b *testing.B) {
			for b.Loop() {
				p, err := InterpolateFixedSize(interpolationBox(bc.noise, 512, 64), 1e-5)
				if err != nil {
					b.Fatal(err)
				}
				if err := p.Build(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
