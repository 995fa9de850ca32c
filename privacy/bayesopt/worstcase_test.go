package bayesopt

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/selection"
)

// No two vectors of clipped scores make the exponential mechanism of Algorithm 1 lose more than the
// bound, and the corners of the cube come near it when candidates are many.
func TestWorstCase(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	const epsilon, sensitivity, span = 1, 12.9, 20
	bound := WorstCase(epsilon, sensitivity, span)
	loss := func(first, second []float64) float64 {
		p, err := selection.Probabilities(privacy.Exponential, first, sensitivity, epsilon)
		require.NoError(t, err)
		q, err := selection.Probabilities(privacy.Exponential, second, sensitivity, epsilon)
		require.NoError(t, err)
		most := 0.0
		for i := range p {
			most = math.Max(most, math.Abs(math.Log(p[i]/q[i])))
		}
		return most
	}
	for range 2000 {
		n := 2 + rng.IntN(5)
		first, second := make([]float64, n), make([]float64, n)
		for i := range n {
			first[i], second[i] = span*rng.Float64(), span*rng.Float64()
			if rng.IntN(2) == 0 {
				first[i], second[i] = span*math.Round(first[i]/span), span*math.Round(second[i]/span)
			}
		}
		if got := loss(first, second); got > bound*(1+1e-12) {
			t.Fatalf("loss %g of %v and %v, bound %g", got, first, second, bound)
		}
	}
	many := 100_000
	first, second := make([]float64, many), make([]float64, many)
	first[0] = span
	for i := 1; i < many; i++ {
		second[i] = span
	}
	if got := loss(first, second); got > bound || got < 0.999*bound {
		t.Errorf("loss %g at the corners, bound %g", got, bound)
	}
	if bound <= epsilon {
		t.Errorf("a worst case of %g for scores spread over %g deviations is no more than the claim", bound, float64(span))
	}
}

// The means are those of one observation after the other.
func TestPosteriorMeans(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	const n, noise = 12, 0.3
	kernel := squaredExponential(randomPoints(rng, n, 2), 0.4)
	process := NewProcess(kernel, noise)
	tried := []int{3, 7, 3, 0, 11}
	values := make([]float64, len(tried))
	observed, cross := mat.NewSymDense(len(tried), nil), mat.NewDense(n, len(tried), nil)
	for j, c := range tried {
		values[j] = rng.NormFloat64()
		process.Observe(c, values[j])
		for i := range j + 1 {
			observed.SetSym(i, j, kernel.At(tried[i], c))
		}
		for i := range n {
			cross.Set(i, j, kernel.At(i, c))
		}
	}
	means, ok := PosteriorMeans(observed, cross, noise, values)
	if !ok {
		t.Fatal("no posterior")
	}
	for i, want := range process.Mean() {
		if math.Abs(means[i]-want) > 1e-12 {
			t.Errorf("mean %d is %g, want %g", i, means[i], want)
		}
	}
	if _, ok := PosteriorMeans(mat.NewSymDense(2, []float64{1, 3, 3, 1}), mat.NewDense(1, 2, nil), 0.1, []float64{1, 2}); ok {
		t.Error("a posterior of a matrix that is no covariance")
	}
}

// Theorem 1, corrected, holds in simulation after any adaptive search of two neighbouring sets: here
// each observes the candidate of the largest mean or a random one, not that of the largest upper
// confidence bound, so that the claim does not depend on the search.
func TestChoiceSensitivityOfAnySearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	const n, delta, noise, correlation, repetitions = 12, 0.3, 0.1, 0.9, 3000
	kernel := squaredExponential(randomPoints(rng, n, 1), 0.1)
	scales, err := Noisy{Candidates: n, Evaluations: 15, Epsilon: 1, Delta: delta, Noise: noise, Correlation: correlation}.Scales()
	require.NoError(t, err)
	search := func(f []float64) []float64 {
		process := NewProcess(kernel, noise)
		for step := range 15 {
			next := rng.IntN(n)
			if step%2 == 0 {
				for i, m := range process.Mean() {
					if m > process.Mean()[next] {
						next = i
					}
				}
			}
			process.Observe(next, f[next]+noise*rng.NormFloat64())
		}
		return process.Mean()
	}
	failures, largest := 0, 0.0
	for range repetitions {
		first, second := pairs(rng, kernel, 1, correlation, 0)
		a, b := search(first.RawRowView(0)), search(second.RawRowView(0))
		most := 0.0
		for i := range a {
			most = math.Max(most, math.Abs(a[i]-b[i]))
		}
		largest = math.Max(largest, most)
		if most > scales.ChoiceSensitivity {
			failures++
		}
	}
	t.Logf("largest difference %.3f, bound %.3f, failures %d of %d", largest, scales.ChoiceSensitivity, failures, repetitions)
	if failures > delta*repetitions {
		t.Errorf("%d of %d fail, more than δ = %g", failures, repetitions, delta)
	}
}
