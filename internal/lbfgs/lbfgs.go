package lbfgs

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/internal/pause"
)

// Settings.
const (
	memory           = 8     // correction pairs kept
	maxIterations    = 100   // accepted steps and restarts of the memory
	maxBacktracks    = 20    // per line search
	sufficientFactor = 1e-4  // Armijo's condition
	curvatureFactor  = 1e-10 // least cosine of a correction pair
)

// Defaults of [Options].
const (
	DefaultMaxStep           = 2.0
	DefaultGradientTolerance = 1e-2
	DefaultValueTolerance    = 1e-8
)

// Function is a differentiable function.
type Function interface {
	// Value returns the value at x. An error means that there is none.
	Value(x []float64) (float64, error)

	// Gradient stores the gradient at the point of the last call of Value. It is
	// called at most once for that.
	Gradient(grad []float64)
}

// Options tune [Minimise]. A field that is 0 takes its default.
type Options struct {
	// MaxStep is the largest change of a coordinate in one step. Default
	// [DefaultMaxStep].
	MaxStep float64

	// GradientTolerance ends the search when no entry of the projected gradient is
	// larger in magnitude. Default [DefaultGradientTolerance].
	GradientTolerance float64

	// ValueTolerance ends the search when a step decreases the value by no more, relative to
	// the value or to 1 if that is less. Default [DefaultValueTolerance].
	ValueTolerance float64

	// MaxEvaluations is the largest number of calls of Value, at least the one at the
	// start. 0 means no limit.
	MaxEvaluations int

	// Decrease is the decrease that a quasi-Newton step must promise to be taken. 0 means that
	// the search goes on to the minimum.
	Decrease float64
}

// correction is a step s of the minimiser and the change y of the gradient.
type correction struct {
	s, y []float64
}

// Minimise moves x to a local minimum of f in the box from lower to upper and
// returns the value there. It is L-BFGS on the coordinates that are free to
// move, with a backtracking search along the projection of the direction onto
// the box: the two-metric projection of Bertsekas, "Projected Newton Methods
// for Optimization Problems with Simple Constraints", SIAM J. Control and
// Optimization 20(2), 1982, with the two-loop recursion of Nocedal, "Updating
// Quasi-Newton Matrices with Limited Storage", Mathematics of Computation
// 35(151), 1980.
//
// Only steps that lower the value are taken, so the result is the best point
// seen. A step to a point where f has an error or no finite value counts as too
// long. Minimise returns the error of ctx, or an error if f has an error or no finite value
// at the x given, moved into the box.
func Minimise(ctx context.Context, f Function, x, lower, upper []float64, o Options) (float64, error) {
	maxStep := cmp.Or(o.MaxStep, DefaultMaxStep)
	gradientTolerance := cmp.Or(o.GradientTolerance, DefaultGradientTolerance)
	valueTolerance := cmp.Or(o.ValueTolerance, DefaultValueTolerance)
	n := len(x)
	clamp(x, lower, upper)
	if err := pause.Check(ctx); err != nil {
		return 0, err
	}
	value, err := f.Value(x)
	if err != nil {
		return 0, err
	}
	if !finite(value) {
		return 0, &ValueError{value}
	}
	grad, trialGrad := make([]float64, n), make([]float64, n)
	trial, direction := make([]float64, n), make([]float64, n)
	free := make([]bool, n)
	var corrections []correction
	left := math.MaxInt // evaluations
	if o.MaxEvaluations > 0 {
		left = o.MaxEvaluations - 1
	}
	if left == 0 {
		return value, nil
	}
	f.Gradient(grad)

	for range maxIterations {
		if projectedNorm(x, grad, lower, upper) < gradientTolerance {
			break
		}
		markFree(free, x, grad, lower, upper)
		quasiNewton(direction, grad, free, corrections)
		block(direction, x, lower, upper)
		if floats.Dot(direction, grad) >= 0 {
			corrections = corrections[:0]
			quasiNewton(direction, grad, free, nil)
		}
		// The step to the minimum of the quadratic model lowers it by half the slope.
		if len(corrections) > 0 && -floats.Dot(direction, grad)/2 < o.Decrease {
			break
		}
		if longest := floats.Norm(direction, math.Inf(1)); longest > maxStep {
			floats.Scale(maxStep/longest, direction)
		}

		next, ok, err := backtrack(ctx, f, &left, trial, x, direction, grad, value, lower, upper)
		if err != nil {
			return 0, err
		}
		if !ok {
			if len(corrections) == 0 || left == 0 {
				break
			}
			// The corrections mislead: go on with steepest descent.
			corrections = corrections[:0]
			continue
		}
		if left == 0 {
			copy(x, trial)
			value = next
			break
		}
		f.Gradient(trialGrad)
		corrections = remember(corrections, trial, x, trialGrad, grad)
		decrease := value - next
		value = next
		copy(x, trial)
		copy(grad, trialGrad)
		if decrease <= valueTolerance*max(1, math.Abs(value)) {
			break
		}
	}
	return value, nil
}

