package surrogate

import (
	"errors"
	"fmt"
	"math"
)

// ErrNotPositiveDefinite is returned, wrapped with the largest jitter tried,
// by [New], [Fit] and [GP.Append] when the covariance of the observations has no Cholesky
// factor. It results from a Kernel that is not positive definite; with the kernels of this
// package and finite observations the jitter suffices.
var ErrNotPositiveDefinite = errors.New("covariance is not positive definite")

// Panic messages for the mistakes of a programmer.
const (
	panicDimension = "surrogate: dimension mismatch"
	panicLength    = "surrogate: length mismatch"
	panicPosterior = "surrogate: points of another posterior"
)

// finite reports whether v is neither infinite nor NaN.
func finite(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0)
}

// checkFinite returns an error that names the element of values, a slice
// called name, that is not finite.
func checkFinite(name string, values []float64) error {
	for i, v := range values {
		if !finite(v) {
			return fmt.Errorf("surrogate: %s[%d] is %v, want a finite number", name, i, v)
		}
	}
	return nil
}

// checkVariance returns an error unless v, called name, is finite and not
// negative.
func checkVariance(name string, v float64) error {
	if !finite(v) || v < 0 {
		return fmt.Errorf("surrogate: %s is %v, want a finite variance >= 0", name, v)
	}
	return nil
}
