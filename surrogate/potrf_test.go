package surrogate

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// The factor is that of gonum, to the last bit, and so is what has none.
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
			if got := potrf(a); got != want {
				t.Errorf("n = %d: %t, want %t", n, got, want)
			}
			if want && !slices.Equal(a.Data, b.Data) {
				t.Errorf("n = %d: another factor", n)
			}
		}
	}
}

func BenchmarkPotrf(b *testing.B) {
	const n = 1000
	data := make([]float64, n*n)
	for i := range n {
		for j := range n {
			data[i*n+j] = 1 / float64(1+max(i-j, j-i))
		}
		data[i*n+i] = 10
	}
	work := make([]float64, n*n)
	for b.Loop() {
		copy(work, data)
		if !potrf(blas64.Symmetric{Uplo: blas.Lower, N: n, Stride: n, Data: work}) {
			b.Fatal("no factor")
		}
	}
}
