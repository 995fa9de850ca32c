package surrogate

import (
	"fmt"
	"math"
	"slices"

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
// covariance: row i has i + 1 entries. The rows of a posterior do not change
// once they are computed, so that those that extend it share them.
type triangle [][]float64

// grow returns a triangle with m more rows of zeros after the n of t, and the
// new rows as an m×(n+m) matrix.
func (t triangle) grow(m int) (grown triangle, tail blas64.General) {
	n := len(t)
	tail = newGeneral(m, n+m)
	grown = append(make(triangle, 0, n+m), t...)
	for i := range m {
		grown = append(grown, generalRow(tail, i)[:n+i+1])
	}
	return grown, tail
}

// solve overwrites x with L⁻¹x, or with L⁻ᵀx if transposed. It goes along rows by
// the vectorised loops of package floats, which take a quarter of the time of
// BLAS's Trsv.
func (t triangle) solve(transpose blas.Transpose, x []float64) {
	if transpose == blas.NoTrans {
		for i, row := range t {
			x[i] = (x[i] - floats.Dot(row[:i], x[:i])) / row[i]
		}
		return
	}
	for i, row := range slices.Backward(t) {
		x[i] /= row[i]
		floats.AddScaled(x[:i], -x[i], row[:i])
	}
}

// solveRows overwrites every row x of a with L⁻¹x, whose first entries are there already, as
// many as solved says. Each row of L is used for all of a few x at once, by the product of a
// matrix and a vector, which has several sums under way.
func (t triangle) solveRows(a blas64.General, solved int) {
	if len(t) == 0 {
		return
	}
	const few = 16
	for first := 0; first < a.Rows; first += few {
		done := blas64.General{Rows: min(few, a.Rows-first), Stride: a.Stride, Data: a.Data[first*a.Stride:]}
		for i := solved; i < len(t); i++ {
			row := t[i]
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

// eliminate turns the rows that follow the n of t, an m×(n+m) matrix of
// covariances, into rows of the Cholesky factor left of column n, and into the
// Schur complement right of it, which it returns:
//
//	[K  ·]   [L  0] [Lᵀ Vᵀ]
//	[B  C] = [V  P] [0  Pᵀ]   with V = BL⁻ᵀ and PPᵀ = C − VVᵀ.
func (t triangle) eliminate(tail blas64.General) (complement blas64.Symmetric) {
	n, m := len(t), tail.Rows
	complement = blas64.Symmetric{Uplo: blas.Lower, N: m, Stride: tail.Stride, Data: tail.Data[min(n, len(tail.Data)):]}
	if n > 0 && m > 0 {
		left := columns(tail, 0, n)
		t.solveRows(left, 0)
		blas64.Syrk(blas.NoTrans, -1, left, 1, complement)
	}
	return complement
}

// columns returns count columns of a from the first on.
func columns(a blas64.General, first, count int) blas64.General {
	return blas64.General{Rows: a.Rows, Cols: count, Stride: a.Stride, Data: a.Data[first:]}
}

// blockSize is the number of rows that are factorised at once, few enough for gonum to do it without blocks of its own.
const blockSize = 64

// lower is the lower triangle of a symmetric n×n matrix in the shape in which it is
// factorised: its rows, and the same memory as matrices of blockSize rows each.
type lower struct {
	rows   triangle
	blocks []blas64.General // block b has the rows from b·blockSize on, up to the diagonal of its last one
}

// newLower returns a matrix of zeros in about half of the memory that a square takes.
func newLower(n int) lower {
	a := lower{rows: make(triangle, 0, n)}
	for first := 0; first < n; first += blockSize {
		end := min(first+blockSize, n)
		a.add(newGeneral(end-first, end))
	}
	return a
}

// lowerOf returns the lower triangle of a, whose memory it shares.
func lowerOf(a blas64.Symmetric) lower {
	l := lower{rows: make(triangle, 0, a.N)}
	for first := 0; first < a.N; first += blockSize {
		end := min(first+blockSize, a.N)
		l.add(blas64.General{Rows: end - first, Cols: end, Stride: a.Stride, Data: a.Data[first*a.Stride:]})
	}
	return l
}

// add appends a block to a.
func (a *lower) add(block blas64.General) {
	a.blocks = append(a.blocks, block)
	for i := range block.Rows {
		a.rows = append(a.rows, generalRow(block, i)[:len(a.rows)+1])
	}
}

// minPivot is the smallest squared pivot L_ii² that is not mere rounding error
// in the factorisation of an n×n covariance with the given signal variance.
func minPivot(n int, signalVariance float64) float64 {
	const epsilon = 0x1p-52
	return 10 * float64(n) * epsilon * signalVariance
}

// factorise computes the Cholesky factor of a covariance a in place. The function fill
// must write its lower triangle without jitter; memory above the diagonal is left alone.
// Factorisation is tried with the multiple smallest of the signal variance added to the
// diagonal (usually 0, since that changes the posterior least), and then with jitter
// from firstJitter to lastJitter in steps of ten times. It returns the jitter added, in
// units of the covariance.
func factorise(a lower, signalVariance, smallest float64, fill func()) (jitter float64, err error) {
	for multiple := smallest; ; multiple = max(firstJitter, 10*multiple) {
		// The factor leaves room for the rounding of the products of ten.
		if multiple > 2*lastJitter {
			return 0, fmt.Errorf("surrogate: %w: %d points, jitter up to %.3g = %.3g × signal variance tried",
				ErrNotPositiveDefinite, len(a.rows), jitter, jitter/signalVariance)
		}
		jitter = multiple * signalVariance
		fill()
		for i, row := range a.rows {
			row[i] += jitter
		}
		if cholesky(a, minPivot(len(a.rows), signalVariance)) {
			return jitter, nil
		}
	}
}

// cholesky overwrites a with its Cholesky factor and reports whether every squared
// pivot is at least minPivot.
func cholesky(a lower, minPivot float64) bool {
	if !potrf(a) {
		return false
	}
	for i, row := range a.rows {
		// The comparison is false for NaN.
		if !(row[i]*row[i] >= minPivot) {
			return false
		}
	}
	return true
}

// potrf overwrites a with its Cholesky factor, and reports whether it has one. Each block is
// eliminated by the rows above it, with the fast products of solveRows. That takes 0.6 of the time
// of lapack64.Potrf, which also starts GOMAXPROCS goroutines, whatever the [Workers].
func potrf(a lower) bool {
	for j, block := range a.blocks {
		if _, ok := lapack64.Potrf(a.rows[:j*blockSize].eliminate(block)); !ok {
			return false
		}
	}
	return true
}

// logLikelihood returns −½ zᵀz − Σ log L_ii − n/2 log 2π, the logarithm of the
// normal density with covariance LLᵀ at the point Lz.
func logLikelihood(factor triangle, z []float64) float64 {
	sum := -blas64.Dot(vector(z), vector(z)) / 2
	for i, row := range factor {
		sum -= math.Log(row[i])
	}
	return sum - float64(len(factor))/2*math.Log(2*math.Pi)
}
