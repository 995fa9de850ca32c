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

	c := mustCondition(t, g, randomPoints(rng, 4, 3), randomNormals(rng, 6, 4))
	means, variances := make([]float64, 6), make([]float64, 1)
	batch := [][]float64{x}
	var p Partial
	if allocs := testing.AllocsPerRun(200, func() { c.Predict(means, x) }); allocs != 0 {
		t.Errorf("Conditioned.Predict allocates %v times", allocs)
	}
	if allocs := testing.AllocsPerRun(200, func() { c.PredictBatch(means, variances, batch) }); allocs != 0 {
		t.Errorf("Conditioned.PredictBatch allocates %v times", allocs)
	}
	if allocs := testing.AllocsPerRun(200, func() {
		c.PredictPartial(&p, means, x)
		p.Gradient(dMean, means, 1)
	}); allocs != 0 {
		t.Errorf("Conditioned.PredictPartial with Gradient allocates %v times", allocs)
	}

	based, _, _ := basedGP(t, checkpoints(1, 20, 3), 3)
	if allocs := testing.AllocsPerRun(200, func() { based.PredictGradient(dMean, dVariance, x) }); allocs != 0 {
		t.Errorf("PredictGradient with a base allocates %v times", allocs)
	}
}
