package surrogate

import (
	"math"

	"github.com/dpareto/dpareto/internal/fastexp"
)

// Kernel is a stationary correlation function, written as a function of the
// squared scaled distance
//
//	r² = Σ_j ((x_j − x'_j)/ℓ_j)².
//
// In terms of r² all kernels here have a derivative that is finite at 0, so
// that no gradient needs a special case for equal points.
//
// Implementations must be positive definite in every dimension they are used
// in, must have correlation 1 at r² = 0, and must be safe for concurrent use.
type Kernel interface {
	// Name returns a short identifier such as "matern52".
	Name() string

	// Correlation returns the correlation k at r2 >= 0 and its derivative
	// dk = dk/d(r²).
	Correlation(r2 float64) (k, dk float64)
}

const sqrt5 = 2.2360679774997896964091736687312762354406 // OEIS A002163

// Matern52 is the Matérn correlation with smoothness 5/2, the usual choice for
// hyperparameter tuning: samples are twice differentiable.
//
//	k  = (1 + √5 r + 5r²/3) e^{−√5 r}
//	dk = −5/6 (1 + √5 r) e^{−√5 r}
//
// See Rasmussen and Williams, Gaussian Processes for Machine Learning, MIT
// Press 2006, equation 4.17.
type Matern52 struct{}

// Name returns "matern52".
func (Matern52) Name() string { return "matern52" }

// Correlation implements [Kernel].
func (Matern52) Correlation(r2 float64) (k, dk float64) {
	z := sqrt5 * math.Sqrt(r2)
	power, rest := fastexp.Split(-z)
	e := power + rest
	if z > -fastexp.Least {
		e = 0
	}
	return (1 + z + 5./3*r2) * e, -5. / 6 * (1 + z) * e
}

// SquaredExponential is the Gaussian correlation: samples are infinitely
// differentiable, which is often too optimistic.
//
//	k  = e^{−r²/2}
//	dk = −k/2
//
// See Rasmussen and Williams, Gaussian Processes for Machine Learning, MIT
// Press 2006, equation 4.9.
type SquaredExponential struct{}

// Name returns "squared-exponential".
func (SquaredExponential) Name() string { return "squared-exponential" }

// Correlation implements [Kernel].
func (SquaredExponential) Correlation(r2 float64) (k, dk float64) {
	k = math.Exp(-r2 / 2)
	return k, -k / 2
}

// correlate overwrites the squared distances in k by scale times their correlations, and
// stores scale times the derivatives of these to dk unless that is nil.
func correlate(kernel Kernel, scale float64, k, dk []float64) {
	if matern, ok := kernel.(Matern52); ok { // the usual one without dynamic calls
		for i, r2 := range k {
			c, dc := matern.Correlation(r2)
			k[i] = scale * c
			if dk != nil {
				dk[i] = scale * dc
			}
		}
		return
	}
	for i, r2 := range k {
		c, dc := kernel.Correlation(r2)
		k[i] = scale * c
		if dk != nil {
			dk[i] = scale * dc
		}
	}
}
