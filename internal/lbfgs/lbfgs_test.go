package lbfgs

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/optimize/functions"

	"github.com/dpareto/dpareto/internal/require"
)

// testFunction is a differentiable function from plain Go functions that
// counts its evaluations.
type testFunction struct {
	f     func(x []float64) float64
	grad  func(grad, x []float64)
	x     []float64
	calls int
}

var errTooNegative = errors.New("first coordinate is negative")

func (t *testFunction) Value(x []float64) (float64, error) {
	t.calls++
	t.x = append(t.x[:0], x...)
	v := t.f(x)
	if math.IsInf(v, -1) {
		return 0, errTooNegative
	}
	return v, nil
}

func (t *testFunction) Gradient(grad []float64) { t.grad(grad, t.x) }

func newTestFunction(f func([]float64) float64) *testFunction {
	return &testFunction{f: f, grad: func(grad, x []float64) {
		fd.Gradient(grad, f, x, &fd.Settings{Formula: fd.Central})
	}}
}

func TestMinimise(t *testing.T) {
	rosenbrock := functions.ExtendedRosenbrock{}
	quadratic := func(x []float64) float64 {
		a, b := x[0]-3, x[1]+1
		return a*a + 10*b*b + 3*a*b // minimum at (3, −1)
	}
	inf := math.Inf(1)
	// The distance to the minimum is at most about gradientTolerance over the
	// least curvature there, which is 0.4 for Rosenbrock's function and at least
	// 1 for the others.
	tests := []struct {
		name                string
		f                   *testFunction
		start, lower, upper []float64
		want                []float64
		tol                 float64
	}{
		{
			"Rosenbrock inside",
			&testFunction{f: rosenbrock.Func, grad: rosenbrock.Grad},
			[]float64{-1.2, 1}, []float64{-5, -5}, []float64{5, 5},
			[]float64{1, 1}, 0.03,
		},
		{
			// On the face x = 0.5 the minimum of 100(y − ¼)² is at ¼.
			"Rosenbrock on a face",
			&testFunction{f: rosenbrock.Func, grad: rosenbrock.Grad},
			[]float64{-1.2, 1}, []float64{-5, -5}, []float64{0.5, 5},
			[]float64{0.5, 0.25}, 1e-4,
		},
		{
			"quadratic inside",
			newTestFunction(quadratic),
			[]float64{-4, 4}, []float64{-5, -5}, []float64{5, 5},
			[]float64{3, -1}, 0.01,
		},
		{
			// With x = 1: 20(y + 1) + 3(1 − 3) = 0.
			"quadratic on a face",
			newTestFunction(quadratic),
			[]float64{-4, 4}, []float64{-5, -5}, []float64{1, 5},
			[]float64{1, -0.7}, 0.01,
		},
		{
			"quadratic in a corner",
			newTestFunction(quadratic),
			[]float64{-4, 4}, []float64{-5, 0}, []float64{1, 5},
			[]float64{1, 0}, 0,
		},
		{
			"start out of bounds, at the face where the minimum is not",
			newTestFunction(quadratic),
			[]float64{-40, 40}, []float64{-5, -5}, []float64{1, 5},
			[]float64{1, -0.7}, 0.01,
		},
		{
			"pole beyond the minimum",
			newTestFunction(func(x []float64) float64 {
				if x[0] <= 0 {
					return inf
				}
				return x[0] - math.Log(x[0])
			}),
			[]float64{9}, []float64{-10}, []float64{10},
			[]float64{1}, 0.01,
		},
		{
			"error beyond the minimum",
			newTestFunction(func(x []float64) float64 {
				if x[0] < 0 {
					return -inf
				}
				return x[0] + 1/(x[0]+0.01)
			}),
			[]float64{9}, []float64{-10}, []float64{10},
			[]float64{0.99}, 0.01,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := append([]float64{}, test.start...)
			value, err := Minimise(context.Background(), test.f, got, test.lower, test.upper, Options{})
			require.NoError(t, err)
			if maxDifference(got, test.want) > test.tol {
				t.Errorf("minimum at %v after %d evaluations, want %v", got, test.f.calls, test.want)
			}
			if want := test.f.f(got); value != want {
				t.Errorf("value %v, want %v, the value at the point", value, want)
			}
		})
	}
}

// A wrong gradient must not make the result worse than the start.
func TestMinimiseNeverClimbs(t *testing.T) {
	f := &testFunction{
		f:    func(x []float64) float64 { return x[0] * x[0] },
		grad: func(grad, _ []float64) { grad[0] = 1 },
	}
	for _, start := range []float64{-2, -1e-9, 0, 3} {
		x := []float64{start}
		value, err := Minimise(context.Background(), f, x, []float64{-5}, []float64{5}, Options{})
		require.NoError(t, err)
		if value > start*start || value != x[0]*x[0] {
			t.Errorf("from %v to %v with value %v", start, x[0], value)
		}
	}
}

func TestMinimiseBadStart(t *testing.T) {
	lower, upper := []float64{-1}, []float64{1}
	f := newTestFunction(func([]float64) float64 { return math.Inf(-1) })
	if _, err := Minimise(context.Background(), f, []float64{0}, lower, upper, Options{}); !errors.Is(err, errTooNegative) {
		t.Errorf("error %v, want the function's", err)
	}
	f = newTestFunction(func([]float64) float64 { return math.NaN() })
	if _, err := Minimise(context.Background(), f, []float64{0}, lower, upper, Options{}); err == nil || !strings.Contains(err.Error(), "NaN") {
		t.Errorf("error %v, want one with NaN", err)
	}
}

// However few evaluations there are, the result is at least as good as the start,
// and all of them are counted.
func TestMinimiseEvaluations(t *testing.T) {
	rosenbrock := functions.ExtendedRosenbrock{}
	last := math.Inf(1)
	for limit := 1; limit <= 40; limit++ {
		f := &testFunction{f: rosenbrock.Func, grad: rosenbrock.Grad}
		x := []float64{-1.2, 1}
		value, err := Minimise(context.Background(), f, x, []float64{-5, -5}, []float64{5, 5}, Options{MaxEvaluations: limit})
		require.NoError(t, err)
		if f.calls > limit || (limit < 20 && f.calls < limit) {
			t.Errorf("%d evaluations of %d", f.calls, limit)
		}
		if value > last || value != rosenbrock.Func(x) {
			t.Errorf("value %v after %d evaluations, %v before", value, limit, last)
		}
		last = value
	}
}

// A tolerance ends the search of a quadratic function near its minimum, with
// fewer evaluations.
func TestMinimiseDecrease(t *testing.T) {
	bowl := func(x []float64) float64 { return x[0]*x[0] + 3*x[1]*x[1] + math.Pow(x[0]-x[1], 4) }
	var calls []int
	for _, decrease := range []float64{0, 1e-2} {
		f := newTestFunction(bowl)
		x := []float64{4, -3}
		value, err := Minimise(context.Background(), f, x, []float64{-5, -5}, []float64{5, 5}, Options{Decrease: decrease})
		require.NoError(t, err)
		if value > 5*decrease+1e-4 {
			t.Errorf("value %v with the tolerance %v", value, decrease)
		}
		calls = append(calls, f.calls)
	}
	if calls[1] >= calls[0] {
		t.Errorf("%d evaluations with the tolerance, %d without", calls[1], calls[0])
	}
}

// maxDifference returns the largest |a_i − b_i|.
func maxDifference(a, b []float64) float64 {
	var largest float64
	for i, v := range a {
		largest = math.Max(largest, math.Abs(v-b[i]))
	}
	return largest
}
