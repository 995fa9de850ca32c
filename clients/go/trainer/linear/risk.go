package linear

import "gonum.org/v1/gonum/mat"

// Risk is the mean loss of a model on examples,
//
//	L(θ) = (1/n) Σ ℓ(θ·z_i).
//
// It is safe for concurrent use. Its methods panic when a vector or matrix does
// not have the dimension of the examples.
type Risk struct {
	Examples *Examples
	Loss     Loss
}

// Value returns L(θ).
func (r Risk) Value(theta []float64) float64 {
	_, loss := r.Examples.Evaluate(r.Loss, theta)
	return loss
}

// GradientTo stores ∇L(θ) in dst.
func (r Risk) GradientTo(dst, theta []float64) {
	r.passTo(dst, nil, theta)
}

// HessianTo stores ∇²L(θ) in dst, which has the dimension of the examples. It
// takes time in proportion to the sum of the squares of the rows' stored values.
func (r Risk) HessianTo(dst *mat.SymDense, theta []float64) {
	checkLength(len(theta), r.Examples.Dim())
	second := make([]float64, r.Examples.Rows())
	for i := range second {
		_, second[i] = r.Loss.Derivatives(r.Examples.Margin(i, theta))
	}
	r.hessianTo(dst, second)
}

// HessianProductTo stores ∇²L(θ)·v in dst, without the matrix. The vectors dst
// and v must not overlap.
func (r Risk) HessianProductTo(dst, theta, v []float64) {
	r.sumTo(dst, theta, v, func(z, along float64) float64 {
		_, second := r.Loss.Derivatives(z)
		return second * along
	})
}

// ThirdProductTo stores T[v]·v in dst, the second derivative of ∇L(θ + tv) in t
// at 0: T[v] = (1/n) Σ ℓ‴(θ·z_i) (z_i·v) z_i z_iᵀ. The vectors dst and v must not
// overlap.
func (r Risk) ThirdProductTo(dst, theta, v []float64) {
	r.sumTo(dst, theta, v, func(z, along float64) float64 {
		return r.Loss.Third(z) * along * along
	})
}

// sumTo stores (1/n) Σ coefficient(θ·z_i, v·z_i)·z_i in dst.
func (r Risk) sumTo(dst, theta, v []float64, coefficient func(z, along float64) float64) {
	checkLength(len(dst), r.Examples.Dim())
	checkLength(len(theta), r.Examples.Dim())
	checkLength(len(v), r.Examples.Dim())
	clear(dst)
	n := float64(r.Examples.Rows())
	for i := range r.Examples.Rows() {
		c := coefficient(r.Examples.Margin(i, theta), r.Examples.Margin(i, v))
		r.Examples.AddScaled(dst, c/n, i)
	}
}

// passTo stores ∇L(θ) in gradient and, unless it is nil, ℓ″ of every example in
// second. It returns L(θ).
func (r Risk) passTo(gradient, second, theta []float64) (value float64) {
	checkLength(len(gradient), r.Examples.Dim())
	checkLength(len(theta), r.Examples.Dim())
	clear(gradient)
	n := float64(r.Examples.Rows())
	// Summed by blocks, whose rounding errors do not grow with n: among millions of
	// examples they would hide the last steps of a minimisation.
	const block = 1024
	var part float64
	for i := range r.Examples.Rows() {
		if i%block == 0 {
			value += part
			part = 0
		}
		z := r.Examples.Margin(i, theta)
		d1, d2 := r.Loss.Derivatives(z)
		if d1 != 0 {
			r.Examples.AddScaled(gradient, d1/n, i)
		}
		if second != nil {
			second[i] = d2
		}
		part += r.Loss.Value(z)
	}
	return (value + part) / n
}

// hessianTo stores (1/n) Σ second[i]·z_i·z_iᵀ in dst.
func (r Risk) hessianTo(dst *mat.SymDense, second []float64) {
	dim := r.Examples.Dim()
	checkLength(dst.SymmetricDim(), dim)
	raw := dst.RawSymmetric()
	checkLength(raw.Stride, dim)
	clear(raw.Data)
	n := float64(r.Examples.Rows())
	for i, d2 := range second {
		if d2 != 0 {
			r.Examples.addOuter(raw.Data, d2/n, i)
		}
	}
}
