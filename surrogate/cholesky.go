package surrogate

import (
	"fmt"
	"math"
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// Jitter added to the diagonal of a covariance that has no Cholesky factor
// without it, as multiples of the signal variance.
const (
	firstJitter = 1e-8
	lastJitter  = 1e-4
)

// vector returns x as a BLAS vector.
func vector(x []float64) blas64.Vector {
	return blas64.Vector{N: len(x), Data: x, Inc: 1}
}

// triangle is a lower triangular n×n matrix, the Cholesky factor of a
// covariance. Its rows do not change once they are computed, so that a factor
// and those that extend it share memory: only one of them can have each spare
// row, and the others copy.
type triangle struct {
	n, stride int
	data      []float64     // stride×stride row-major
	taken     *atomic.Int64 // rows of data in use
}

// newTriangle returns an n×n triangle of zeros without spare rows.
func newTriangle(n int) triangle {
	return allocate(n, max(1, n))
}

// allocate returns an n×n triangle of zeros with stride − n spare rows.
func allocate(n, stride int) triangle {
	t := triangle{n: n, stride: stride, data: make([]float64, stride*stride), taken: new(atomic.Int64)}
	t.taken.Store(int64(n))
	return t
}

// grow returns a triangle with m more rows, of undefined content, after those of t.
func (t triangle) grow(m int) triangle {
	n := t.n + m
	if n <= t.stride && t.taken.CompareAndSwap(int64(t.n), int64(n)) {
		t.n = n
		return t
	}
	next := allocate(n, n+n/8+7)
	for i := range t.n {
		copy(next.row(i), t.row(i))
	}
	return next
}

// row returns row i up to the diagonal, i + 1 entries.
func (t triangle) row(i int) []float64 {
	return t.data[i*t.stride : i*t.stride+i+1]
}

// raw returns t as a BLAS matrix.
func (t triangle) raw() blas64.Triangular {
	return blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: t.n, Data: t.data, Stride: t.stride}
}

// solve overwrites x with L⁻¹x, or with L⁻ᵀx if transposed. It goes along rows by
// the vectorised loops of package floats, which take a quarter of the time of
// BLAS's Trsv.
func (t triangle) solve(transpose blas.Transpose, x []float64) {
	if transpose == blas.NoTrans {
		for i := range t.n {
			row := t.row(i)
			x[i] = (x[i] - floats.Dot(row[:i], x[:i])) / row[i]
		}
		return
	}
	for i := t.n - 1; i >= 0; i-- {
		row := t.row(i)
		x[i] /= row[i]
		floats.AddScaled(x[:i], -x[i], row[:i])
	}
}

// solveRows overwrites every row x of a with L⁻¹x. Each row of L is used for all of a few
// x at once, by the product of a matrix and a vector, which has several sums under way.
func (t triangle) solveRows(a blas64.General) {
	if t.n == 0 {
		return
	}
	const few = 16
	for first := 0; first < a.Rows; first += few {
		done := blas64.General{Rows: min(few, a.Rows-first), Stride: a.Stride, Data: a.Data[first*a.Stride:]}
		for i := range t.n {
			row := t.row(i)
			next := blas64.Vector{N: done.Rows, Inc: a.Stride, Data: done.Data[i:]}
			if done.Cols = i; i > 0 {
				blas64.Gemv(blas.NoTrans, -1, done, vector(row[:i]), 1, next)
			}
			for r := range next.N {
				next.Data[r*next.Inc] /= row[i]
			}
		}
	}
}

// tail splits the rows from n on into the rectangle left of column n and the
// square block on the diagonal.
func (t triangle) tail(n int) (left blas64.General, corner blas64.Symmetric) {
	m := t.n - n
	left = blas64.General{Rows: m, Cols: n, Stride: t.stride, Data: t.data[n*t.stride:]}
	corner = blas64.Symmetric{Uplo: blas.Lower, N: m, Stride: t.stride, Data: t.data[min(n*t.stride+n, len(t.data)):]}
	return left, corner
}

// eliminate turns the rows from n on, which hold covariances, into rows of the
// Cholesky factor left of column n, and into the Schur complement right of it:
//
//	[K  ·]   [L  0] [Lᵀ Vᵀ]
//	[B  C] = [V  P] [0  Pᵀ]   with V = BL⁻ᵀ and PPᵀ = C − VVᵀ.
//
// The first n rows hold L.
func (t triangle) eliminate(n int) {
	if n == 0 || n == t.n {
		return
	}
	left, corner := t.tail(n)
	head := t
	head.n = n
	head.solveRows(left)
	blas64.Syrk(blas.NoTrans, -1, left, 1, corner)
}

// minPivot is the smallest squared pivot L_ii² that is not mere rounding error
// in the factorisation of an n×n covariance with the given signal variance.
func minPivot(n int, signalVariance float64) float64 {
	const epsilon = 0x1p-52
	return 10 * float64(n) * epsilon * signalVariance
}

