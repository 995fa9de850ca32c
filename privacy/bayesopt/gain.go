package bayesopt

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/privacy"
)

// InformationGain bounds the largest information gain γ_T of T noisy observations.
type InformationGain struct {
	// Upper is a bound from above.
	Upper float64
	// Relaxed is the gain of divisible observations. The best division bounds γ_T from above;
	// Upper exceeds the gain of this division by the duality gap.
	Relaxed float64
	// Weights are the numbers of observations of each candidate, with sum T.
	Weights []float64
}

// BoundInformationGain bounds the largest information gain of T >= 1 observations with
// noise of standard deviation σ > 0, among candidates whose utilities have the covariance
// matrix kernel. With repetitions,
//
//	γ_T = max ½·log det(I + σ⁻²K_A) <= max_{w >= 0, Σw = T} F(w),
//	F(w) = ½·log det(I + σ⁻²·W^½·K·W^½).
//
// F is concave, so that for every w F(w) + T·max g − w·g, with the gradient g, bounds its
// maximum: a certificate that needs no convergence. The multiplicative rule w_i ←
// w_i·g_i·T/w·g raises F until the bound is within the relative tolerance >= 0 of F, or for
// 1000 rounds, of |Λ|³ operations each.
//
// The asymptotic bounds of Srinivas et al. (2010), O((log T)^{d+1}) and the like, have unknown
// constants and are of no use here. The errors are ctx.Err(), privacy.FieldErrors for
// "evaluations" and "noise", and one for a kernel that is not positive semidefinite.
func BoundInformationGain(ctx context.Context, kernel mat.Symmetric, noise float64, evaluations int64, tolerance float64) (InformationGain, error) {
	const rounds = 1000
	if err := errors.Join(checkCount("evaluations", evaluations), privacy.CheckPositive("noise", noise)); err != nil {
		return InformationGain{}, err
	}
	n, total := kernel.SymmetricDim(), float64(evaluations)
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = total / float64(n)
	}
	g := gainGradient{kernel: kernel, noise: noise, gradient: make([]float64, n)}
	best := InformationGain{Upper: math.Inf(1)}
	for range rounds {
		if err := ctx.Err(); err != nil {
			return InformationGain{}, err
		}
		value, ok := g.at(weights)
		if !ok {
			return InformationGain{}, errors.New("bayesopt: the kernel matrix is not positive semidefinite")
		}
		slope := floats.Dot(weights, g.gradient)
		best.Relaxed = value
		// What rounding may take away is far less than this.
		best.Upper = math.Min(best.Upper, (value+total*floats.Max(g.gradient)-slope)*(1+1e-9)+1e-12)
		best.Weights = append(best.Weights[:0], weights...)
		if best.Upper <= (1+tolerance)*value {
			break
		}
		for i := range weights {
			weights[i] *= g.gradient[i] * total / slope
		}
	}
	return best, nil
}

// gainGradient computes F and its gradient.
type gainGradient struct {
	kernel   mat.Symmetric
	noise    float64
	gradient []float64

	factor mat.Cholesky
	inner  *mat.SymDense
	solved mat.Dense
}

// at returns F(w) and sets the gradient, ½σ⁻² times the variances of the posterior:
// K_ii − σ⁻²·k_iᵀ·W^½·A⁻¹·W^½·k_i for A = I + σ⁻²·W^½·K·W^½.
func (g *gainGradient) at(w []float64) (float64, bool) {
	n := len(w)
	if g.inner == nil {
		g.inner = mat.NewSymDense(n, nil)
	}
	precision := 1 / (g.noise * g.noise)
	scaled := mat.NewDense(n, n, nil) // σ⁻¹·W^½·K
	for i := range n {
		root := math.Sqrt(w[i]) / g.noise
		for j := range n {
			scaled.Set(i, j, root*g.kernel.At(i, j))
		}
		for j := i; j < n; j++ {
			g.inner.SetSym(i, j, root*g.kernel.At(i, j)*math.Sqrt(w[j])/g.noise)
		}
		g.inner.SetSym(i, i, 1+g.inner.At(i, i))
	}
	if !g.factor.Factorize(g.inner) {
		return 0, false
	}
	if err := g.factor.SolveTo(&g.solved, scaled); err != nil {
		if _, ok := errors.AsType[mat.Condition](err); !ok { // of no consequence: the eigenvalues are at least 1
			return 0, false
		}
	}
	for i := range n {
		reduction := mat.Dot(scaled.ColView(i), g.solved.ColView(i))
		g.gradient[i] = 0.5 * precision * math.Max(0, g.kernel.At(i, i)-reduction)
	}
	return 0.5 * g.factor.LogDet(), true
}
