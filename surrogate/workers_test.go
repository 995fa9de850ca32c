package surrogate_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/dpareto/dpareto/surrogate"
)

func TestWorkersOf(t *testing.T) {
	w := surrogate.WorkersOf(t.Context())
	called := false
	w.Run(func() { called = true })
	if w.Max != runtime.GOMAXPROCS(0) || !called {
		t.Errorf("%d workers by default, called %v", w.Max, called)
	}
}

// Fit uses the workers of its context, and the result does not depend on them.
func TestFitUsesWorkers(t *testing.T) {
	x := make([][]float64, 12)
	y := make([]float64, len(x))
	for i := range x {
		x[i] = []float64{float64(i) / 11}
		y[i] = x[i][0]*x[i][0] + 0.1*float64(i%3)
	}
	data := surrogate.Observations{X: x, Y: y}
	plain, err := surrogate.Fit(t.Context(), data, surrogate.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var running, most, calls atomic.Int64
	ctx, cancel := context.WithCancel(surrogate.WithWorkers(t.Context(), surrogate.Workers{Max: 2, Run: func(fn func()) {
		calls.Add(1)
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		fn()
		running.Add(-1)
	}}))
	defer cancel()
	limited, err := surrogate.Fit(ctx, data, surrogate.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if calls.Load() != 2 || most.Load() > 2 {
		t.Errorf("%d workers, %d at once, want 2", calls.Load(), most.Load())
	}
	at := []float64{0.37}
	wantMean, wantVariance := plain.Predict(at)
	if mean, variance := limited.Predict(at); mean != wantMean || variance != wantVariance {
		t.Errorf("%g ± %g with two workers, %g ± %g without", mean, variance, wantMean, wantVariance)
	}
}
