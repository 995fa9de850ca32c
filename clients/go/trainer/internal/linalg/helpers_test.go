package linalg

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// engines returns one engine for each set of kernels that this machine can execute.
func engines() []*Engine {
	list := []*Engine{{kernels: scalarKernels}}
	for _, set := range vectorKernels() {
		list = append(list, &Engine{kernels: set})
	}
	return list
}

// String names the kernels by their tile: 4x2 in Go, 6x16 with AVX2, 12x32 with AVX-512.
func (e *Engine) String() string { return fmt.Sprintf("tile=%dx%d", e.kernels.rows, e.kernels.columns) }

// guarded is a matrix in the middle of a larger slice, at any alignment. What lies
// outside the matrix is a signalling pattern of NaN, which poisons a result that it
// enters and is missed when it is overwritten.
type guarded struct {
	blas32.General

	all  []float32
	from int
}

const canary = 0x7fa5a5a5

func newGuarded(random *rand.Rand, rows, columns, gap int) guarded {
	from := 16 + random.IntN(16)
	stride := max(1, columns) + gap
	size := 0
	if rows > 0 {
		size = (rows-1)*stride + columns
	}
	all := make([]float32, from+size+32)
	for i := range all {
		all[i] = math.Float32frombits(canary)
	}
	g := guarded{blas32.General{Rows: rows, Cols: columns, Stride: stride, Data: all[from : from+size : from+size]}, all, from}
	for i := range rows {
		fill(random, row(g.General, i))
	}
	return g
}

// check reports whether anything outside the matrix was written.
func (g guarded) check(t *testing.T) {
	t.Helper()
	for i, v := range g.all {
		at := i - g.from
		if at >= 0 && at < len(g.Data) && at%g.Stride < g.Cols {
			continue
		}
		if math.Float32bits(v) != canary {
			t.Fatalf("%d elements after the start of a matrix of %d by %d, stride %d: outside of it, but was written",
				at, g.Rows, g.Cols, g.Stride)
		}
	}
}

func (g guarded) clone() guarded {
	all := append([]float32(nil), g.all...)
	g.all, g.Data = all, all[g.from:g.from+len(g.Data):g.from+len(g.Data)]
	return g
}

func fill(random *rand.Rand, s []float32) {
	for i := range s {
		s[i] = float32(random.NormFloat64())
	}
}

func randomSlice(random *rand.Rand, n int) []float32 {
	s := make([]float32, n)
	fill(random, s)
	return s
}

// fillWild fills a matrix with numbers of all magnitudes, zeros of both signs and,
// where special is set, infinities and NaN.
func fillWild(random *rand.Rand, a blas32.General, special bool) {
	for i := range a.Rows {
		for j := range a.Cols {
			v := float32(math.Ldexp(random.NormFloat64(), random.IntN(240)-140))
			switch random.IntN(20) {
			case 0:
				v = float32(math.Copysign(0, random.Float64()-0.5))
			case 1:
				if special {
					v = []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}[random.IntN(3)]
				}
			}
			a.Data[i*a.Stride+j] = v
		}
	}
}

// same reports whether x and y have the same bits, or are both NaN.
func same(x, y float32) bool {
	return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
}

func compareBits(t *testing.T, name string, got, want blas32.General) {
	t.Helper()
	for i := range want.Rows {
		for j, w := range row(want, i) {
			if g := row(got, i)[j]; !same(g, w) {
				t.Fatalf("%s: element %d, %d of %d by %d is %g (%#08x), want %g (%#08x)",
					name, i, j, want.Rows, want.Cols, g, math.Float32bits(g), w, math.Float32bits(w))
			}
		}
	}
}

// problem is one call of Gemm.
type problem struct {
	tA, tB      blas.Transpose
	alpha, beta float32
	a, b, c     guarded
}

func newProblem(random *rand.Rand, tA, tB blas.Transpose, m, n, k, gap int) problem {
	shape := func(t blas.Transpose, rows, columns int) guarded {
		if t != blas.NoTrans {
			rows, columns = columns, rows
		}
		return newGuarded(random, rows, columns, random.IntN(gap+1))
	}
	scalars := []float32{0, 1, -1, 0.5, float32(random.NormFloat64())}
	return problem{
		tA: tA, tB: tB,
		alpha: scalars[random.IntN(len(scalars))], beta: scalars[random.IntN(len(scalars))],
		a: shape(tA, m, k), b: shape(tB, k, n), c: newGuarded(random, m, n, random.IntN(gap+1)),
	}
}

// dimension is a size that is often small or near a multiple of a tile.
func dimension(random *rand.Rand) int {
	switch random.IntN(4) {
	case 0:
		return random.IntN(4)
	case 1:
		return random.IntN(40)
	case 2:
		return max(0, 12*random.IntN(14)+random.IntN(3)-1)
	default:
		return random.IntN(200)
	}
}

func transposes(random *rand.Rand) (tA, tB blas.Transpose) {
	all := []blas.Transpose{blas.NoTrans, blas.Trans, blas.ConjTrans}
	return all[random.IntN(3)], all[random.IntN(3)]
}

// run computes the problem with e on copies of its matrices, and checks that only
// C is written.
func (p problem) run(t *testing.T, e *Engine) guarded {
	t.Helper()
	a, b, c := p.a.clone(), p.b.clone(), p.c.clone()
	e.Gemm(p.tA, p.tB, p.alpha, a.General, b.General, p.beta, c.General)
	c.check(t)
	compareBits(t, "A", a.General, p.a.General)
	compareBits(t, "B", b.General, p.b.General)
	a.check(t)
	b.check(t)
	return c
}

// factors return elements i, p of op(A) and p, j of op(B).
func (p problem) factors(i, j, q int) (x, y float32) {
	if p.tA == blas.NoTrans {
		x = p.a.Data[i*p.a.Stride+q]
	} else {
		x = p.a.Data[q*p.a.Stride+i]
	}
	if p.tB == blas.NoTrans {
		y = p.b.Data[q*p.b.Stride+j]
	} else {
		y = p.b.Data[j*p.b.Stride+q]
	}
	return x, y
}

// k is the length of the sums of p.
func (p problem) k() int {
	if p.tA == blas.NoTrans {
		return p.a.Cols
	}
	return p.a.Rows
}
