//go:build !race

package linalg

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

func TestNoAllocation(t *testing.T) {
	random := rand.New(rand.NewPCG(12, 12))
	matrix := func(rows, columns int) blas32.General {
		return blas32.General{Rows: rows, Cols: columns, Stride: columns, Data: randomSlice(random, rows*columns)}
	}
	a, b, c := matrix(130, 140), matrix(140, 120), matrix(130, 120)
	bias, factors, norms := make([]float32, 120), make([]float32, 130), make([]float64, 130)
	for _, e := range engines() {
		step := func() {
			e.Gemm(blas.NoTrans, blas.NoTrans, 1, a, b, 0, c)
			e.AddBias(c, bias)
			e.AddBiasReLU(c, bias)
			e.MaskReLU(c, c)
			e.ScaleRows(c, factors)
			e.SquaredNorms(norms, c)
			e.Axpy(2, bias, bias)
		}
		if got := testing.AllocsPerRun(50, step); got != 0 {
			t.Errorf("%v: %v allocations in a step", e, got)
		}
	}
}
