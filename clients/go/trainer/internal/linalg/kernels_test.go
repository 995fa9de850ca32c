package linalg

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"
)

// TestKernelsLikeScalar runs the vector kernels on slices of every small length, at
// the start and at the end of what memory may be touched, against the scalar ones.
func TestKernelsLikeScalar(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 21))
	const most = 3*lanes + 1
	for _, atEnd := range []bool{false, true} {
		allX, allY, allDst, allSrc := fenced(t, most, atEnd), fenced(t, most, atEnd), fenced(t, most*32, atEnd), fenced(t, most*40, atEnd)
		beside := func(s []float32, n int) []float32 { // n elements beside the fence
			if atEnd {
				return s[len(s)-n:]
			}
			return s[:n]
		}
		for _, e := range engines()[1:] {
			set := e.kernels
			for n := range most {
				x, y := beside(allX, n), beside(allY, n)
				for _, operation := range []struct {
					name string
					run  func(k *kernels)
				}{
					{"axpy", func(k *kernels) { k.axpy(0.7, x, y) }},
					{"scale", func(k *kernels) { k.scale(0.7, y) }},
					{"addReLU", func(k *kernels) { k.addReLU(x, y) }},
					{"maskReLU", func(k *kernels) { k.maskReLU(x, y) }},
					{"squares", func(k *kernels) {
						for i, v := range k.squares(x) {
							if i < n {
								y[i] = float32(v)
							}
						}
					}},
				} {
					fill(random, x)
					fill(random, y)
					before := append([]float32(nil), y...)
					operation.run(&scalarKernels)
					want := append([]float32(nil), y...)
					copy(y, before)
					operation.run(&set)
					compareSlices(t, fmt.Sprintf("%v: %s of %d", e, operation.name, n), y, want)
				}
				for _, width := range []int{set.rows, set.columns} {
					ld := width + n%3
					src, dst := beside(allSrc, max(0, (n-1)*ld+width)), beside(allDst, n*width)
					fill(random, src)
					set.copyRows(dst, width, src, ld, n)
					got := append([]float32(nil), dst...)
					copyRowsScalar(dst, width, src, ld, n)
					compareSlices(t, fmt.Sprintf("%v: copyRows of %d by %d", e, n, width), got, dst)
				}
				if n == 0 {
					continue
				}
				ld := n + n%3
				turned, packed := beside(allSrc, 3*ld+n), beside(allDst, (n-1)*set.rows+4)
				fill(random, turned)
				fill(random, packed)
				untouched := append([]float32(nil), packed...)
				set.transpose4(packed, set.rows, turned, ld, n)
				got := append([]float32(nil), packed...)
				copy(packed, untouched)
				transpose4Scalar(packed, set.rows, turned, ld, n)
				compareSlices(t, fmt.Sprintf("%v: transpose4 of %d", e, n), got, packed)
			}
		}
	}
}

// TestPack compares packed blocks with their definition.
func TestPack(t *testing.T) {
	random := rand.New(rand.NewPCG(22, 22))
	for _, e := range engines() {
		for range 100 {
			m, k := 1+random.IntN(50), 1+random.IntN(40)
			across := random.IntN(2) == 0
			g := newGuarded(random, m, k, 3)
			if across {
				g = newGuarded(random, k, m, 3)
			}
			o := operand{g.Data, g.Stride, across}
			i, p := random.IntN(m), random.IntN(k)
			count, steps := m-i, 1+random.IntN(k-p)
			for _, width := range []int{e.kernels.rows, e.kernels.columns} {
				panels := (count + width - 1) / width
				dst := newGuarded(random, 1, panels*width*steps, 0)
				e.kernels.pack(dst.Data, width, &o, i, count, p, steps)
				dst.check(t)
				for v := range panels * width {
					for q := range steps {
						var want float32
						if v < count {
							want = o.at(i+v, p+q)[0]
						}
						if got := dst.Data[(v/width*steps+q)*width+v%width]; !same(got, want) {
							t.Fatalf("%v: element %d of vector %d in panels of %d is %g, want %g", e, q, v, width, got, want)
						}
					}
				}
			}
		}
	}
}

func compareSlices(t *testing.T, name string, got, want []float32) {
	t.Helper()
	n := len(want)
	compareBits(t, name, blas32.General{Rows: 1, Cols: n, Stride: max(1, n), Data: got},
		blas32.General{Rows: 1, Cols: n, Stride: max(1, n), Data: want})
}
