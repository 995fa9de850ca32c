package model

import (
	"math"
	"math/rand/v2"
	"testing"
)

// heteroscedastic draws n points in [0,1]² with the variance per run
// exp(-6 + 4 x_0), and the sample variance of the mean of their runs.
func heteroscedastic(n, runs int, seed uint64) (x [][]float64, truth, sample []float64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range n {
		u := []float64{rng.Float64(), rng.Float64()}
		v := math.Exp(-6 + 4*u[0])
		chi := 0.0
		for range runs - 1 {
			g := rng.NormFloat64()
			chi += g * g
		}
		x = append(x, u)
		truth = append(truth, v/float64(runs))
		sample = append(sample, v*chi/float64(runs-1)/float64(runs))
	}
	return x, truth, sample
}

// The smoothed variances are closer to the truth than the sample variances.
func TestSmoothVariances(t *testing.T) {
	for _, runs := range []int{2, 3, 10, 50} {
		x, truth, sample := heteroscedastic(60, runs, uint64(runs))
		counts := make([]int, len(x))
		for i := range counts {
			counts[i] = runs
		}
		smooth := smoothVariances(x, sample, counts)
		raw, better := 0.0, 0.0
		for i := range truth {
			raw += math.Abs(math.Log(sample[i] / truth[i]))
			better += math.Abs(math.Log(smooth[i] / truth[i]))
		}
		if !(better < 0.95*raw) {
			t.Errorf("%d runs: mean log error %g, of the sample variances %g", runs, better/60, raw/60)
		}
	}
}

func TestSmoothVariancesFillsIn(t *testing.T) {
	x, truth, sample := heteroscedastic(60, 10, 3)
	runs := make([]int, len(x))
	for i := range runs {
		runs[i] = 10
	}
	// The variance of one run of the first configuration.
	sample[0], runs[0] = math.NaN(), 1
	got := smoothVariances(x, sample, runs)[0]
	if ratio := got / (10 * truth[0]); ratio < 0.5 || ratio > 2 {
		t.Errorf("variance of an unknown = %g, want about %g", got, 10*truth[0])
	}
	sample = []float64{math.NaN(), math.NaN()}
	if v := smoothVariances(x[:2], sample, runs[:2]); v != nil {
		t.Errorf("all unknown: %v, want nil", v)
	}
	for i, v := range smoothVariances(x[:2], []float64{0, math.NaN()}, []int{1, 5}) {
		if v != 0 {
			t.Errorf("variance %d = %g beside a noiseless observation, want 0", i, v)
		}
	}
}

// A standard error given with a single run stays nearly as it is.
func TestSmoothVariancesGiven(t *testing.T) {
	x := [][]float64{{0}, {0.5}, {1}}
	got := smoothVariances(x, []float64{1, 1, 1}, []int{1, 1, 1})
	for i, v := range got {
		if math.Abs(v-1) > 0.05 {
			t.Errorf("variance %d = %g, want about 1", i, v)
		}
	}
}
