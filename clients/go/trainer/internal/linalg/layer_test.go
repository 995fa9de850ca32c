package linalg

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"
)

// TestLayer compares all operations of all engines with loops over elements, bit for
// bit: none of them has a fused form. Only sums need a tolerance against float64.
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

			sums, want := v.clone(), v.clone()
			e.SumRows(sums.Data, a.General)
			sums.check(t)
			for j := range columns {
				want.Data[j] = 0
				for i := range rows {
					want.Data[j] += a.Data[i*a.Stride+j]
				}
			}
			compareBits(t, e.String()+" SumRows", sums.General, want.General)
			checkReductions(t, e, a.General, b.General)
		}
	}
}

// checkReductions compares sums of products with the documented order and with sums
// in float64.
func checkReductions(t *testing.T, e *Engine, a, b blas32.General) {
	t.Helper()
	norms := make([]float64, a.Rows)
	e.SquaredNorms(norms, a)
	for i := range a.Rows {
		x, y := row(a, i), row(b, i)
		var dots [16]float32
		var squares [16]float64
		var product, size, norm float64
		for j := range x {
			dots[j%16] += float32(x[j] * y[j])
			squares[j%16] += float64(x[j]) * float64(x[j])
			product += float64(x[j]) * float64(y[j])
			size += math.Abs(float64(x[j]) * float64(y[j]))
			norm += float64(x[j]) * float64(x[j])
		}
		for half := 8; half > 0; half /= 2 {
			for j := range half {
				dots[j] += dots[j+half]
				squares[j] += squares[j+half]
			}
		}
		got := e.Dot(x, y)
		if !same(got, dots[0]) {
			t.Fatalf("%v: Dot of %d elements is %g, want %g", e, len(x), got, dots[0])
		}
		// Products below the normal numbers have an absolute error.
		tolerance := float64(len(x)+1) * (0x1p-23*size + 0x1p-149)
		if size < math.MaxFloat32 && math.Abs(float64(got)-product) > tolerance {
			t.Fatalf("%v: Dot of %d elements is %g, want %g ± %g", e, len(x), got, product, tolerance)
		}
		if math.Float64bits(norms[i]) != math.Float64bits(squares[0]) && (norms[i] == norms[i] || squares[0] == squares[0]) {
			t.Fatalf("%v: squared norm of %d elements is %g, want %g", e, len(x), norms[i], squares[0])
		}
		if !math.IsInf(norm, 0) && math.Abs(norms[i]-norm) > float64(len(x)+1)*0x1p-52*norm {
			t.Fatalf("%v: squared norm of %d elements is %g, want %g", e, len(x), norms[i], norm)
		}
	}
}

func TestLayerPanics(t *testing.T) {
	e := Scalar(1)
	a := blas32.General{Rows: 2, Cols: 3, Stride: 3, Data: make([]float32, 6)}
	b := blas32.General{Rows: 3, Cols: 2, Stride: 2, Data: make([]float32, 6)}
	for _, f := range []func(){
		func() { e.AddBias(a, make([]float32, 2)) },
		func() { e.AddBiasReLU(a, make([]float32, 4)) },
		func() { e.MaskReLU(a, b) },
		func() { e.ScaleRows(a, make([]float32, 3)) },
		func() { e.SumRows(make([]float32, 2), a) },
		func() { e.SquaredNorms(make([]float64, 3), a) },
		func() { e.Axpy(1, make([]float32, 2), make([]float32, 3)) },
		func() { e.Dot(make([]float32, 2), make([]float32, 3)) },
	} {
		expectPanic(t, badShape, f)
	}
	a.Data = a.Data[:5]
	expectPanic(t, shortData, func() { e.AddBias(a, make([]float32, 3)) })
}
