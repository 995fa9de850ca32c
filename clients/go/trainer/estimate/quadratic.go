package estimate

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/clients/go/trainer/linear"
)

// Quadratic estimates losses from their expansion of second order around one model,
//
//	L(θ₀ + x) ≈ L + ∇L·x + ½ xᵀHx,
//
// under which the model of an ε has the displacement x = −(H + τI)⁻¹(∇L + τθ₀ + u/(βn)).
// That is linear in the noise, so that the mean over the noise is known without drawing
// or training. It is accurate while the noise is small; otherwise the estimate still
// serves as a control variate for the exact losses. It is safe for concurrent use.
type Quadratic struct {
	problem        Problem
	basis          *mat.Dense // eigenvectors of H in the columns, d×d
	curvature      []float64  // eigenvalues of H
	centre         []float64  // θ₀ in the basis
	train, heldOut quadraticLoss
}

// quadraticLoss is one loss in the basis.
type quadraticLoss struct {
	value    float64
	gradient []float64
	hessian  *mat.SymDense // nil: diagonal, of the curvatures
}

// Quadratic expands around a model, preferably from p.Solve without noise. The only error
// is that the eigenvectors are not found. It panics if the length of theta is not the
// dimension of the examples.
func (p Problem) Quadratic(theta []float64) (*Quadratic, error) {
	dim := p.Risk.Examples.Dim()
	hessian := mat.NewSymDense(dim, nil)
	p.Risk.HessianTo(hessian, theta)
	var eigen mat.EigenSym
	if !eigen.Factorize(hessian, true) {
		return nil, errors.New("the eigenvectors of the Hessian were not found")
	}
	q := &Quadratic{problem: p, basis: new(mat.Dense), curvature: eigen.Values(nil), centre: make([]float64, dim)}
	eigen.VectorsTo(q.basis)
	for i, h := range q.curvature {
		q.curvature[i] = max(h, 0) // rounding
	}
	q.rotate(q.centre, theta)
	utility := p.Evaluate(theta)
	work := make([]float64, dim)
	p.Risk.GradientTo(work, theta)
	q.train = quadraticLoss{value: utility.Train.Loss, gradient: make([]float64, dim)}
	q.rotate(q.train.gradient, work)
	if p.HeldOut != nil {
		risk := linear.Risk{Examples: p.HeldOut, Loss: p.Risk.Loss}
		risk.GradientTo(work, theta)
		q.heldOut = quadraticLoss{value: utility.HeldOut.Loss, gradient: make([]float64, dim)}
		q.rotate(q.heldOut.gradient, work)
		risk.HessianTo(hessian, theta)
		var half, whole mat.Dense
		half.Mul(hessian, q.basis)
		whole.Mul(q.basis.T(), &half)
		q.heldOut.hessian = mat.NewSymDense(dim, nil)
		for i := range dim {
			for j := range i + 1 {
				q.heldOut.hessian.SetSym(i, j, (whole.At(i, j)+whole.At(j, i))/2)
			}
		}
	}
	return q, nil
}

// rotate stores v in the basis.
func (q *Quadratic) rotate(dst, v []float64) {
	mat.NewVecDense(len(dst), dst).MulVec(q.basis.T(), mat.NewVecDense(len(v), v))
}

// Losses are estimated mean losses.
type Losses struct {
	Train, HeldOut float64 // HeldOut is NaN without held-out examples
}

// Mean returns the mean of the estimated losses at ε over unit noise u with mean 0 and
// covariance E uuᵀ = moment·I: d + 1 for objectiveperturbation.UnitNoise in d features, 2
// for independent Laplace coordinates of scale 1, 0 for no noise. The trace formula
//
//	Ē L = L + ∇L·m + ½ Σ h_i·(m_i² + moment/(βn(h_i + τ))²),  m = −(∇L + τθ₀)_i/(h_i + τ)
//
// takes time O(d), and O(d²) with held-out examples. ε must be positive and finite.
func (q *Quadratic) Mean(epsilon, moment float64) Losses {
	m, scale := q.displacement(epsilon, nil)
	losses := q.losses(m)
	var train, heldOut float64
	for i, h := range q.curvature {
		variance := moment * scale[i] * scale[i]
		train += h * variance
		if q.heldOut.hessian != nil {
			heldOut += q.heldOut.hessian.At(i, i) * variance
		}
	}
	losses.Train += train / 2
	losses.HeldOut += heldOut / 2
	return losses
}

// Draw returns the estimated losses as functions of ε for one unit noise. It panics if
// the length of u is not the dimension of the examples.
func (q *Quadratic) Draw(u []float64) func(epsilon float64) Losses {
	rotated := make([]float64, len(q.centre))
	if len(u) != len(rotated) {
		panic("estimate: dimension mismatch")
	}
	q.rotate(rotated, u)
	return func(epsilon float64) Losses {
		x, _ := q.displacement(epsilon, rotated)
		return q.losses(x)
	}
}

// displacement returns x for a rotated unit noise, nil for none, and the factors of the
// noise in it.
func (q *Quadratic) displacement(epsilon float64, u []float64) (x, scale []float64) {
	c := Calibrate(q.problem.Mechanism(epsilon))
	rate := c.Beta * float64(q.problem.Risk.Examples.Rows())
	x, scale = make([]float64, len(q.centre)), make([]float64, len(q.centre))
	for i, h := range q.curvature {
		scale[i] = -1 / (rate * (h + c.Tau))
		x[i] = -(q.train.gradient[i] + c.Tau*q.centre[i]) / (h + c.Tau)
		if u != nil {
			x[i] += scale[i] * u[i]
		}
	}
	return x, scale
}

// losses returns the losses at a displacement.
func (q *Quadratic) losses(x []float64) Losses {
	losses := Losses{Train: q.train.value + floats.Dot(q.train.gradient, x), HeldOut: math.NaN()}
	for i, h := range q.curvature {
		losses.Train += h * x[i] * x[i] / 2
	}
	if q.heldOut.hessian != nil {
		v := mat.NewVecDense(len(x), x)
		losses.HeldOut = q.heldOut.value + floats.Dot(q.heldOut.gradient, x) + mat.Inner(v, q.heldOut.hessian, v)/2
	}
	return losses
}
