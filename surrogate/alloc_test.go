//go:build !race

// Under the race detector a sync.Pool forgets entries on purpose.

package surrogate

import "testing"

func TestPredictDoesNotAllocate(t *testing.T) {
	rng := newRand(9)
	g := mustNew(t, nil, someHyperparameters(3), randomObservations(rng, 50, 3))
	x, dMean, dVariance := []float64{0.1, 0.2, 0.3}, make([]float64, 3), make([]float64, 3)
	if allocs := testing.AllocsPerRun(200, func() { g.Predict(x) }); allocs != 0 {
		t.Errorf("Predict allocates %v times", allocs)
	}
	if allocs := testing.AllocsPerRun(200, func() { g.PredictGradient(dMean, dVariance, x) }); allocs != 0 {
		t.Errorf("PredictGradient allocates %v times", allocs)
	}
}
