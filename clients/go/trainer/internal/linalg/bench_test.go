package linalg

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// BenchmarkGemm compares gonum with the engines. GFLOP/s counts a multiplication and
// an addition as two operations.
func BenchmarkGemm(b *testing.B) {
	type gemm func(tA, tB blas.Transpose, alpha float32, a, b blas32.General, beta float32, c blas32.General)
	implementations := []struct {
		name string
		gemm gemm
	}{{"gonum", blas32.Gemm}}
	for _, e := range engines() {
		implementations = append(implementations, struct {
			name string
			gemm gemm
		}{e.String(), e.Gemm})
	}
	for _, shape := range []struct {
		tA, tB  blas.Transpose
		m, k, n int
	}{
		{blas.NoTrans, blas.NoTrans, 512, 784, 128},
		{blas.Trans, blas.NoTrans, 512, 784, 128},
		{blas.NoTrans, blas.Trans, 512, 784, 128},
		{blas.NoTrans, blas.NoTrans, 1000, 1000, 1000},
		// MLP2 (784, 128, 64, 10) at a batch of 256: forward, the gradients of the
		// weights of the first two layers, and the gradient of the first activation.
		{blas.NoTrans, blas.NoTrans, 256, 784, 128},
		{blas.NoTrans, blas.NoTrans, 256, 128, 64},
		{blas.NoTrans, blas.NoTrans, 256, 64, 10},
		{blas.Trans, blas.NoTrans, 784, 256, 128},
		{blas.Trans, blas.NoTrans, 128, 256, 64},
		{blas.NoTrans, blas.Trans, 256, 64, 128},
	} {
		m, k, n := shape.m, shape.k, shape.n
		for _, implementation := range implementations {
			name := fmt.Sprintf("%c%c/%dx%dx%d/%s", shape.tA, shape.tB, m, k, n, implementation.name)
			b.Run(name, func(b *testing.B) {
				random := rand.New(rand.NewPCG(1, 2))
				matrix := func(t blas.Transpose, rows, columns int) blas32.General {
					if t == blas.Trans {
						rows, columns = columns, rows
					}
					return blas32.General{Rows: rows, Cols: columns, Stride: columns, Data: randomSlice(random, rows*columns)}
				}
				x, y, c := matrix(shape.tA, m, k), matrix(shape.tB, k, n), matrix(blas.NoTrans, m, n)
				b.ReportAllocs()
				for b.Loop() {
					implementation.gemm(shape.tA, shape.tB, 1, x, y, 0, c)
				}
				b.ReportMetric(2*float64(m)*float64(k)*float64(n)*float64(b.N)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
			})
		}
	}
}

// BenchmarkLayer measures the other operations on a batch of 256 rows.
func BenchmarkLayer(b *testing.B) {
	random := rand.New(rand.NewPCG(3, 4))
	const rows, columns = 256, 784
	a := blas32.General{Rows: rows, Cols: columns, Stride: columns, Data: randomSlice(random, rows*columns)}
	d := blas32.General{Rows: rows, Cols: columns, Stride: columns, Data: randomSlice(random, rows*columns)}
	v, norms, ones := make([]float32, columns), make([]float64, rows), make([]float32, rows)
	for i := range ones {
		ones[i] = 1
	}
	for _, e := range engines() {
		for _, operation := range []struct {
			name string
			run  func()
		}{
			{"AddBiasReLU", func() { e.AddBiasReLU(a, v) }},
			{"MaskReLU", func() { e.MaskReLU(d, a) }},
			{"ScaleRows", func() { e.ScaleRows(a, ones) }},
			{"SquaredNorms", func() { e.SquaredNorms(norms, a) }},
			{"Axpy", func() { e.Axpy(0, a.Data, d.Data) }},
		} {
			b.Run(operation.name+"/"+e.String(), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					operation.run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(rows*columns), "ns/element")
			})
		}
	}
}
