package surrogate_test

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/surrogate"
)

func TestWorkersShareEveryIndexOnce(t *testing.T) {
	for _, w := range []surrogate.Workers{{}, {Max: 1}, {Max: 3}, {Max: 100}} {
		for _, n := range []int{0, 1, 7} {
			counts := make([]atomic.Int64, n)
			var started atomic.Int64
			w.Share(n, func() func(int) {
				started.Add(1)
				return func(i int) { counts[i].Add(1) }
			})
			for i := range counts {
				if c := counts[i].Load(); c != 1 {
					t.Errorf("%d workers: index %d of %d was worked on %d times", w.Max, i, n, c)
				}
			}
			most := w.Max
			if most == 0 {
				most = runtime.GOMAXPROCS(0)
			}
			if got, want := started.Load(), int64(min(most, n)); got != want {
				t.Errorf("%d goroutines for %d indices and %d workers, want %d", got, n, w.Max, want)
			}
		}
	}
}

func TestWorkersPassOnPanics(t *testing.T) {
	defer func() {
		if r := recover(); r != "broken" {
			t.Errorf("recovered %v, want broken", r)
		}
	}()
	surrogate.Workers{Max: 2}.Share(5, func() func(int) { return func(int) { panic("broken") } })
}

// Fit uses the workers of its options, and the result does not depend on them.
func TestFitUsesWorkers(t *testing.T) {
	x := make([][]float64, 12)
	y := make([]float64, len(x))
	for i := range x {
		x[i] = []float64{float64(i) / 11}
		y[i] = x[i][0]*x[i][0] + 0.1*float64(i%3)
	}
	data := surrogate.Observations{X: x, Y: y}
	plain, err := surrogate.Fit(t.Context(), data, surrogate.Options{Seed: 1})
	require.NoError(t, err)
	var running, most, calls atomic.Int64
	workers := surrogate.Workers{Max: 2, Run: func(fn func()) {
		calls.Add(1)
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		fn()
		running.Add(-1)
	}}
	limited, err := surrogate.Fit(t.Context(), data, surrogate.Options{Seed: 1, Workers: workers})
	require.NoError(t, err)
	if calls.Load() != 2 || most.Load() > 2 {
		t.Errorf("%d workers, %d at once, want 2", calls.Load(), most.Load())
	}
	if got, want := limited.Hyperparameters(), plain.Hyperparameters(); got.Mean != want.Mean || got.SignalVariance != want.SignalVariance || !slices.Equal(got.LengthScales, want.LengthScales) {
		t.Errorf("%v with two workers, %v without", got, want)
	}
	at := []float64{0.37}
	wantMean, wantVariance := plain.Predict(at)
	if mean, variance := limited.Predict(at); mean != wantMean || variance != wantVariance {
		t.Errorf("%g ± %g with two workers, %g ± %g without", mean, variance, wantMean, wantVariance)
	}
}
