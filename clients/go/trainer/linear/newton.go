package linear

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Objective is a regularised risk with a linear term,
//
//	J(θ) = L(θ) + τ/2·‖θ‖² + a·θ,
//
// which is τ-strongly convex, so that its minimiser is unique. It is safe for
// concurrent use.
type Objective struct {
	Risk   Risk
	Ridge  float64   // τ > 0, finite
	Linear []float64 // a, one element per feature; nil means 0
}

// Tolerance is the default gradient norm at which [Objective.Minimize] stops.
const Tolerance = 1e-10

// Bounds on the Newton steps. A logistic regression from zero takes about ten, and
// each roughly doubles the correct digits in the end.
const (
	directSteps = 60  // towards the objective itself
	stageSteps  = 200 // towards each intermediate one
)

// Minimum is the result of a minimisation.
type Minimum struct {
	Theta        []float64 // the model, one weight per feature
	Value        float64   // J(Theta)
	GradientNorm float64   // ‖∇J(Theta)‖₂
	Distance     float64   // bound on the distance to the exact minimiser, GradientNorm/τ
	Iterations   int       // Newton steps taken
}

// NotConvergedError says that a minimisation did not reach its tolerance.
type NotConvergedError struct {
	GradientNorm float64 // where the minimisation has ended
	Tolerance    float64 // the requested tolerance
	Distance     float64 // bound on the distance to the exact minimiser
	Iterations   int     // Newton steps taken
	Reason       string  // in words
}

// Error implements error.
func (e *NotConvergedError) Error() string {
	return fmt.Sprintf("gradient norm %.3g after %d Newton steps, want at most %.3g: %s; the minimiser is within %.3g of the model",
		e.GradientNorm, e.Iterations, e.Tolerance, e.Reason, e.Distance)
}

// Value returns J(θ).
func (o Objective) Value(theta []float64) float64 {
	value, _ := o.addTerms(nil, theta, o.Risk.Value(theta))
	return value
}

// GradientTo stores ∇J(θ) in dst.
func (o Objective) GradientTo(dst, theta []float64) {
	o.Risk.GradientTo(dst, theta)
	o.addTerms(dst, theta, 0)
}

// FactorizeTo stores the Cholesky factor of W = ∇²L(θ) + τI in dst, which then
// solves W·x = v. It returns false when W is not positive definite to working
// precision, as happens when τ is below about 1e-16 of the largest curvature.
func (o Objective) FactorizeTo(dst *mat.Cholesky, theta []float64) (ok bool) {
	hessian := mat.NewSymDense(o.Risk.Examples.Dim(), nil)
	o.Risk.HessianTo(hessian, theta)
	return o.factorizeTo(dst, hessian)
}

// factorizeTo factors hessian + τI and overwrites the hessian with it.
func (o Objective) factorizeTo(dst *mat.Cholesky, hessian *mat.SymDense) (ok bool) {
	for j := range hessian.SymmetricDim() {
		hessian.SetSym(j, j, hessian.At(j, j)+o.Ridge)
	}
	return dst.Factorize(hessian)
}

// addTerms adds the ridge and the linear term to the value of the risk and,
// unless it is nil, to the gradient. The magnitude is the sum of the absolute
// values of the three terms, of which rounding errors are fractions.
func (o Objective) addTerms(gradient, theta []float64, risk float64) (value, magnitude float64) {
	ridge := o.Ridge / 2 * floats.Dot(theta, theta)
	value, magnitude = risk+ridge, math.Abs(risk)+ridge
	if gradient != nil {
		floats.AddScaled(gradient, o.Ridge, theta)
	}
	if o.Linear != nil {
		linear := floats.Dot(o.Linear, theta)
		value += linear
		magnitude += math.Abs(linear)
		if gradient != nil {
			floats.Add(gradient, o.Linear)
		}
	}
	return value, magnitude
}

// Minimize returns the minimiser of J, found by Newton's method with a line
// search from the given start; nil means from zero. Where that takes too long, as
// it may for a Huber loss of little width and a small ridge, the ridge is lowered
// in stages, from one that makes the problem easy. It is done when ‖∇J‖₂ is at
// most tolerance; 0 means [Tolerance].
//
// Strong convexity turns the remaining gradient into a distance: the exact minimiser lies
// within ‖∇J‖/τ. A *NotConvergedError says that the tolerance was not reached; the
// minimum then is the result of the last step. The only other error is the context's.
//
// It panics when a length is not the dimension of the examples, or when the
// ridge is not positive and finite.
func (o Objective) Minimize(ctx context.Context, start []float64, tolerance float64) (Minimum, error) {
	dim := o.Risk.Examples.Dim()
	if !(o.Ridge > 0) || math.IsInf(o.Ridge, 1) {
		panic("linear: ridge not positive and finite")
	}
	if o.Linear != nil {
		checkLength(len(o.Linear), dim)
	}
	if start != nil {
		checkLength(len(start), dim)
	}
	if tolerance == 0 {
		tolerance = Tolerance
	}
	m, err := o.newton(ctx, start, tolerance, 0, directSteps)
	if err == nil || m.Iterations < directSteps {
		return m, err
	}
	start = nil
	for ridge := o.Risk.Loss.Curvature(); ridge > o.Ridge; ridge /= 4 {
		stage := o
		stage.Ridge = ridge
		if m, err = stage.newton(ctx, start, tolerance, m.Iterations, stageSteps); ctx.Err() != nil {
			return Minimum{}, err
		}
		start = m.Theta // close enough to start from, even if not converged
	}
	return o.newton(ctx, start, tolerance, m.Iterations, stageSteps)
}

