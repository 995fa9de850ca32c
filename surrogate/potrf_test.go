package surrogate

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// The factor is gonum's up to rounding, the same to the last bit in both kinds of memory, and what has none for gonum has
// none. Nothing is written above the diagonal.
func TestPotrf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 2, 63, 64, 65, 128, 129, 191, 192, 193, 255, 256, 257, 300, 450} {
		for _, diagonal := range []float64{float64(n), 0} {
			stride := n + rng.IntN(5)
			a := blas64.Symmetric{Uplo: blas.Lower, N: n, Stride: stride, Data: make([]float64, n*stride)}
			for i := range a.Data {
				a.Data[i] = rng.Float64()
			}
			for i := range n {
				a.Data[i*stride+i] += diagonal
			}
			b := a
			b.Data = slices.Clone(a.Data)
			_, want := lapack64.Potrf(b)
			compact := newLower(n)
			for i, row := range lowerOf(a).rows {
				copy(compact.rows[i], row)
			}
			if got := potrf(lowerOf(a)); got != want {
				t.Errorf("n = %d: %t, want %t", n, got, want)
			}
			if want && !floats.EqualApprox(a.Data, b.Data, 1e-13) {
				t.Errorf("n = %d: another factor", n)
			}
			if got := potrf(compact); got != want {
				t.Errorf("n = %d in blocks: %t, want %t", n, got, want)
			}
			if want && !slices.EqualFunc(compact.rows, lowerOf(a).rows, slices.Equal) {
				t.Errorf("n = %d in blocks: another factor", n)
			}
		}
	}
}

func BenchmarkPotrf(b *testing.B) {
	const n = 1000
	covariance, work := newLower(n), newLower(n)
	for i, row := range covariance.rows {
		for j := range row {
			row[j] = 1 / float64(1+i-j)
		}
		row[i] = 10
	}
	for b.Loop() {
		for i, row := range covariance.rows {
			copy(work.rows[i], row)
		}
		if !potrf(work) {
			b.Fatal("no factor")
		}
	}
}
