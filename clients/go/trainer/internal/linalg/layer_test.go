package linalg

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"
)

// TestLayer compares all operations of all engines with loops over elements, bit for
// bit: none of them is fused. Only the norms need a tolerance.
func TestLayer(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 11))
	for round := range 200 {
		rows, columns := random.IntN(6), dimension(random)
		a := newGuarded(random, rows, columns, random.IntN(4))
		b := newGuarded(random, rows, columns, random.IntN(4))
		v := newGuarded(random, 1, columns, 0)
		if round%2 == 0 {
			for _, g := range []guarded{a, b, v} {
				fillWild(random, g.General, round%4 == 0)
			}
		}
		factors := randomSlice(random, rows)
		for _, e := range engines() {
			for _, operation := range []struct {
				name string
				run  func(a blas32.General)
				want func(i, j int, x float32) float32
			}{
				{
					"AddBias", func(a blas32.General) { e.AddBias(a, v.Data) },
					func(_, j int, x float32) float32 { return x + v.Data[j] },
				},
				{
					"AddBiasReLU", func(a blas32.General) { e.AddBiasReLU(a, v.Data) },
					func(_, j int, x float32) float32 {
						if x+v.Data[j] < 0 {
							return 0
						}
						return x + v.Data[j]
					},
				},
				{
					"MaskReLU", func(a blas32.General) { e.MaskReLU(a, b.General) },
					func(i, j int, x float32) float32 {
						if b.Data[i*b.Stride+j] <= 0 {
							return 0
						}
						return x
					},
				},
				{
					"ScaleRows", func(a blas32.General) { e.ScaleRows(a, factors) },
					func(i, _ int, x float32) float32 { return x * factors[i] },
				},
				{
					"Axpy", func(a blas32.General) {
						for i := range a.Rows {
							e.Axpy(factors[i], row(b.General, i), row(a, i))
						}
					},
					func(i, j int, x float32) float32 { return x + float32(factors[i]*b.Data[i*b.Stride+j]) },
				},
			} {
				got, want := a.clone(), a.clone()
				operation.run(got.General)
				got.check(t)
				for i := range rows {
					for j := range columns {
						want.Data[i*want.Stride+j] = operation.want(i, j, want.Data[i*want.Stride+j])
					}
				}
				compareBits(t, e.String()+" "+operation.name, got.General, want.General)
			}
			checkNorms(t, e, a.General)
		}
	}
}

// checkNorms compares the squared norms with sums in float64 in another order. Squares of
// float32 are exact there.
func checkNorms(t *testing.T, e *Engine, a blas32.General) {
	t.Helper()
	norms := make([]float64, a.Rows)
	e.SquaredNorms(norms, a)
	for i, got := range norms {
		var want float64
		for _, x := range row(a, i) {
			want += float64(x) * float64(x)
		}
		if got == want || math.IsNaN(got) && math.IsNaN(want) {
			continue
		}
		if !(math.Abs(got-want) <= float64(a.Cols+1)*0x1p-52*want) || math.IsInf(want, 0) {
			t.Fatalf("%v: squared norm of %d elements is %g, want %g", e, a.Cols, got, want)
		}
	}
}

func TestLayerPanics(t *testing.T) {
	e := New()
	a := blas32.General{Rows: 2, Cols: 3, Stride: 3, Data: make([]float32, 6)}
	b := blas32.General{Rows: 3, Cols: 2, Stride: 2, Data: make([]float32, 6)}
	for _, f := range []func(){
		func() { e.AddBias(a, make([]float32, 2)) },
		func() { e.AddBiasReLU(a, make([]float32, 4)) },
		func() { e.MaskReLU(a, b) },
		func() { e.ScaleRows(a, make([]float32, 3)) },
		func() { e.SquaredNorms(make([]float64, 3), a) },
		func() { e.Axpy(1, make([]float32, 2), make([]float32, 3)) },
	} {
		expectPanic(t, badShape, f)
	}
	a.Data = a.Data[:5]
	expectPanic(t, shortData, func() { e.AddBias(a, make([]float32, 3)) })
}