// factorise computes the Cholesky factor of a covariance a in place. The
// function fill must write its lower triangle without jitter; the strict upper
// triangle is left alone. Factorisation is tried with the multiple smallest of
// the signal variance added to the diagonal (usually 0, since that changes the
// posterior least), and then with jitter from firstJitter to lastJitter in steps
// of ten times. It returns the jitter added, in units of the covariance.
func factorise(a blas64.Symmetric, signalVariance, smallest float64, fill func()) (jitter float64, err error) {
	for multiple := smallest; ; multiple = max(firstJitter, 10*multiple) {
		// The factor leaves room for the rounding of the products of ten.
		if multiple > 2*lastJitter {
			return 0, fmt.Errorf("surrogate: %w: %d points, jitter up to %.3g = %.3g × signal variance tried",
				ErrNotPositiveDefinite, a.N, jitter, jitter/signalVariance)
		}
		jitter = multiple * signalVariance
		fill()
		for i := range a.N {
			a.Data[i*a.Stride+i] += jitter
		}
		if cholesky(a, minPivot(a.N, signalVariance)) {
			return jitter, nil
		}
	}
}

// cholesky overwrites the lower triangle of a with its Cholesky factor and
// reports whether every squared pivot is at least minPivot.
func cholesky(a blas64.Symmetric, minPivot float64) bool {
	if a.N == 0 {
		return true
	}
	if !potrf(a) {
		return false
	}
	for i := range a.N {
		// The comparison is false for NaN.
		if pivot := a.Data[i*a.Stride+i]; !(pivot*pivot >= minPivot) {
			return false
		}
	}
	return true
}

// blockSize is that of gonum's blocked algorithms.
const blockSize = 64

// potrf overwrites the lower triangle of a with its Cholesky factor, and reports whether
// it has one. It does what lapack64.Potrf does, to the last bit, but on the calling
// goroutine: that one starts as many as Go has processors, over which [Workers] have no
// power.
func potrf(a blas64.Symmetric) bool {
	for j := 0; j < a.N; j += blockSize {
		width := min(blockSize, a.N-j)
		left := block(a, j, 0, width, j)
		corner := blas64.Symmetric{Uplo: blas.Lower, N: width, Stride: a.Stride, Data: a.Data[j*a.Stride+j:]}
		if j > 0 {
			blas64.Syrk(blas.NoTrans, -1, left, 1, corner)
		}
		factor, ok := lapack64.Potrf(corner)
		if !ok {
			return false
		}
		if rest := a.N - j - width; rest > 0 {
			panel := block(a, j+width, j, rest, width)
			if j > 0 {
				subtractProduct(panel, block(a, j+width, 0, rest, j), left)
			}
			blas64.Trsm(blas.Right, blas.Trans, 1, factor, panel)
		}
	}
	return true
}

// subtractProduct computes c −= a·bᵀ, where b has at most blockSize rows, in the order of
// gonum's parallel product: block by block, and those of one row in turn. Its own product
// of single blocks is not parallel.
func subtractProduct(c, a, b blas64.General) {
	const fewBlocks = 4 // below, gonum does not cut the matrices
	if c.Rows <= (fewBlocks-1)*blockSize {
		blas64.Gemm(blas.NoTrans, blas.Trans, -1, a, b, 1, c)
		return
	}
	for i := 0; i < c.Rows; i += blockSize {
		rows := min(blockSize, c.Rows-i)
		part := blas64.General{Rows: rows, Cols: c.Cols, Stride: c.Stride, Data: c.Data[i*c.Stride:]}
		for k := 0; k < a.Cols; k += blockSize {
			cols := min(blockSize, a.Cols-k)
			blas64.Gemm(blas.NoTrans, blas.Trans, -1,
				blas64.General{Rows: rows, Cols: cols, Stride: a.Stride, Data: a.Data[i*a.Stride+k:]},
				blas64.General{Rows: b.Rows, Cols: cols, Stride: b.Stride, Data: b.Data[k:]}, 1, part)
		}
	}
}

// block returns a rectangle of the lower triangle of a.
func block(a blas64.Symmetric, i, j, rows, cols int) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: a.Stride, Data: a.Data[i*a.Stride+j:]}
}

// logLikelihood returns −½ zᵀz − Σ log L_ii − n/2 log 2π, the logarithm of the
// normal density with covariance LLᵀ at the point Lz.
func logLikelihood(factor triangle, z []float64) float64 {
	sum := -blas64.Dot(vector(z), vector(z)) / 2
	for i := range factor.n {
		sum -= math.Log(factor.row(i)[i])
	}
	return sum - float64(factor.n)/2*math.Log(2*math.Pi)
}
