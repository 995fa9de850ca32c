package objectiveperturbation

import (
	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/privacy"
)

// UnitNoise stores in dst a vector u with a density proportional to e^(−‖u‖₂). Its
// norm is Gamma distributed with shape d = len(dst) and scale 1, its direction is
// uniform, E‖u‖² = d(d+1). The noise of rate β is u/β.
func UnitNoise(dst []float64, s *random.Stream) {
	if len(dst) == 0 {
		return
	}
	clear(dst)
	random.AddNormals(dst, s, 1)
	var norm float64 // a sum of d exponential numbers is Gamma(d, 1)
	for range dst {
		norm += s.Exponential()
	}
	floats.Scale(norm/floats.Norm(dst, 2), dst)
}

// Objective returns the objective of a mechanism for the unit noise u,
//
//	J(θ) = L(θ) + τ/2·‖θ‖² + u·θ/(βn),
//
// with β and τ of m.Calibrate. A nil u leaves out the noise, but not the mechanism's
// addition to the regulariser. The mechanism must be valid. It panics if the mechanism's
// size differs from the number of examples, its curvature is below the loss's, or the
// length of u is not the dimension of the examples.
func Objective(risk linear.Risk, m privacy.ObjectivePerturbation, u []float64) linear.Objective {
	if m.DatasetSize != int64(risk.Examples.Rows()) {
		panic("objectiveperturbation: mechanism for another number of records")
	}
	if m.Curvature < risk.Loss.Curvature() {
		panic("objectiveperturbation: mechanism for a smaller curvature")
	}
	beta, tau := m.Calibrate()
	o := linear.Objective{Risk: risk, Ridge: tau}
	if u != nil {
		if len(u) != risk.Examples.Dim() {
			panic("objectiveperturbation: dimension mismatch")
		}
		o.Linear = make([]float64, len(u))
		floats.AddScaled(o.Linear, 1/(beta*float64(m.DatasetSize)), u)
	}
	return o
}
