package model

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// matrices multiplies float32 matrices for all networks: the one place in which to
// put a faster implementation.
//
//	C = α op(A) op(B) + β C
//
// is as in BLAS, with row-major matrices.
var matrices interface {
	Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
		beta float32, c []float32, ldc int)
} = gonum.Implementation{}

// vectors adds multiples of float32 vectors and takes their norms.
var vectors gonum.Implementation
