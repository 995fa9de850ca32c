package estimate

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/trainer/linear"
)

// PublishedLineError returns the error of equation 9 by Theorem 3 of the paper for n
// training examples, with the constant 1 that its text takes: (to − from)²/(n²·from⁴),
// which is 1e-6 for n = 10000, from 0.1 to 0.2. It is no bound: see [Problem.LineErrorBound].
func PublishedLineError(n int, from, to float64) float64 {
	ratio := (to - from) / (float64(n) * from * from)
	return ratio * ratio
}

// LineAssumptions are constants that hold for the models at all ε of an interval. The zero
// value assumes nothing.
type LineAssumptions struct {
	// Norm bounds ‖θ‖, the paper's c_1; 0 stands for what follows from the objective.
	Norm float64
	// Strength is a lower bound of the least eigenvalue of the Hessian of the mean loss,
	// at least 0 and at most the curvature of the loss. The paper has none.
	Strength float64
}

// ErrNotSmooth says that a loss has no bounded third derivative: Theorem 3 does not apply.
var ErrNotSmooth = errors.New("no bound holds for the line: among the losses here, only the logistic one has a third derivative everywhere")

// LineErrorBound bounds the error at ε = to of the line through the training loss at from
// (equation 9) for the unit noise u, nil for none: Theorem 3 of the paper, corrected. It
// needs no training.
//
// The error is the integral of |to − e|·|L″(e)| over e between the two (Taylor). Let
// k = ‖u‖, r >= ‖θ‖, and the eigenvalues h of the Hessian H of the mean loss lie between
// m = Strength and c = ¼. The optimality condition is ∇L = −τθ − u/(βn), and ‖x‖ <= 1 gives
// ‖∇L‖ <= 1; |ℓ‴| <= ℓ″ and |ℓ‴| <= 1/(6√3). So, with the quantities of [Problem.Derivatives],
//
//	‖∇L‖ <= G = min(1, τr + k/(βn))
//	‖g‖ <= γ = kβ′/(β²n) + |τ′|r
//	‖θ′‖ <= D = γ/(m + τ)
//	θ′ᵀHθ′ <= Q = γ²·max h/(h + τ)²
//	‖T[θ′]θ′‖ <= min(Q, D²/(6√3))
//	|L″| <= Q + G·(2kβ′²/(β³n) + τ″r + 2|τ′|D + min(Q, D²/(6√3)))/(m + τ).
//
// β increases with ε, β′ is constant, and τ, |τ′| and τ″ decrease, so that each factor is
// largest at one end of an interval; the integral is a sum over short ones. Every model has
// r = (a + √(a² + 2τ·log 2))/τ with a = k/(βn), since its objective is at most the one of 0.
//
// For fixed k and r the bound is of order (to − from)²/(n·min(from, to)³). The order n²ε⁴ of
// the paper takes a Strength > 0 that does not shrink with n, and min(from, to) for ε; and
// k² has the mean d(d + 1) in d features.
//
// The error is ErrNotSmooth, a *DiscontinuityError, or says that assumptions are out of
// range, that an ε is not positive and finite, or that the branches of the calibration meet
// between the two.
func (p Problem) LineErrorBound(u []float64, from, to float64, a LineAssumptions) (float64, error) {
	if _, ok := p.Risk.Loss.(linear.Logistic); !ok {
		return 0, ErrNotSmooth
	}
	if err := p.Mechanism(from).Validate(); err != nil {
		return 0, err
	}
	if err := p.checkExpansion(from, to); err != nil {
		return 0, err
	}
	if c := p.Risk.Loss.Curvature(); !(a.Norm >= 0) || !(a.Strength >= 0 && a.Strength <= c) {
		return 0, fmt.Errorf("the norm is %v and the strength %v, want at least 0 and from 0 to %v", a.Norm, a.Strength, c)
	}
	lower, upper := min(from, to), max(from, to)
	boundary, _ := Boundary(p.Mechanism(from))
	if lower <= boundary && boundary < upper {
		return 0, fmt.Errorf("the branches of the calibration meet at ε = %.4g, between %.4g and %.4g: no bound holds on both sides", boundary, lower, upper)
	}
	norm := 0.0
	if u != nil {
		norm = floats.Norm(u, 2)
	}
	const pieces = 200
	sum, width := 0.0, math.Log(upper/lower)/pieces
	for i := range pieces {
		left := lower * math.Exp(width*float64(i))
		right := lower * math.Exp(width*float64(i+1))
		x, y := math.Abs(to-left), math.Abs(to-right)
		sum += p.secondBound(norm, left, right, lower > boundary, a) * math.Abs(x*x-y*y) / 2
	}
	return sum, nil
}

// secondBound bounds |L″| between two values of ε for a noise of a norm.
func (p Problem) secondBound(noise, left, right float64, above bool, a LineAssumptions) float64 {
	n := float64(p.Risk.Examples.Rows())
	l, h := calibrate(p.Mechanism(left), above), calibrate(p.Mechanism(right), above)
	b := noise / (l.Beta * n)
	r := (b + math.Sqrt(b*b+2*h.Tau*math.Ln2)) / h.Tau
	if a.Norm > 0 {
		r = min(r, a.Norm)
	}
	stiffness := a.Strength + h.Tau
	gradient := min(1, l.Tau*r+b)
	g := b*l.DBeta/l.Beta - l.DTau*r // τ′ <= 0
	theta := g / stiffness
	// h/(h + τ)² rises up to h = τ and falls from there on.
	curvature := min(max(a.Strength, h.Tau), p.Risk.Loss.Curvature())
	form := g * g * curvature / ((curvature + h.Tau) * (curvature + h.Tau))
	third := min(form, theta*theta/(6*math.Sqrt(3)))
	ratio := l.DBeta / l.Beta
	return form + gradient*(2*b*ratio*ratio+l.D2Tau*r-2*l.DTau*theta+third)/stiffness
}