// ValueError reports that a function has no finite value at the starting point.
type ValueError struct{ Value float64 }

func (e *ValueError) Error() string {
	return fmt.Sprintf("lbfgs: the value at the starting point is %v", e.Value)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// clamp moves x into the box.
func clamp(x, lower, upper []float64) {
	for i := range x {
		x[i] = min(max(x[i], lower[i]), upper[i])
	}
}

// projectedNorm returns the largest coordinate of P(x − grad) − x in magnitude,
// where P projects onto the box. It vanishes at a constrained stationary point.
func projectedNorm(x, grad, lower, upper []float64) float64 {
	var norm float64
	for i, g := range grad {
		norm = max(norm, math.Abs(min(max(x[i]-g, lower[i]), upper[i])-x[i]))
	}
	return norm
}

// markFree stores whether each coordinate can move against the gradient without
// leaving the box.
func markFree(free []bool, x, grad, lower, upper []float64) {
	for i, g := range grad {
		free[i] = (x[i] > lower[i] || g <= 0) && (x[i] < upper[i] || g >= 0)
	}
}

// block zeroes the coordinates of direction that point out of the box from a
// face of it.
func block(direction, x, lower, upper []float64) {
	for i, v := range direction {
		if (x[i] <= lower[i] && v < 0) || (x[i] >= upper[i] && v > 0) {
			direction[i] = 0
		}
	}
}

// quasiNewton stores into direction minus the L-BFGS inverse Hessian times
// grad, both restricted to the free coordinates. Without corrections it is minus
// the gradient, shortened to length at most 1.
func quasiNewton(direction, grad []float64, free []bool, corrections []correction) {
	dot := func(a, b []float64) float64 {
		var sum float64
		for i, ok := range free {
			if ok {
				sum += a[i] * b[i]
			}
		}
		return sum
	}
	addScaled := func(scale float64, a []float64) {
		for i, ok := range free {
			if ok {
				direction[i] += scale * a[i]
			}
		}
	}
	clear(direction)
	addScaled(-1, grad)

	var coefficients, curvatures [memory]float64
	scale := 0.0
	for k := len(corrections) - 1; k >= 0; k-- {
		c := corrections[k]
		curvatures[k] = dot(c.s, c.y)
		yy := dot(c.y, c.y)
		if curvatures[k] <= curvatureFactor*math.Sqrt(dot(c.s, c.s)*yy) {
			// Not convex along the free coordinates.
			curvatures[k] = 0
			continue
		}
		if scale == 0 {
			scale = curvatures[k] / yy
		}
		coefficients[k] = dot(c.s, direction) / curvatures[k]
		addScaled(-coefficients[k], c.y)
	}
	if scale == 0 {
		scale = 1 / max(1, floats.Norm(direction, 2))
	}
	floats.Scale(scale, direction)
	for k, c := range corrections {
		if curvatures[k] > 0 {
			addScaled(coefficients[k]-dot(c.y, direction)/curvatures[k], c.s)
		}
	}
}

// backtrack searches along the projection of x + t·direction, from t = 1
// downwards, for a point with a sufficiently lower value (Armijo's condition).
// It stores that point into trial and returns its value, and whether there is
// one. It gives up when no evaluations are left.
func backtrack(ctx context.Context, f Function, left *int, trial, x, direction, grad []float64, value float64, lower, upper []float64) (float64, bool, error) {
	t := 1.0
	for range min(maxBacktracks, *left) {
		floats.AddScaledTo(trial, x, t, direction)
		clamp(trial, lower, upper)
		var slope float64
		for i, g := range grad {
			slope += g * (trial[i] - x[i])
		}
		if err := pause.Check(ctx); err != nil {
			return 0, false, err
		}
		*left--
		next, err := f.Value(trial)
		switch {
		case err != nil || !finite(next):
			t /= 10
		case slope < 0 && next <= value+sufficientFactor*slope:
			return next, true, nil
		default:
			// The minimum of the parabola through value, slope and next.
			shrink := -slope / (2 * (next - value - slope))
			if !(shrink >= 0.1) {
				shrink = 0.1
			}
			t *= min(shrink, 0.5)
		}
	}
	return 0, false, nil
}

// remember appends the correction of the step from x to trial and forgets the
// oldest one if there are too many. A step along which the function is not
// convex is skipped, since it would spoil the inverse Hessian.
func remember(corrections []correction, trial, x, trialGrad, grad []float64) []correction {
	c := correction{s: make([]float64, len(x)), y: make([]float64, len(x))}
	floats.SubTo(c.s, trial, x)
	floats.SubTo(c.y, trialGrad, grad)
	if floats.Dot(c.s, c.y) <= curvatureFactor*floats.Norm(c.s, 2)*floats.Norm(c.y, 2) {
		return corrections
	}
	if len(corrections) == memory {
		copy(corrections, corrections[1:])
		corrections = corrections[:memory-1]
	}
	return append(corrections, c)
}
