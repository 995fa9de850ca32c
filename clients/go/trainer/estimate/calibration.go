package estimate

import (
	"fmt"
	"math"

	"github.com/dpareto/dpareto/privacy"
)

// Calibration is the rate β of the noise and the regularisation τ of a mechanism at
// one ε, with their derivatives in ε. The second derivative of β is 0.
type Calibration struct {
	Beta, DBeta      float64 // β > 0 and β′
	Tau, DTau, D2Tau float64 // τ >= λ, τ′ and τ″
}

// Calibrate returns β and τ of m.Calibrate with their derivatives. At the boundary of the
// two branches it takes the branch below. The mechanism must be valid.
func Calibrate(m privacy.ObjectivePerturbation) Calibration {
	boundary, _ := Boundary(m)
	return calibrate(m, m.Epsilon > boundary)
}

// Boundary returns the ε above which the regularisation is λ alone, and whether β and τ
// are continuous there, as they are except for privacy.Chaudhuri. The mechanism must be
// valid, except for its ε, which does not matter.
func Boundary(m privacy.ObjectivePerturbation) (epsilon float64, continuous bool) {
	jacobian := math.Log1p(m.Curvature / (float64(m.DatasetSize) * m.Regularization))
	switch m.Calibration {
	case privacy.Chaudhuri:
		return 2 * jacobian, false
	case privacy.ContinuousChaudhuri:
		return 4 * jacobian, true
	default:
		return jacobian / m.Share(), true
	}
}

// calibrate returns the calibration of the branch above or below the boundary,
// continued to any ε.
func calibrate(m privacy.ObjectivePerturbation, above bool) Calibration {
	n := float64(m.DatasetSize)
	share, rate, terms := 0.25, 0.25, 2.0 // τ = c/n(e^(share·ε) − 1), β = rate·ε
	if m.Calibration == privacy.RankOne {
		share, terms = m.Share(), 1
		rate = (1 - share) / 2
	}
	if above {
		jacobian := terms * math.Log1p(m.Curvature/(n*m.Regularization))
		return Calibration{Beta: (m.Epsilon - jacobian) / 2, DBeta: 0.5, Tau: m.Regularization}
	}
	e := math.Expm1(share * m.Epsilon)
	tau := m.Curvature / (n * e)
	return Calibration{
		Beta: rate * m.Epsilon, DBeta: rate,
		Tau: tau, DTau: -share * tau * (e + 1) / e, D2Tau: share * share * tau * (e + 1) * (e + 2) / (e * e),
	}
}

// DiscontinuityError says that an estimate would have to cross the pole of
// privacy.Chaudhuri, above which the noise starts from infinity again.
type DiscontinuityError struct {
	Lower, Upper float64 // the values of ε on either side
	Boundary     float64 // ε* = 2·log(1 + c/(nλ))
}

// Error implements error.
func (e *DiscontinuityError) Error() string {
	return fmt.Sprintf("the calibration chaudhuri is discontinuous at ε = %.4g, between %.4g and %.4g: its noise becomes infinite just above, "+
		"so that no expansion holds on both sides; stay on one side, solve at every ε (Newton), or use another calibration",
		e.Boundary, e.Lower, e.Upper)
}

// checkInterval returns a *DiscontinuityError when the calibration is not continuous
// between two values of ε, in any order.
func checkInterval(m privacy.ObjectivePerturbation, a, b float64) error {
	lower, upper := min(a, b), max(a, b)
	boundary, continuous := Boundary(m)
	if !continuous && lower <= boundary && boundary < upper {
		return &DiscontinuityError{Lower: lower, Upper: upper, Boundary: boundary}
	}
	return nil
}
