package bayesopt

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/privacy"
)

// Process is the posterior of a Gaussian process with mean 0 over finitely many candidates.
type Process struct {
	mean       []float64
	covariance *mat.SymDense
	noise      float64 // variance
}

// NewProcess returns the prior with the given covariance matrix and standard deviation of
// the observation noise. It panics unless the latter is positive and finite.
func NewProcess(kernel mat.Symmetric, noise float64) *Process {
	if !(noise > 0) || math.IsInf(noise, 1) {
		panic("bayesopt: noise is not positive and finite")
	}
	n := kernel.SymmetricDim()
	covariance := mat.NewSymDense(n, nil)
	covariance.CopySym(kernel)
	return &Process{mean: make([]float64, n), covariance: covariance, noise: noise * noise}
}

// Mean returns the posterior means, which the next observation changes.
func (p *Process) Mean() []float64 { return p.mean }

// Variance returns the posterior variance of a candidate, without observation noise.
func (p *Process) Variance(candidate int) float64 {
	return math.Max(0, p.covariance.At(candidate, candidate))
}

// Observe takes an observation of a candidate into account, in |Λ|² operations:
//
//	μ ← μ + k·(v − μ_i)/s,  K ← K − k·kᵀ/s,  k = K_{·i}, s = K_ii + σ².
func (p *Process) Observe(candidate int, value float64) {
	n := len(p.mean)
	k := mat.NewVecDense(n, nil)
	for j := range n {
		k.SetVec(j, p.covariance.At(j, candidate))
	}
	s := p.Variance(candidate) + p.noise
	rate := (value - p.mean[candidate]) / s
	for j := range n {
		p.mean[j] += rate * k.AtVec(j)
	}
	p.covariance.SymRankOne(p.covariance, -1/s, k)
}

// Search runs the optimisation of Algorithm 1: T times it evaluates the candidate with the
// largest upper confidence bound μ + √β_t·σ_t, the first of equal ones. It returns the
// posterior and the largest observation, for [Noisy.ReleaseCandidate] and
// [Noisy.ReleaseMaximum]; by themselves they are not private. kernel is k_2 of the candidates,
// of 1 on the diagonal, and evaluate returns a noisy utility in standard deviations of the
// prior.
//
// It returns the errors of Validate, evaluate and ctx, and privacy.FieldErrors for a "kernel"
// with another diagonal and a "utility" that is not finite. It panics if the order of the
// kernel is not |Λ|.
func (a Noisy) Search(ctx context.Context, kernel mat.Symmetric, evaluate func(ctx context.Context, candidate int) (float64, error)) (posterior *Process, best float64, err error) {
	if err := a.Validate(); err != nil {
		return nil, 0, err
	}
	n := kernel.SymmetricDim()
	if int64(n) != a.Candidates {
		panic("bayesopt: dimension mismatch")
	}
	for i := range n {
		if math.Abs(kernel.At(i, i)-1) > 1e-9 {
			return nil, 0, privacy.FieldErrorf("kernel", "must be 1 on the diagonal, is %g at %d", kernel.At(i, i), i)
		}
	}
	posterior, best = NewProcess(kernel, a.Noise), math.Inf(-1)
	for t := int64(1); t <= a.Evaluations; t++ {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		width := math.Sqrt(math.Max(0, a.regretBeta(t, a.Delta/4)))
		next, most := 0, math.Inf(-1)
		for i, mean := range posterior.Mean() {
			if bound := mean + width*math.Sqrt(posterior.Variance(i)); bound > most {
				next, most = i, bound
			}
		}
		value, err := evaluate(ctx, next)
		if err == nil && (math.IsNaN(value) || math.IsInf(value, 0)) {
			err = privacy.FieldErrorf("utility", "of candidate %d is %g", next, value)
		}
		if err != nil {
			return nil, 0, err
		}
		posterior.Observe(next, value)
		best = math.Max(best, value)
	}
	return posterior, best, nil
}
