package linalg

import "math"

// lanes is the number of interleaved partial sums of a reduction; vector kernels
// work on slices of a multiple of this many elements.
const lanes = 16

// kernels are the inner loops of an engine.
type kernels struct {
	// tile adds alpha*A*B to a tile of C of rows by columns, where a holds k columns
	// of A one after the other, b holds k rows of B, and c has the stride ldc.
	// It needs k >= 1. Element by element it computes
	//
	//	c += alpha * (((0 + a₀b₀) + a₁b₁) + ... )
	//
	// with products that may be fused with the additions.
	tile          func(k, ldc int, alpha float32, a, b, c []float32)
	rows, columns int

	// copyRows writes the first width elements, an even number, of each of k rows of
	// src, which are ld apart, to dst, one after the other.
	copyRows func(dst []float32, width int, src []float32, ld, k int)

	// transpose4 writes columns 0 to k-1 of the four rows of src, which are ld apart,
	// to dst, where they are width apart.
	transpose4 func(dst []float32, width int, src []float32, ld, k int)

	// Where a kernel of the following takes x and y, both have the same length.

	axpy     func(alpha float32, x, y []float32)  // y += alpha*x
	scale    func(alpha float32, x []float32)     // x *= alpha
	addReLU  func(x, y []float32)                 // y = max(0, y+x), or NaN
	maskReLU func(x, y []float32)                 // y = 0 where x <= 0
	squares  func(x []float32) (s [lanes]float64) // s[j] = Σ xᵢ² over i = j mod lanes
}

// scalarKernels are the kernels for CPUs without vector kernels.
var scalarKernels = kernels{
	tile: tileScalar, rows: 4, columns: 2,
	copyRows:   copyRowsScalar,
	transpose4: transpose4Scalar,
	axpy:       axpyScalar,
	scale:      scaleScalar,
	addReLU:    addReLUScalar,
	maskReLU:   maskReLUScalar,
	squares:    squaresScalar,
}

func tileScalar(k, ldc int, alpha float32, a, b, c []float32) {
	var c00, c01, c10, c11, c20, c21, c30, c31 float32
	p := 0
	for ; p+2 <= k; p += 2 { // two steps at once take little longer than one
		a, b := (*[8]float32)(a[4*p:]), (*[4]float32)(b[2*p:])
		b0, b1 := b[0], b[1]
		c00 += a[0] * b0
		c01 += a[0] * b1
		c10 += a[1] * b0
		c11 += a[1] * b1
		c20 += a[2] * b0
		c21 += a[2] * b1
		c30 += a[3] * b0
		c31 += a[3] * b1
		b0, b1 = b[2], b[3]
		c00 += a[4] * b0
		c01 += a[4] * b1
		c10 += a[5] * b0
		c11 += a[5] * b1
		c20 += a[6] * b0
		c21 += a[6] * b1
		c30 += a[7] * b0
		c31 += a[7] * b1
	}
	if p < k {
		a, b0, b1 := (*[4]float32)(a[4*p:]), b[2*p], b[2*p+1]
		c00 += a[0] * b0
		c01 += a[0] * b1
		c10 += a[1] * b0
		c11 += a[1] * b1
		c20 += a[2] * b0
		c21 += a[2] * b1
		c30 += a[3] * b0
		c31 += a[3] * b1
	}
	c[0] += alpha * c00
	c[1] += alpha * c01
	c[ldc] += alpha * c10
	c[ldc+1] += alpha * c11
	c[2*ldc] += alpha * c20
	c[2*ldc+1] += alpha * c21
	c[3*ldc] += alpha * c30
	c[3*ldc+1] += alpha * c31
}

func copyRowsScalar(dst []float32, width int, src []float32, ld, k int) {
	for p := range k {
		copy(dst[p*width:][:width], src[p*ld:])
	}
}

func transpose4Scalar(dst []float32, width int, src []float32, ld, k int) {
	r0, r1, r2, r3 := src[:k], src[ld:][:k], src[2*ld:][:k], src[3*ld:][:k]
	for p := range r0 {
		d := dst[p*width:][:4]
		d[0], d[1], d[2], d[3] = r0[p], r1[p], r2[p], r3[p]
	}
}

func axpyScalar(alpha float32, x, y []float32) {
	for i, v := range x {
		y[i] += float32(alpha * v) // the conversion forbids fusing: the vector kernel also rounds twice
	}
}

func scaleScalar(alpha float32, x []float32) {
	for i := range x {
		x[i] *= alpha
	}
}

func addReLUScalar(x, y []float32) {
	for i, v := range x {
		s := y[i] + v
		if s < 0 {
			s = 0
		}
		y[i] = s
	}
}

func maskReLUScalar(x, y []float32) {
	for i, v := range x {
		bits := math.Float32bits(y[i])
		if v <= 0 { // as integers without a jump, which would be guessed wrong half the time
			bits = 0
		}
		y[i] = math.Float32frombits(bits)
	}
}

func squaresScalar(x []float32) (s [lanes]float64) {
	for ; len(x) >= lanes; x = x[lanes:] {
		for j := range s {
			v := float64(x[j])
			s[j] += v * v // exact
		}
	}
	for j, v := range x {
		v := float64(v)
		s[j] += v * v
	}
	return s
}
