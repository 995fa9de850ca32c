package linalg

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"
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

// TestGemmOrder compares the bits of all engines that promise them with the order of
// operations as documented, written down as directly as possible.
func TestGemmOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for round := range 120 {
		tA, tB := transposes(random)
		p := newProblem(random, tA, tB, dimension(random), random.IntN(70), random.IntN(600), 5)
		wild := round%2 == 0
		if wild {
			for _, g := range []guarded{p.a, p.b, p.c} {
				fillWild(random, g.General, round%4 == 0)
			}
		}
		want := p.c.clone()
		k := p.k()
		blocks := (k + 255) / 256
		for i := range want.Rows {
			for j := range want.Cols {
				c := &want.Data[i*want.Stride+j]
				switch p.beta {
				case 0:
					*c = 0
				default:
					*c *= p.beta
				}
				for q, block := 0, 0; block < blocks && p.alpha != 0; block++ {
					end := q + k/blocks
					if block < k%blocks {
						end++
					}
					var sum float32
					for ; q < end; q++ {
						x, y := p.factors(i, j, q)
						sum += float32(x * y)
					}
					*c += float32(p.alpha * sum)
				}
			}
		}
		for _, e := range reproducibleEngines() {
			compareBits(t, e.String(), p.run(t, e).General, want.General)
		}
	}
}

// TestGoldenBits pins the bits of a product for all machines.
func TestGoldenBits(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	p := newProblem(random, blas.Trans, blas.NoTrans, 61, 47, 300, 0)
	p.alpha, p.beta = 0.7, 0.3
	for _, g := range []guarded{p.a, p.b, p.c} {
		for i := range g.Data {
			g.Data[i] = float32(random.IntN(1<<24)-1<<23) / (1 << 20)
		}
	}
	const want = 0x2669ee87e1218360
	for _, e := range append(reproducibleEngines(), Reproducible(3)) {
		hash := fnv.New64a()
		if err := binary.Write(hash, binary.LittleEndian, p.run(t, e).Data); err != nil {
			t.Fatal(err)
		}
		if got := hash.Sum64(); got != want {
			t.Errorf("%v: hash %#x, want %#x", e, got, uint64(want))
		}
	}
}

func TestReproducibleIsScalar(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	p := newProblem(random, blas.NoTrans, blas.Trans, 100, 90, 270, 0)
	compareBits(t, "Reproducible", p.run(t, Reproducible(1)).General, p.run(t, Scalar(1)).General)
	if name := Scalar(1).String(); name != "scalar" {
		t.Errorf("Scalar uses %s", name)
	}
}

// TestGemmWorkers checks that neither workers nor the other rows and columns decide
// about bits.
func TestGemmWorkers(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, shape := range [][3]int{{301, 150, 90}, {40, 1100, 300}, {1500, 10, 300}, {5, 3000, 150}} {
		for _, one := range engines() {
			tA, tB := transposes(random)
			p := newProblem(random, tA, tB, shape[0], shape[1], shape[2], 3)
			p.alpha = 1
			want := p.run(t, one)
			for _, workers := range []int{2, 3, 7} {
				e := newEngine(one.kernels, workers)
				compareBits(t, fmt.Sprintf("%v with %d workers", e, workers), p.run(t, e).General, want.General)
			}
		}
	}
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

func TestGrid(t *testing.T) {
	for workers := 1; workers <= 40; workers++ {
		for _, shape := range [][2]int{{1, 1}, {1000, 1000}, {10000, 10}, {10, 10000}, {784, 128}} {
			down, right := grid(shape[0], shape[1], workers)
			if down < 1 || right < 1 || down*right > workers || 4*down*right < 3*workers {
				t.Errorf("%d workers, %v: %d by %d parts", workers, shape, down, right)
			}
		}
	}
	if down, right := grid(10, 10000, 4); down != 1 || right != 4 {
		t.Errorf("10 by 10000 in %d by %d parts, want 1 by 4", down, right)
	}
	if down, right := grid(1000, 1000, 4); down != 2 || right != 2 {
		t.Errorf("1000 by 1000 in %d by %d parts, want 2 by 2", down, right)
	}
	for _, parts := range []int{1, 2, 5, 30} {
		last := 0
		for i := range parts {
			from, to := share(100, parts, i, 12)
			if from != last || to < from || from%12 != 0 {
				t.Errorf("part %d of %d is %d to %d after %d", i, parts, from, to, last)
			}
			last = to
		}
		if last != 100 {
			t.Errorf("%d parts end at %d, want 100", parts, last)
		}
	}
}

// TestGemmConcurrently uses one engine from several goroutines.
func TestGemmConcurrently(t *testing.T) {
	e := Best(3)
	random := rand.New(rand.NewPCG(8, 8))
	var group sync.WaitGroup
	for range 6 {
		p := newProblem(random, blas.NoTrans, blas.NoTrans, 130, 120, 140, 3)
		want := p.run(t, Best(1))
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

// TestBLAS compares with gonum through gonum's own interface.
func TestBLAS(t *testing.T) {
	before := blas32.Implementation()
	t.Cleanup(func() { blas32.Use(before) })
	random := rand.New(rand.NewPCG(9, 9))
	for _, e := range engines() {
		for range 20 {
			tA, tB := transposes(random)
			p := newProblem(random, tA, tB, 1+random.IntN(90), 1+random.IntN(90), 1+random.IntN(90), 4)
			want := p.run(t, e)
			blas32.Use(e.BLAS())
			c := p.c.clone()
			blas32.Gemm(tA, tB, p.alpha, p.a.General, p.b.General, p.beta, c.General)
			c.check(t)
			compareBits(t, e.String()+" under blas32", c.General, want.General)
			blas32.Use(gonum.Implementation{})
			c = p.c.clone()
			blas32.Gemm(tA, tB, p.alpha, p.a.General, p.b.General, p.beta, c.General)
			compareExact(t, "gonum", p, c)
		}
	}
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
			e.SumRows(bias.Data, d)
			e.SquaredNorms(make([]float64, m), d)
			e.Axpy(1, c.Data, d.Data)
			e.Dot(c.Data, d.Data)
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
		expectPanic(t, test.want, func() { Scalar(1).Gemm(test.tA, test.tB, 1, test.a, test.b, 0, test.c) })
	}
	expectPanic(t, shortData, func() {
		Scalar(1).BLAS().Sgemm(yes, no, 3, 3, 3, 1, make([]float32, 8), 3, make([]float32, 9), 3, 0, make([]float32, 9), 3)
	})
	expectPanic(t, shortData, func() {
		Scalar(1).BLAS().Sgemm(no, yes, 3, 3, 3, 1, make([]float32, 9), 3, make([]float32, 8), 3, 0, make([]float32, 9), 3)
	})
	expectPanic(t, badWorkers, func() { Best(0) })
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
		want := p.run(t, list[0])
		compareExact(t, "scalar", p, want)
		for _, e := range list[1:] {
			compareExact(t, e.String(), p, p.run(t, e))
		}
		for _, e := range reproducibleEngines() {
			compareBits(t, e.String(), p.run(t, e).General, want.General)
		}
	})
}