// newton takes at most a number of steps, besides those already taken.
func (o Objective) newton(ctx context.Context, start []float64, tolerance float64, taken, most int) (Minimum, error) {
	dim := o.Risk.Examples.Dim()
	at, next := o.newPoint(), o.newPoint()
	copy(at.theta, start)
	at.evaluate(o)

	direction := mat.NewVecDense(dim, nil)
	hessian := mat.NewSymDense(dim, nil)
	var factor mat.Cholesky
	iterations := taken
	failure := func(reason string) error {
		norm := floats.Norm(at.gradient, 2)
		return &NotConvergedError{
			GradientNorm: norm, Tolerance: tolerance, Distance: norm / o.Ridge,
			Iterations: iterations, Reason: reason,
		}
	}
	var err error
	for ; !(floats.Norm(at.gradient, 2) <= tolerance); iterations++ {
		if err = ctx.Err(); err != nil {
			return Minimum{}, err
		}
		if iterations == taken+most {
			err = failure("the steps are used up")
			break
		}
		o.Risk.hessianTo(hessian, at.second)
		if !o.factorizeTo(&factor, hessian) {
			err = failure("the Hessian is not positive definite to working precision")
			break
		}
		// A condition number beyond 1/ε is no reason to stop: the line search decides
		// whether the direction is good.
		_ = factor.SolveVecTo(direction, mat.NewVecDense(dim, at.gradient))
		if !o.search(at, next, direction.RawVector().Data) {
			err = failure("rounding hides any further descent")
			break
		}
		at, next = next, at
	}
	norm := floats.Norm(at.gradient, 2)
	return Minimum{
		Theta:        slices.Clone(at.theta),
		Value:        at.value,
		GradientNorm: norm,
		Distance:     norm / o.Ridge,
		Iterations:   iterations,
	}, err
}

// point is a model with the objective and its derivatives there.
type point struct {
	theta, gradient []float64
	second          []float64 // ℓ″ of every example
	value           float64
	magnitude       float64 // of which rounding errors in the value are fractions
}

func (o Objective) newPoint() *point {
	dim, rows := o.Risk.Examples.Dim(), o.Risk.Examples.Rows()
	return &point{theta: make([]float64, dim), gradient: make([]float64, dim), second: make([]float64, rows)}
}

func (p *point) evaluate(o Objective) {
	risk := o.Risk.passTo(p.gradient, p.second, p.theta)
	p.value, p.magnitude = o.addTerms(p.gradient, p.theta, risk)
}

// search moves next to at − t·direction, with t = 1 if that has a sufficient decrease
// (Armijo's condition) and else close to the least value along it. It returns false if
// there is no decrease.
func (o Objective) search(at, next *point, direction []float64) bool {
	const (
		fraction = 1e-4  // of the decrease that the slope promises
		rounding = 1e-13 // relative error of a value, for sums of up to millions of rows
	)
	slope := floats.Dot(at.gradient, direction)
	if !(slope > 0) {
		return false
	}
	move := func(t float64) (enough bool) {
		floats.AddScaledTo(next.theta, at.theta, -t, direction)
		next.evaluate(o)
		return next.value <= at.value-fraction*t*slope+rounding*at.magnitude
	}
	return move(1) || move(o.step(at.theta, direction, slope))
}

// step returns a t in (0, 1) at which J(θ − t·direction) still falls, but at no
// more than a tenth of the slope at 0, provided that it rises at 1. The slope in t
// increases, since J is convex: bisection finds it, in one product with every
// example and then in time O(n) per halving.
func (o Objective) step(theta, direction []float64, slope float64) float64 {
	examples := o.Risk.Examples
	margins, changes := make([]float64, examples.Rows()), make([]float64, examples.Rows())
	for i := range margins {
		margins[i], changes[i] = examples.Margin(i, theta), examples.Margin(i, direction)
	}
	constant := o.Ridge * floats.Dot(theta, direction)
	if o.Linear != nil {
		constant += floats.Dot(o.Linear, direction)
	}
	quadratic := o.Ridge * floats.Dot(direction, direction)
	lo, hi := 0.0, 1.0
	for range 60 {
		t := (lo + hi) / 2
		var sum float64
		for i, z := range margins {
			first, _ := o.Risk.Loss.Derivatives(z - t*changes[i])
			sum += first * changes[i]
		}
		falling := sum/float64(len(margins)) + constant - t*quadratic
		if falling >= 0 && falling <= slope/10 {
			return t
		}
		if falling > 0 {
			lo = t
		} else {
			hi = t
		}
	}
	return lo
}
