package surrogate

import (
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// workspace is the scratch memory of one prediction.
type workspace struct {
	point      []float64 // d, the scaled point
	covariance []float64 // n, k, then L⁻¹k, then K⁻¹k
	derivative []float64 // n, dk/d(r²)
}

// workspaces is shared by all models, since they differ little in size.
var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// resize returns a slice of length n, reusing the memory of x if it suffices.
func resize(x []float64, n int) []float64 {
	if cap(x) < n {
		return make([]float64, n)
	}
	return x[:n]
}

// workspace returns scratch memory of the right sizes; return it to the pool.
func (g *GP) workspace() *workspace {
	w := workspaces.Get().(*workspace)
	w.point = resize(w.point, g.d)
	w.covariance = resize(w.covariance, g.n)
	w.derivative = resize(w.derivative, g.n)
	return w
}

// Predict returns the posterior mean and variance of the latent function f at
// x, without observation noise:
//
//	mean = m(x) + kᵀK⁻¹(y−m),   variance = s_f² − kᵀK⁻¹k >= 0,
//
// in units of Y and Y². See Rasmussen and Williams, Gaussian Processes for
// Machine Learning, MIT Press 2006, Algorithm 2.1. The results are NaN if x is
// not finite. The cost is O(n²), without allocation. Predict panics if len(x)
// is not the dimension.
func (g *GP) Predict(x []float64) (mean, variance float64) {
	if len(x) != g.d {
		panic(panicDimension)
	}
	w := g.workspace()
	defer workspaces.Put(w)
	scaleTo(w.point, x, g.hyper.LengthScales)
	k := vector(w.covariance)
	g.covariances(w.covariance, nil, w.point, g.scaled)
	mean = g.priorMean(x) + blas64.Dot(k, vector(g.weights))
	g.factor.solve(blas.NoTrans, w.covariance)
	return mean, max(0, g.hyper.SignalVariance-blas64.Dot(k, k))
}

// PredictBatch is [GP.Predict] at q points: it stores the means and the variances,
// q each. For many points and observations it is faster than calls of Predict. It
// panics if a length is wrong.
func (g *GP) PredictBatch(means, variances []float64, x [][]float64) {
	if len(means) != len(x) || len(variances) != len(x) {
		panic(panicLength)
	}
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	w.point = resize(w.point, g.d)
	w.covariance = resize(w.covariance, min(batch, len(x))*g.n)
	for first := 0; first < len(x); first += batch {
		part := x[first:min(first+batch, len(x))]
		k := blas64.General{Rows: len(part), Cols: g.n, Stride: max(1, g.n), Data: w.covariance}
		for a, p := range part {
			if len(p) != g.d {
				panic(panicDimension)
			}
			scaleTo(w.point, p, g.hyper.LengthScales)
			row := generalRow(k, a)
			g.covariances(row, nil, w.point, g.scaled)
			means[first+a] = g.priorMean(p) + blas64.Dot(vector(row), vector(g.weights))
		}
		g.factor.solveRows(k, 0)
		for a := range part {
			row := vector(generalRow(k, a))
			variances[first+a] = max(0, g.hyper.SignalVariance-blas64.Dot(row, row))
		}
	}
}

// Bound returns the posterior mean of f at x and an upper bound of the posterior
// variance: the variance given only the most informative observation i,
//
//	variance <= s_f² − max_i k_i²/K_ii,
//
// which is close where noise is low and an observation is at x. The cost is O(n),
// without allocation. Bound panics if len(x) is not the dimension.
func (g *GP) Bound(x []float64) (mean, variance float64) {
	if len(x) != g.d {
		panic(panicDimension)
	}
	w := g.workspace()
	defer workspaces.Put(w)
	scaleTo(w.point, x, g.hyper.LengthScales)
	g.covariances(w.covariance, nil, w.point, g.scaled)
	signal, most := g.hyper.SignalVariance, 0.0
	for i, k := range w.covariance {
		most = max(most, k*k/(signal+g.noise.variance(i)+g.jitter))
	}
	return g.priorMean(x) + blas64.Dot(vector(w.covariance), vector(g.weights)), max(0, signal-most)
}

// PredictGradient is [GP.Predict] that also stores the gradients of the mean
// and of the variance with respect to x into dMean and dVariance:
//
//	∂mean/∂x_j = ∂m/∂x_j + (∂k/∂x_j)ᵀK⁻¹(y−m),   ∂variance/∂x_j = −2(∂k/∂x_j)ᵀK⁻¹k.
//
// The cost is O(n²), without allocation. PredictGradient panics if a length is
// not the dimension.
func (g *GP) PredictGradient(dMean, dVariance, x []float64) (mean, variance float64) {
	if len(x) != g.d || len(dMean) != g.d || len(dVariance) != g.d {
		panic(panicDimension)
	}
	w := g.workspace()
	defer workspaces.Put(w)
	scaleTo(w.point, x, g.hyper.LengthScales)
	k := vector(w.covariance)
	g.covariances(w.covariance, w.derivative, w.point, g.scaled)
	mean = g.priorMean(x) + blas64.Dot(k, vector(g.weights))
	g.factor.solve(blas.NoTrans, w.covariance)
	variance = max(0, g.hyper.SignalVariance-blas64.Dot(k, k))
	g.factor.solve(blas.Trans, w.covariance)

	clear(dMean)
	g.addPriorGradient(dMean, x, 1)
	g.addGradient(dMean, w.point, w.derivative, g.weights, g.scaled)
	clear(dVariance)
	g.addGradient(dVariance, w.point, w.derivative, w.covariance, g.scaled)
	for j := range dVariance {
		dVariance[j] *= -2
	}
	return mean, variance
}

// addGradient adds to grad the gradient of coefficientsᵀk with respect to x,
// where k are the covariances of f at x and at the scaled points, given the
// scaled x and the derivatives of k with respect to r²:
//
//	∂k_i/∂x_j = 2 (dk_i/dr²) (z_j − z_ij)/ℓ_j.
func (g *GP) addGradient(grad, point, derivative, coefficients []float64, scaled points) {
	for j, l := range g.hyper.LengthScales {
		var sum float64
		column := scaled[j][:len(derivative)]
		for i, dk := range derivative {
			sum += dk * coefficients[i] * (point[j] - column[i])
		}
		grad[j] += 2 / l * sum
	}
}
