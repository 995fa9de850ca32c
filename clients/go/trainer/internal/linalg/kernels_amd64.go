//go:build amd64 && !noasm

package linalg

import "golang.org/x/sys/cpu"

// vectorKernels returns the vector kernels that this CPU can execute, slowest first.
func vectorKernels() []kernels {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		return nil
	}
	avx2 := kernels{
		tile: tileAVX2, rows: 6, columns: 16,
		copyRows:   copyRowsAVX2,
		transpose4: transpose4,
		axpy:       axpy,
		scale:      scale,
		addReLU:    addReLU,
		maskReLU:   maskReLU,
		squares:    squares,
	}
	if !cpu.X86.HasAVX512F {
		return []kernels{avx2}
	}
	avx512 := avx2
	avx512.tile, avx512.rows, avx512.columns = tileAVX512, 12, 32
	return []kernels{avx2, avx512}
}

// The assembly works on whole multiples of lanes (of 4 in transpose4AVX2); these
// functions leave what remains to the scalar kernels.

func transpose4(dst []float32, width int, src []float32, ld, k int) {
	transpose4AVX2(dst, width, src, ld, k)
	if whole := k &^ 3; whole < k {
		transpose4Scalar(dst[whole*width:], width, src[whole:], ld, k-whole)
	}
}

func axpy(alpha float32, x, y []float32) {
	whole := len(x) &^ (lanes - 1)
	axpyAVX2(alpha, x[:whole], y[:whole])
	axpyScalar(alpha, x[whole:], y[whole:])
}

func scale(alpha float32, x []float32) {
	whole := len(x) &^ (lanes - 1)
	scaleAVX2(alpha, x[:whole])
	scaleScalar(alpha, x[whole:])
}

func addReLU(x, y []float32) {
	whole := len(x) &^ (lanes - 1)
	addReLUAVX2(x[:whole], y[:whole])
	addReLUScalar(x[whole:], y[whole:])
}

func maskReLU(x, y []float32) {
	whole := len(x) &^ (lanes - 1)
	maskReLUAVX2(x[:whole], y[:whole])
	maskReLUScalar(x[whole:], y[whole:])
}

func squares(x []float32) [lanes]float64 {
	whole := len(x) &^ (lanes - 1)
	s := squaresAVX2(x[:whole])
	for j, v := range x[whole:] {
		s[j] += float64(v) * float64(v)
	}
	return s
}

//go:noescape
func tileAVX2(k, ldc int, alpha float32, a, b, c []float32)

//go:noescape
func tileAVX512(k, ldc int, alpha float32, a, b, c []float32)

//go:noescape
func axpyAVX2(alpha float32, x, y []float32)

//go:noescape
func scaleAVX2(alpha float32, x []float32)

//go:noescape
func addReLUAVX2(x, y []float32)

//go:noescape
func maskReLUAVX2(x, y []float32)

//go:noescape
func squaresAVX2(x []float32) (sums [lanes]float64)

//go:noescape
func copyRowsAVX2(dst []float32, width int, src []float32, ld, k int)

//go:noescape
func transpose4AVX2(dst []float32, width int, src []float32, ld, k int)
