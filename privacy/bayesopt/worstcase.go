package bayesopt

import (
	"gonum.org/v1/gonum/mat"
)

// WorstCase returns the ε for which a release that Algorithm 1 or 2 makes with the given
// sensitivity and ε is pure differential privacy for all data, provided that the scores, or the
// posterior means, are clipped to an interval of the given length in the same unit: ε·span/Δ. No
// assumption on the data is left, since nothing moves a clipped score by more than span.
//
// It bounds both mechanisms. Two exponential mechanisms over scores in one interval of length span
// have weights that differ by factors in [e^{−ε·span/2Δ}, e^{ε·span/2Δ}], and their sums likewise;
// Laplace noise of scale Δ/ε moves a density by at most e^{ε·span/Δ}. The noise of Algorithm 1 is
// above ten standard deviations of the prior, so that the result is a small multiple of ε where
// span is some tens of them.
func WorstCase(epsilon, sensitivity, span float64) float64 { return epsilon * span / sensitivity }

// PosteriorMeans returns the posterior means of a Gaussian process of mean 0 at candidates,
// k·(K + σ²I)⁻¹·v (equation 2 of Kusner et al.): kernel is K, the covariance of the n observed
// configurations, cross is k, of candidates (rows) and observed configurations (columns), and values
// are v. It reports false if the covariance is not positive definite. It panics if the sizes do
// not fit.
//
// Theorem 1 holds for the means after any search that chooses by earlier observations alone, not
// only for upper confidence bounds: given these, f(λ) is normal with the mean and the variance of
// the posterior.
func PosteriorMeans(kernel mat.Symmetric, cross mat.Matrix, noise float64, values []float64) ([]float64, bool) {
	n := kernel.SymmetricDim()
	candidates, m := cross.Dims()
	if m != n || len(values) != n {
		panic("bayesopt: dimension mismatch")
	}
	noisy := mat.NewSymDense(n, nil)
	noisy.CopySym(kernel)
	for i := range n {
		noisy.SetSym(i, i, noisy.At(i, i)+noise*noise)
	}
	var factor mat.Cholesky
	if !factor.Factorize(noisy) {
		return nil, false
	}
	solved := mat.NewVecDense(n, nil)
	if err := factor.SolveVecTo(solved, mat.NewVecDense(n, values)); err != nil {
		return nil, false
	}
	means := mat.NewVecDense(candidates, nil)
	means.MulVec(cross, solved)
	return means.RawVector().Data, true
}
