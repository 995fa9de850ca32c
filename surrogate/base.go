package surrogate

import "gonum.org/v1/gonum/blas/blas64"

// priorMean returns the mean m(x) of f before the observations.
func (g *GP) priorMean(x []float64) float64 {
	if g.base == nil {
		return g.hyper.Mean
	}
	return g.hyper.Mean + g.hyper.BaseWeight*g.base.mean(x)
}

// addPriorGradient adds scale times the gradient of the prior mean to grad.
func (g *GP) addPriorGradient(grad, x []float64, scale float64) {
	if g.base != nil {
		g.base.addMeanGradient(grad, x, scale*g.hyper.BaseWeight)
	}
}

// mean returns the posterior mean at x in O(n) operations.
func (g *GP) mean(x []float64) float64 {
	w := g.workspace()
	defer workspaces.Put(w)
	scaleTo(w.point, x, g.hyper.LengthScales)
	g.covariances(w.covariance, nil, w.point, g.scaled)
	return g.priorMean(x) + blas64.Dot(vector(w.covariance), vector(g.weights))
}

// addMeanGradient adds scale times the gradient of the posterior mean to grad.
func (g *GP) addMeanGradient(grad, x []float64, scale float64) {
	g.addPriorGradient(grad, x, scale)
	w := g.workspace()
	defer workspaces.Put(w)
	scaleTo(w.point, x, g.hyper.LengthScales)
	g.covariances(w.covariance, w.derivative, w.point, g.scaled)
	blas64.Scal(scale, vector(w.derivative))
	g.addGradient(grad, w.point, w.derivative, g.weights, g.scaled)
}

// residuals returns y − weight · mean of base at X; base may be nil if the
// weight is 0.
func residuals(obs Observations, base *GP, weight float64) []float64 {
	y := make([]float64, len(obs.Y))
	copy(y, obs.Y)
	if weight != 0 {
		for i, x := range obs.X {
			y[i] -= weight * base.mean(x)
		}
	}
	return y
}

// baseWeights returns the weights of a base that Fit tries for n observations.
// Two residuals or fewer do not show whether they are small.
func baseWeights(base *GP, n int) []float64 {
	switch {
	case base == nil:
		return []float64{0}
	case n < 3:
		return []float64{1}
	default:
		return []float64{1, 0.5, 0}
	}
}
