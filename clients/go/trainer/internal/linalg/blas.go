package linalg

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// BLAS returns gonum's BLAS with the matrix product of e, for [blas32.Use].
func (e *Engine) BLAS() blas.Float32 { return implementation{engine: e} }

type implementation struct {
	gonum.Implementation

	engine *Engine
}

// Sgemm is described at Engine.Gemm; A is m by k or, transposed, k by m.
func (i implementation) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	transA, transB := transposed(tA), transposed(tB)
	if transA {
		checkMatrix(k, m, lda, a)
	} else {
		checkMatrix(m, k, lda, a)
	}
	if transB {
		checkMatrix(n, k, ldb, b)
	} else {
		checkMatrix(k, n, ldb, b)
	}
	checkMatrix(m, n, ldc, c)
	i.engine.gemm(operands{
		m: m, n: n, k: k,
		alpha: alpha, beta: beta,
		a: operand{a, lda, transA},
		b: operand{b, ldb, !transB},
		c: c, ldc: ldc,
	})
}
