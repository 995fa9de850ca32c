package linalg

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// compareExact compares a result with the product in float64, within the bound for
// sums in any order of Higham, "Accuracy and Stability of Numerical Algorithms",
// 2nd edition, SIAM 2002, section 3.5:
//
//	|C - Ĉ| <= γ(k+3) (|alpha| |A| |B| + |beta| |C|), γ(n) = nu / (1 - nu), u = 2⁻²⁴
func compareExact(t *testing.T, name string, p problem, got guarded) {
	t.Helper()
	k := p.k()
	gamma := float64(k+3) * 0x1p-24 / (1 - float64(k+3)*0x1p-24)
	for i := range got.Rows {
		for j, g := range row(got.General, i) {
			var sum, size float64
			if p.alpha != 0 {
				for q := range k {
					x, y := p.factors(i, j, q)
					sum += float64(x) * float64(y)
					size += math.Abs(float64(x) * float64(y))
				}
				sum *= float64(p.alpha)
				size *= math.Abs(float64(p.alpha))
			}
			if p.beta != 0 {
				c := float64(p.c.Data[i*p.c.Stride+j]) * float64(p.beta)
				sum += c
				size += math.Abs(c)
			}
			if math.Abs(float64(g)-sum) <= gamma*size || math.IsNaN(sum) && g != g || math.IsInf(sum, 0) && float64(g) == sum {
				continue
			}
			t.Fatalf("%s: %c%c, k = %d, alpha = %g, beta = %g: element %d, %d of %d by %d is %g, want %g ± %g",
				name, p.tA, p.tB, k, p.alpha, p.beta, i, j, got.Rows, got.Cols, g, sum, gamma*size)
		}
	}
}

func TestGemm(t *testing.T) {
	for _, e := range engines() {
		t.Run(e.String(), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 1))
			for range 80 {
				tA, tB := transposes(random)
				p := newProblem(random, tA, tB, dimension(random), dimension(random), dimension(random), 9)
				compareExact(t, e.String(), p, p.run(t, e))
			}
		})
	}
}

// TestGemmBlocks passes the block sizes in every direction.
func TestGemmBlocks(t *testing.T) {
	for _, shape := range [][3]int{{2*blockM + 5, 33, 17}, {7, blockN + 45, 9}, {19, 35, 2*blockK + 1}, {13, 17, blockK}} {
		for _, e := range engines() {
			random := rand.New(rand.NewPCG(2, 2))
			for _, tA := range []blas.Transpose{blas.NoTrans, blas.Trans} {
				for _, tB := range []blas.Transpose{blas.NoTrans, blas.Trans} {
					p := newProblem(random, tA, tB, shape[0], shape[1], shape[2], 3)
					p.alpha = 1
					compareExact(t, e.String(), p, p.run(t, e))
				}
			}
		}
	}
}

// TestGemmSpecialValues checks that infinities and NaN in A and B reach exactly the
// elements that they must, also from beside a zero, and that NaN in C counts only if
// beta is not 0.
func TestGemmSpecialValues(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for _, e := range engines() {
		for range 60 {
			tA, tB := transposes(random)
			p := newProblem(random, tA, tB, 1+random.IntN(30), 1+random.IntN(40), 1+random.IntN(30), 3)
			for _, g := range []guarded{p.a, p.b, p.c} {
				for range 2 {
					v := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0}[random.IntN(4)]
					g.Data[random.IntN(g.Rows)*g.Stride+random.IntN(g.Cols)] = v
				}
			}
			compareExact(t, e.String(), p, p.run(t, e))
		}
	}

	one, nan := blas32.General{Rows: 1, Cols: 1, Stride: 1, Data: []float32{1}}, float32(math.NaN())
	for _, e := range engines() {
		for _, test := range []struct{ alpha, a, beta, c, want float32 }{
			{alpha: 1, a: 2, beta: 0, c: nan, want: 2},
			{alpha: 0, a: nan, beta: 1, c: 3, want: 3},
			{alpha: 0, a: nan, beta: 0, c: nan, want: 0},
			{alpha: 1, a: nan, beta: 0, c: 0, want: nan},
			{alpha: 1, a: 2, beta: nan, c: 1, want: nan},
		} {
			a := blas32.General{Rows: 1, Cols: 1, Stride: 1, Data: []float32{test.a}}
			c := blas32.General{Rows: 1, Cols: 1, Stride: 1, Data: []float32{test.c}}
			e.Gemm(blas.NoTrans, blas.NoTrans, test.alpha, a, one, test.beta, c)
			if !same(c.Data[0], test.want) {
				t.Errorf("%v: %g * %g * 1 + %g * %g = %g, want %g", e, test.alpha, test.a, test.beta, test.c, c.Data[0], test.want)
			}
		}
	}
}

// TestGemmPart checks that an element of a product does not depend on which other rows
// and columns are computed.
func TestGemmPart(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, e := range engines() {
		p := newProblem(random, blas.NoTrans, blas.NoTrans, 50, 40, 300, 3)
		want := p.run(t, e)
		c := p.c.clone()
		a, b, part, wantPart := p.a.General, p.b.General, c.General, want.General
		a.Rows, a.Data = 21, a.Data[13*a.Stride:]
		b.Cols, b.Data = 11, b.Data[7:]
		part.Rows, part.Cols, part.Data = 21, 11, part.Data[13*part.Stride+7:]
		wantPart.Rows, wantPart.Cols, wantPart.Data = 21, 11, wantPart.Data[13*wantPart.Stride+7:]
		e.Gemm(p.tA, p.tB, p.alpha, a, b, p.beta, part)
		compareBits(t, e.String()+", rows 13 to 34 and columns 7 to 18 alone", part, wantPart)
	}
}

