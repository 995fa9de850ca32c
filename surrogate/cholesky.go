package surrogate

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// Jitter added to the diagonal of a covariance that has no Cholesky factor
// without it, as multiples of the signal variance.
const (
	firstJitter = 1e-8
	lastJitter  = 1e-4
)

// lower returns the lower triangle of the n×n row-major matrix a.
func lower(n int, a []float64) blas64.Triangular {
	return blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Data: a, Stride: max(1, n)}
}

// vector returns x as a BLAS vector.
func vector(x []float64) blas64.Vector {
	return blas64.Vector{N: len(x), Data: x, Inc: 1}
}

// minPivot is the smallest squared pivot L_ii² that is not mere rounding error
// in the factorisation of an n×n covariance with the given signal variance.
func minPivot(n int, signalVariance float64) float64 {
	const epsilon = 0x1p-52
	return 10 * float64(n) * epsilon * signalVariance
}

// factorise computes the Cholesky factor of a covariance in place. The
// function fill must write the lower triangle of the n×n row-major matrix a
// without jitter; the strict upper triangle is left alone. Factorisation is
// tried without jitter first, since that changes the posterior least, and then
// with jitter from firstJitter to lastJitter in steps of ten times.
// It returns the jitter added to the diagonal, in units of the covariance.
func factorise(n int, a []float64, signalVariance float64, fill func()) (jitter float64, err error) {
	for multiple := 0.0; ; multiple = max(firstJitter, 10*multiple) {
		// The factor leaves room for the rounding of the products of ten.
		if multiple > 2*lastJitter {
			return 0, fmt.Errorf("surrogate: %w: %d observations, jitter up to %.3g = %.3g × signal variance tried",
				ErrNotPositiveDefinite, n, jitter, jitter/signalVariance)
		}
		jitter = multiple * signalVariance
		fill()
		for i := range n {
			a[i*n+i] += jitter
		}
		if cholesky(n, a, minPivot(n, signalVariance)) {
			return jitter, nil
		}
	}
}

// cholesky overwrites the lower triangle of a with its Cholesky factor and
// reports whether every squared pivot is at least minPivot.
func cholesky(n int, a []float64, minPivot float64) bool {
	if n == 0 {
		return true
	}
	symmetric := blas64.Symmetric{Uplo: blas.Lower, N: n, Data: a, Stride: n}
	if _, ok := lapack64.Potrf(symmetric); !ok {
		return false
	}
	for i := range n {
		// The comparison is false for NaN.
		if pivot := a[i*n+i]; !(pivot*pivot >= minPivot) {
			return false
		}
	}
	return true
}

// sumLogDiagonal returns Σ log L_ii, half the log-determinant of LLᵀ.
func sumLogDiagonal(n int, factor []float64) float64 {
	var sum float64
	for i := range n {
		sum += math.Log(factor[i*n+i])
	}
	return sum
}

// logLikelihood returns −½ zᵀz − Σ log L_ii − n/2 log 2π, the logarithm of the
// normal density with covariance LLᵀ at the point Lz.
func logLikelihood(n int, factor, z []float64) float64 {
	return -blas64.Dot(vector(z), vector(z))/2 - sumLogDiagonal(n, factor) - float64(n)/2*math.Log(2*math.Pi)
}
