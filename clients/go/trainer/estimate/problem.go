package estimate

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/privacy"
)

// Problem describes the trained model, and the examples that measure it. It is safe for
// concurrent use.
type Problem struct {
	Risk           linear.Risk                  // the training examples and the loss
	HeldOut        *linear.Examples             // examples to measure models on besides; nil for none
	Regularization float64                      // λ > 0, finite
	Calibration    privacy.ObjectiveCalibration // default privacy.RankOne
	Split          float64                      // share of privacy.RankOne in (0, 1); 0 means 0.05
	// Tolerance is the gradient norm at which a model counts as exact; 0 means
	// linear.Tolerance.
	Tolerance float64

	trained func() // called after every solution, if not nil
}

// Mechanism returns the mechanism at ε.
func (p Problem) Mechanism(epsilon float64) privacy.ObjectivePerturbation {
	return privacy.ObjectivePerturbation{
		DatasetSize:    int64(p.Risk.Examples.Rows()),
		Regularization: p.Regularization,
		Curvature:      p.Risk.Loss.Curvature(),
		Epsilon:        epsilon,
		Calibration:    p.Calibration,
		Split:          p.Split,
	}
}

// Validate reports the fields "regularization", "calibration", "split" and "curvature" of
// the mechanism, and held-out examples of another dimension. It panics when the risk is
// not set.
func (p Problem) Validate() error {
	err := p.Mechanism(1).Validate()
	if p.HeldOut != nil && p.HeldOut.Dim() != p.Risk.Examples.Dim() {
		err = errors.Join(err, fmt.Errorf("the held-out examples have %d features, the training examples %d", p.HeldOut.Dim(), p.Risk.Examples.Dim()))
	}
	return err
}

// Solution is the model at one ε.
type Solution struct {
	Epsilon    float64
	Theta      []float64 // one weight per feature
	Iterations int       // Newton steps taken
}

// Solve trains a model at ε with the unit noise u, as objectiveperturbation.UnitNoise
// draws it; nil leaves out the noise, not what ε adds to the regulariser. The start may
// be nil; the model of a close ε saves most of the work. It returns the errors of the
// mechanism's Validate and of linear.Objective.Minimize.
func (p Problem) Solve(ctx context.Context, u []float64, epsilon float64, start []float64) (*Solution, error) {
	m := p.Mechanism(epsilon)
	if err := m.Validate(); err != nil {
		return nil, err
	}
	minimum, err := objectiveperturbation.Objective(p.Risk, m, u).Minimize(ctx, start, p.Tolerance)
	if err != nil {
		return nil, fmt.Errorf("ε = %v: %w", epsilon, err)
	}
	if p.trained != nil {
		p.trained()
	}
	return &Solution{Epsilon: epsilon, Theta: minimum.Theta, Iterations: minimum.Iterations}, nil
}

// Measure is the quality of a model on a set of examples.
type Measure struct {
	Loss  float64 // mean loss
	Error float64 // fraction of the examples that are classified wrongly
}

// Utility is the quality of a model.
type Utility struct {
	Train   Measure
	HeldOut Measure // both NaN without held-out examples
}

// Evaluate measures a model. It panics if the length of theta is not the dimension of the
// examples.
func (p Problem) Evaluate(theta []float64) Utility {
	u := Utility{HeldOut: Measure{math.NaN(), math.NaN()}}
	u.Train.Error, u.Train.Loss = p.Risk.Examples.Evaluate(p.Risk.Loss, theta)
	if p.HeldOut != nil {
		u.HeldOut.Error, u.HeldOut.Loss = p.HeldOut.Evaluate(p.Risk.Loss, theta)
	}
	return u
}

// Derivatives holds the derivatives in ε of the model of one unit noise and of its
// losses.
type Derivatives struct {
	Theta, Theta2 []float64 // θ′ and θ″, one number per feature
	Loss, Loss2   float64   // L′ and L″ of the mean loss on the training examples
	HeldOut       float64   // first derivative of the mean loss on the held-out examples, NaN without
}

// Derivatives returns the derivatives at a solution for the same unit noise, in the
// branch of the calibration that its ε is in (the lower one at the boundary). With
//
//	W = ∇²L + τI,  g = b′/n + τ′θ,  b = u/β
//
// they are (Theorems 1 and 2, the latter corrected: the third derivatives of the loss,
// T[v] = ∂∇²L(θ + tv)/∂t, are contracted with θ′, and its second term is added)
//
//	θ′ = −W⁻¹g                                       L′ = ∇L·θ′
//	θ″ = −W⁻¹(b″/n + τ″θ + 2τ′θ′ + T[θ′]θ′)          L″ = θ′·∇²L·θ′ + ∇L·θ″.
//
// For the Huber loss T is 0 except where a margin is at a kink. It costs one Newton step
// and a few passes over the examples. The only error is that W is not positive definite
// to working precision. It panics if a length is not the dimension of the examples.
func (p Problem) Derivatives(u []float64, s *Solution) (Derivatives, error) {
	boundary, _ := Boundary(p.Mechanism(s.Epsilon))
	return p.derivatives(u, s, s.Epsilon > boundary)
}

func (p Problem) derivatives(u []float64, s *Solution, above bool) (Derivatives, error) {
	dim := p.Risk.Examples.Dim()
	c := calibrate(p.Mechanism(s.Epsilon), above)
	objective := linear.Objective{Risk: p.Risk, Ridge: c.Tau}
	var factor mat.Cholesky
	if !objective.FactorizeTo(&factor, s.Theta) {
		return Derivatives{}, fmt.Errorf("ε = %v: the Hessian is not positive definite to working precision", s.Epsilon)
	}
	// A solution of the negated right side in place.
	solve := func(v []float64) []float64 {
		floats.Scale(-1, v)
		x := mat.NewVecDense(dim, v)
		_ = factor.SolveVecTo(x, x) // a large condition number makes it less exact, not wrong
		return v
	}
	// b = u/β: b′ = −u·β′/β² and b″ = 2u·β′²/β³.
	n := float64(p.Risk.Examples.Rows())
	first, second := make([]float64, dim), make([]float64, dim)
	if u != nil {
		floats.AddScaled(first, -c.DBeta/(c.Beta*c.Beta*n), u)
		floats.AddScaled(second, 2*c.DBeta*c.DBeta/(c.Beta*c.Beta*c.Beta*n), u)
	}
	floats.AddScaled(first, c.DTau, s.Theta)
	d := Derivatives{Theta: solve(first), HeldOut: math.NaN()}

	work := make([]float64, dim)
	p.Risk.ThirdProductTo(work, s.Theta, d.Theta)
	floats.Add(second, work)
	floats.AddScaled(second, c.D2Tau, s.Theta)
	floats.AddScaled(second, 2*c.DTau, d.Theta)
	d.Theta2 = solve(second)

	p.Risk.HessianProductTo(work, s.Theta, d.Theta)
	d.Loss2 = floats.Dot(work, d.Theta)
	p.Risk.GradientTo(work, s.Theta)
	d.Loss = floats.Dot(work, d.Theta)
	d.Loss2 += floats.Dot(work, d.Theta2)
	if p.HeldOut != nil {
		linear.Risk{Examples: p.HeldOut, Loss: p.Risk.Loss}.GradientTo(work, s.Theta)
		d.HeldOut = floats.Dot(work, d.Theta)
	}
	return d, nil
}