// TestGemmConcurrently uses one engine from several goroutines.
func TestGemmConcurrently(t *testing.T) {
	e := New()
	random := rand.New(rand.NewPCG(8, 8))
	var group sync.WaitGroup
	for range 6 {
		p := newProblem(random, blas.NoTrans, blas.NoTrans, 130, 120, 140, 3)
		want := p.run(t, e)
		group.Go(func() {
			for range 10 {
				c := p.c.clone()
				e.Gemm(p.tA, p.tB, p.alpha, p.a.General, p.b.General, p.beta, c.General)
				for i := range c.Data {
					if !same(c.Data[i], want.Data[i]) {
						t.Errorf("element %d is %g, want %g", i, c.Data[i], want.Data[i])
						return
					}
				}
			}
		})
	}
	group.Wait()
}

// TestNoAccessOutside places matrices against forbidden pages, where one element too
// many, read or written, is a fault.
func TestNoAccessOutside(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 13))
	for round := range 60 {
		m, n, k := 1+random.IntN(40), 1+random.IntN(70), 1+random.IntN(1+round%30)
		matrix := func(rows, columns int) blas32.General {
			data := fenced(t, rows*columns, round%2 == 0)
			fill(random, data)
			return blas32.General{Rows: rows, Cols: columns, Stride: columns, Data: data}
		}
		a, at, b, bt, c := matrix(m, k), matrix(k, m), matrix(k, n), matrix(n, k), matrix(m, n)
		d, bias, factors := matrix(m, n), matrix(1, n), matrix(1, m)
		for _, e := range engines() {
			e.Gemm(blas.NoTrans, blas.NoTrans, 1, a, b, 0, c)
			e.Gemm(blas.Trans, blas.NoTrans, 1, at, b, 1, c)
			e.Gemm(blas.NoTrans, blas.Trans, 1, a, bt, 2, c)
			e.Gemm(blas.Trans, blas.Trans, 1, at, bt, 0.5, c)
			e.AddBias(c, bias.Data)
			e.AddBiasReLU(c, bias.Data)
			e.MaskReLU(d, c)
			e.ScaleRows(d, factors.Data)
			e.SquaredNorms(make([]float64, m), d)
			e.Axpy(1, c.Data, d.Data)
		}
	}
}

func TestGemmPanics(t *testing.T) {
	matrix := func(rows, columns int) blas32.General {
		return blas32.General{Rows: rows, Cols: columns, Stride: max(1, columns), Data: make([]float32, max(0, rows*columns))}
	}
	short := matrix(3, 4)
	short.Data = short.Data[:11]
	narrow := matrix(3, 4)
	narrow.Stride = 3
	const no, yes = blas.NoTrans, blas.Trans
	for _, test := range []struct {
		tA, tB  blas.Transpose
		a, b, c blas32.General
		want    string
	}{
		{no, no, matrix(3, 4), matrix(5, 2), matrix(3, 2), badShape},
		{no, no, matrix(3, 4), matrix(4, 2), matrix(2, 3), badShape},
		{yes, no, matrix(3, 4), matrix(4, 2), matrix(3, 2), badShape},
		{no, yes, matrix(3, 4), matrix(4, 2), matrix(3, 2), badShape},
		{no, no, short, matrix(4, 2), matrix(3, 2), shortData},
		{no, no, matrix(2, 3), short, matrix(2, 4), shortData},
		{no, no, matrix(3, 2), matrix(2, 4), short, shortData},
		{no, no, narrow, matrix(4, 2), matrix(3, 2), badStride},
		{no, no, matrix(-1, 2), matrix(2, 2), matrix(-1, 2), badDimension},
		{'x', no, matrix(2, 2), matrix(2, 2), matrix(2, 2), badTranspose},
	} {
		expectPanic(t, test.want, func() { New().Gemm(test.tA, test.tB, 1, test.a, test.b, 0, test.c) })
	}
}

func expectPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := recover(); got != want {
			t.Errorf("panic %v, want %q", got, want)
		}
	}()
	f()
}

func FuzzGemm(f *testing.F) {
	f.Add(uint64(1), uint16(6), uint16(16), uint16(4), uint8(0), uint8(0))
	f.Add(uint64(2), uint16(13), uint16(33), uint16(257), uint8(1), uint8(3))
	f.Add(uint64(3), uint16(0), uint16(1), uint16(0), uint8(2), uint8(1))
	f.Add(uint64(4), uint16(150), uint16(31), uint16(5), uint8(3), uint8(0))
	list := engines()
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k uint16, transposed, gap uint8) {
		const most = 400 // keeps one execution short
		random := rand.New(rand.NewPCG(seed, 0))
		names := []blas.Transpose{blas.NoTrans, blas.Trans}
		p := newProblem(random, names[transposed&1], names[transposed>>1&1],
			int(m%most), int(n%most), int(k%most), int(gap))
		for _, e := range list {
			compareExact(t, e.String(), p, p.run(t, e))
		}
	})
}
