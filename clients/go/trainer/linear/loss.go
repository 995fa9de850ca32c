package linear

import "math"

// Loss is a convex function ℓ of the margin z = y·(θ·x) of an example, with
// −1 <= ℓ′ <= 0. Implementations are values and safe for concurrent use.
type Loss interface {
	// Value returns ℓ(z) >= 0.
	Value(z float64) float64
	// Derivatives returns ℓ′(z) and ℓ″(z).
	Derivatives(z float64) (first, second float64)
	// Third returns ℓ‴(z).
	Third(z float64) float64
	// Curvature returns the least upper bound of ℓ″.
	Curvature() float64
}

// Logistic is the loss of logistic regression in nats, log(1 + e^(−z)).
type Logistic struct{}

// Value implements Loss.
func (Logistic) Value(z float64) float64 {
	return max(-z, 0) + math.Log1p(math.Exp(-math.Abs(z)))
}

// Derivatives implements Loss: ℓ′ = −1/(1 + e^z) and ℓ″ = ℓ′·(−1 − ℓ′), without
// cancellation for large |z|.
func (Logistic) Derivatives(z float64) (first, second float64) {
	e := math.Exp(-math.Abs(z))
	p := 1 / (1 + e)
	if z > 0 {
		return -e * p, e * p * p
	}
	return -p, e * p * p
}

// Third implements Loss: ℓ‴ = −ℓ″·tanh(z/2).
func (l Logistic) Third(z float64) float64 {
	_, second := l.Derivatives(z)
	return -second * math.Tanh(z/2)
}

// Curvature returns 1/4.
func (Logistic) Curvature() float64 { return 0.25 }

// Huber is the hinge loss of the support vector machine with its corner at z = 1
// replaced by a parabola (Chaudhuri, Monteleoni and Sarwate, "Differentially
// private empirical risk minimization", 2011, equation 7):
//
//	0                 for z > 1 + h
//	(1 + h − z)²/4h   for |1 − z| <= h
//	1 − z             for z < 1 − h
//
// It has one continuous derivative; the second jumps at 1 ± h, where it counts
// as 1/2h.
type Huber struct {
	Width float64 // h > 0, finite
}

// Value implements Loss.
func (l Huber) Value(z float64) float64 {
	switch {
	case z > 1+l.Width:
		return 0
	case z < 1-l.Width:
		return 1 - z
	default:
		return (1 + l.Width - z) * (1 + l.Width - z) / (4 * l.Width)
	}
}

// Derivatives implements Loss.
func (l Huber) Derivatives(z float64) (first, second float64) {
	switch {
	case z > 1+l.Width:
		return 0, 0
	case z < 1-l.Width:
		return -1, 0
	default:
		return -(1 + l.Width - z) / (2 * l.Width), 1 / (2 * l.Width)
	}
}

// Third returns 0, which is ℓ‴ everywhere but at 1 ± h.
func (Huber) Third(float64) float64 { return 0 }

// Curvature returns 1/2h.
func (l Huber) Curvature() float64 { return 1 / (2 * l.Width) }
