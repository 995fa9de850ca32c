package surrogate

import (
	"math"
	"sync"
	"testing"
)

// Many points at once, and with more of them than are treated together.
func TestPredictBatchIsPredict(t *testing.T) {
	const d = 3
	x := randomPoints(newRand(2), 2*batch+5, d)
	means, variances := make([]float64, len(x)), make([]float64, len(x))
	for _, n := range []int{0, 1, 40} {
		g := mustNew(t, nil, someHyperparameters(d), randomObservations(newRand(1), n, d))
		workspaces = sync.Pool{New: workspaces.New} // no memory of larger models
		g.PredictBatch(means, variances, x)
		for i, p := range x {
			mean, variance := g.Predict(p)
			if math.Abs(means[i]-mean) > 1e-12 || math.Abs(variances[i]-variance) > 1e-12 {
				t.Errorf("n = %d, point %d: %g, %g, want %g, %g", n, i, means[i], variances[i], mean, variance)
			}
		}
	}
}

// The bound holds for many observations, and is the variance for one.
func TestBound(t *testing.T) {
	const d = 2
	for _, n := range []int{0, 1, 30} {
		obs := randomObservations(newRand(3), n, d)
		g := mustNew(t, nil, someHyperparameters(d), obs)
		for _, x := range append(randomPoints(newRand(4), 50, d), obs.X...) {
			wantMean, variance := g.Predict(x)
			mean, bound := g.Bound(x)
			if math.Abs(mean-wantMean) > 1e-12 {
				t.Errorf("n = %d: mean %g, want %g", n, mean, wantMean)
			}
			if bound < variance-1e-12 || n < 2 && bound > variance+1e-12 {
				t.Errorf("n = %d: bound %g of the variance %g", n, bound, variance)
			}
		}
	}
}
