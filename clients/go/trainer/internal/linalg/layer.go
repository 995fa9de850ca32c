package linalg

import "gonum.org/v1/gonum/blas/blas32"

// AddBias adds bias, of one element per column, to every row of a.
func (e *Engine) AddBias(a blas32.General, bias []float32) {
	checkColumns(a, bias)
	for i := range a.Rows {
		e.kernels.axpy(1, bias, row(a, i))
	}
}

// AddBiasReLU adds bias, of one element per column, to every row of a, and replaces
// elements below zero by zero. NaN remains NaN.
func (e *Engine) AddBiasReLU(a blas32.General, bias []float32) {
	checkColumns(a, bias)
	for i := range a.Rows {
		e.kernels.addReLU(bias, row(a, i))
	}
}

// MaskReLU is the backward pass of ReLU: it sets the elements of delta to zero where
// activation, which has the same shape, is zero or below. Where an activation is NaN,
// delta remains, so that a diverged run is seen.
func (e *Engine) MaskReLU(delta, activation blas32.General) {
	check(delta)
	check(activation)
	if delta.Rows != activation.Rows || delta.Cols != activation.Cols {
		panic(badShape)
	}
	for i := range delta.Rows {
		e.kernels.maskReLU(row(activation, i), row(delta, i))
	}
}

// ScaleRows multiplies row i of a by factors[i].
func (e *Engine) ScaleRows(a blas32.General, factors []float32) {
	check(a)
	if len(factors) != a.Rows {
		panic(badShape)
	}
	for i, f := range factors {
		e.kernels.scale(f, row(a, i))
	}
}

// SquaredNorms sets dst[i] to the squared Euclidean norm of row i of a, summed in
// float64: the product of these for a layer's input and for the gradient at its
// output is the squared norm of the gradient of one example (Goodfellow, "Efficient
// Per-Example Gradient Computations", arXiv:1510.01799, 2015).
func (e *Engine) SquaredNorms(dst []float64, a blas32.General) {
	check(a)
	if len(dst) != a.Rows {
		panic(badShape)
	}
	for i := range dst {
		sums := e.kernels.squares(row(a, i))
		dst[i] = total(&sums)
	}
}

// Axpy adds alpha*x to y, which has the same length.
func (e *Engine) Axpy(alpha float32, x, y []float32) {
	if len(x) != len(y) {
		panic(badShape)
	}
	e.kernels.axpy(alpha, x, y)
}

// total adds partial sums in pairs.
func total(s *[lanes]float64) float64 {
	for half := lanes / 2; half > 0; half /= 2 {
		for j := range half {
			s[j] += s[j+half]
		}
	}
	return s[0]
}

func checkColumns(a blas32.General, v []float32) {
	check(a)
	if len(v) != a.Cols {
		panic(badShape)
	}
}

func row(a blas32.General, i int) []float32 {
	if a.Cols == 0 {
		return nil // Data may be empty
	}
	return a.Data[i*a.Stride:][:a.Cols:a.Cols]
}
