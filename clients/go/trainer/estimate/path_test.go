package estimate

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// smallProblem has 500 training and 200 held-out records of 5 features.
func smallProblem(t testing.TB) Problem {
	t.Helper()
	return Problem{
		Risk:           linear.Risk{Examples: normal(t, 500, 5, 0.5, 1), Loss: linear.Logistic{}},
		HeldOut:        normal(t, 200, 5, 0.5, 2),
		Regularization: 1e-3,
	}
}

// The exact path is what single solutions are, in any order of ε.
func TestNewton(t *testing.T) {
	p := smallProblem(t)
	u := unitNoise(5, 1, 0)
	path := p.Newton(u)
	for _, epsilon := range []float64{1, 0.9, 0.5, 0.1, 3, 0.3} {
		s, err := p.Solve(t.Context(), u, epsilon, nil)
		require.NoError(t, err)
		theta, err := path.Model(t.Context(), epsilon)
		require.NoError(t, err)
		// Both are within 1e-10/τ of the minimiser.
		_, tau := p.Mechanism(epsilon).Calibrate()
		if distance := floats.Distance(theta, s.Theta, 2); distance > 3e-10/tau {
			t.Errorf("ε = %v: the path is %v from the solution", epsilon, distance)
		}
		utility, err := path.Utility(t.Context(), epsilon)
		require.NoError(t, err)
		if want := p.Evaluate(s.Theta); math.Abs(utility.Train.Loss-want.Train.Loss) > 1e-7 || math.Abs(utility.HeldOut.Loss-want.HeldOut.Loss) > 1e-7 ||
			utility.Train.Error != want.Train.Error || utility.HeldOut.Error != want.HeldOut.Error {
			t.Errorf("ε = %v: %+v, want %+v", epsilon, utility, want)
		}
	}
}

// At anchors interpolation is exact, in value and slope; between them it comes close,
// across the boundary of the branches as well.
func TestHermite(t *testing.T) {
	for _, rule := range []privacy.ObjectiveCalibration{privacy.RankOne, privacy.ContinuousChaudhuri} {
		p := smallProblem(t)
		p.Calibration = rule
		p.Tolerance = 1e-13
		u := unitNoise(5, 1, 0)
		boundary, _ := Boundary(p.Mechanism(1))
		anchors := Anchors(boundary/4, boundary*4, 6)
		path, err := p.Hermite(t.Context(), u, anchors)
		require.NoError(t, err)
		if got := len(path.(*hermite).anchors); got != 7 { // with the boundary
			t.Errorf("%d anchors, want 7", got)
		}
		exact := p.Newton(u)
		compare := func(epsilon, tolerance float64) {
			t.Helper()
			got, err := path.Utility(t.Context(), epsilon)
			require.NoError(t, err)
			want, err := exact.Utility(t.Context(), epsilon)
			require.NoError(t, err)
			if math.Abs(got.Train.Loss-want.Train.Loss) > tolerance || math.Abs(got.HeldOut.Loss-want.HeldOut.Loss) > tolerance {
				t.Errorf("rule %v, ε = %v: %+v, want %+v", rule, epsilon, got, want)
			}
			theta, err := path.Model(t.Context(), epsilon)
			require.NoError(t, err)
			solution, err := exact.Model(t.Context(), epsilon)
			require.NoError(t, err)
			if distance := floats.Distance(theta, solution, 2); distance > tolerance*(1+floats.Norm(solution, 2)) {
				t.Errorf("rule %v, ε = %v: the model is wrong by %v of %v", rule, epsilon, distance, floats.Norm(solution, 2))
			}
		}
		for _, epsilon := range append(anchors, boundary) {
			compare(epsilon, 1e-9)
			// A tenth of a percent to either side, the slope decides.
			if epsilon > anchors[0] {
				compare(epsilon*0.999, 1e-6)
			}
			if epsilon < anchors[5] {
				compare(epsilon*1.001, 1e-6)
			}
		}
		for _, epsilon := range Anchors(anchors[0], anchors[5], 30) {
			compare(epsilon, 0.01)
		}
		for _, epsilon := range []float64{anchors[0] * 0.99, anchors[5] * 1.01, math.NaN(), 0, -1} {
			if _, err := path.Utility(t.Context(), epsilon); !isRangeError(err) {
				t.Errorf("ε = %v: %v", epsilon, err)
			}
		}
	}
}

func isRangeError(err error) bool {
	_, ok := errors.AsType[*RangeError](err)
	return ok
}

// Nothing expands across the pole of the original calibration, in either direction;
// everything does on either side, and solutions exist on both.
func TestNothingCrossesTheDiscontinuity(t *testing.T) {
	p := smallProblem(t)
	p.Calibration = privacy.Chaudhuri
	u := unitNoise(5, 1, 0)
	boundary, _ := Boundary(p.Mechanism(1))
	check := func(name string, err error) {
		t.Helper()
		d, ok := errors.AsType[*DiscontinuityError](err)
		if !ok || d.Boundary != boundary || !strings.Contains(err.Error(), "discontinuous") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := p.Hermite(t.Context(), u, []float64{boundary / 2, boundary * 2})
	check("Hermite", err)
	_, err = p.Hermite(t.Context(), u, []float64{boundary, boundary * 2})
	check("Hermite from the boundary", err)
	_, err = New(t.Context(), p, Options{Lower: boundary / 2, Upper: boundary * 2})
	check("estimator", err)
	for _, from := range []float64{boundary / 2, boundary * 2} {
		line, err := p.Line(t.Context(), u, from)
		require.NoError(t, err)
		expansion, err := p.Expand(t.Context(), u, from)
		require.NoError(t, err)
		across := boundary * boundary / from
		_, err = line.Model(t.Context(), across)
		check("model of the line", err)
		_, err = line.Utility(t.Context(), across)
		check("utility of the line", err)
		_, err = expansion.Line(across)
		check("line", err)
		for order := 1; order <= 2; order++ {
			_, err = expansion.Reciprocal(order, across)
			check("expansion in 1/ε", err)
		}
		if _, err := expansion.Line(from * 1.1); err != nil {
			t.Error(err)
		}
		if _, err := p.Hermite(t.Context(), u, []float64{from, from * 1.5}); err != nil {
			t.Error(err)
		}
	}
	// More budget, worse model: this is why.
	path := p.Newton(u)
	below, err := path.Utility(t.Context(), boundary)
	require.NoError(t, err)
	above, err := path.Utility(t.Context(), boundary*1.05)
	require.NoError(t, err)
	if above.Train.Loss < 1.5*below.Train.Loss {
		t.Errorf("loss %v at the boundary, %v above", below.Train.Loss, above.Train.Loss)
	}
}

// Expansions are wrong by the first term that they lack.
func TestExpansion(t *testing.T) {
	p := smallProblem(t)
	p.Tolerance = 1e-13
	u := unitNoise(5, 1, 0)
	const epsilon = 0.5
	e, err := p.Expand(t.Context(), u, epsilon)
	require.NoError(t, err)
	line, err := p.Line(t.Context(), u, epsilon)
	require.NoError(t, err)
	exact := p.Newton(u)
	remainder := func(f func(epsilon float64) (float64, error), h float64) float64 {
		t.Helper()
		got, err := f(epsilon + h)
		require.NoError(t, err)
		want, err := exact.Utility(t.Context(), epsilon+h)
		require.NoError(t, err)
		return want.Train.Loss - got
	}
	const h = 1e-3
	if got, want := remainder(e.Line, h), e.Second*h*h/2; math.Abs(got/want-1) > 0.02 {
		t.Errorf("line: remainder %v, want %v", got, want)
	}
	for order, power := range map[int]float64{1: 4, 2: 8} {
		reciprocal := func(epsilon float64) (float64, error) { return e.Reciprocal(order, epsilon) }
		ratio := remainder(reciprocal, 2*h) / remainder(reciprocal, h)
		if math.Abs(ratio/power-1) > 0.03 {
			t.Errorf("order %d: the remainder grows by %v when the step doubles, want %v", order, ratio, power)
		}
	}
	// The path and the expansion are one line, and equation 17 inverts it.
	utility, err := line.Utility(t.Context(), 0.6)
	require.NoError(t, err)
	loss, err := e.Line(0.6)
	require.NoError(t, err)
	if math.Abs(utility.Train.Loss-loss) > 1e-12 || math.Abs(e.LineEpsilon(loss)-0.6) > 1e-9 {
		t.Errorf("loss %v of the path, %v of the expansion, which has it at ε = %v", utility.Train.Loss, loss, e.LineEpsilon(loss))
	}
	// To lower the loss takes more ε: the published sign would lower it.
	if e.First >= 0 || e.LineEpsilon(e.Loss-1e-3) <= epsilon {
		t.Errorf("slope %v, ε = %v for less loss", e.First, e.LineEpsilon(e.Loss-1e-3))
	}
	// The model of equation 18, with its factor ε′ − ε, is wrong by a square.
	distance := func(h float64) float64 {
		t.Helper()
		got, err := line.Model(t.Context(), epsilon+h)
		require.NoError(t, err)
		want, err := exact.Model(t.Context(), epsilon+h)
		require.NoError(t, err)
		return floats.Distance(got, want, 2)
	}
	if ratio := distance(2*h) / distance(h); math.Abs(ratio/4-1) > 0.03 {
		t.Errorf("the error of the model grows by %v when the step doubles, want 4", ratio)
	}
}

func TestPathErrors(t *testing.T) {
	p := smallProblem(t)
	u := unitNoise(5, 1, 0)
	ctx := t.Context()
	for name, f := range map[string]func() error{
		"λ":            func() error { q := p; q.Regularization = 0; return q.Validate() },
		"calibration":  func() error { q := p; q.Calibration = 9; return q.Validate() },
		"split":        func() error { q := p; q.Split = 1; return q.Validate() },
		"held-out":     func() error { q := p; q.HeldOut = normal(t, 10, 4, 0, 1); return q.Validate() },
		"ε":            func() error { _, err := p.Solve(ctx, u, 0, nil); return err },
		"line":         func() error { _, err := p.Line(ctx, u, math.Inf(1)); return err },
		"expansion":    func() error { _, err := p.Expand(ctx, u, -1); return err },
		"Hermite":      func() error { _, err := p.Hermite(ctx, u, []float64{0, 1}); return err },
		"no anchors":   func() error { _, err := p.Hermite(ctx, u, nil); return err },
		"path":         func() error { _, err := p.Newton(u).Model(ctx, math.NaN()); return err },
		"to no ε":      func() error { e, _ := p.Expand(ctx, u, 1); _, err := e.Line(0); return err },
		"not that far": func() error { q := p; q.Tolerance = 1e-300; _, err := q.Solve(ctx, u, 1, nil); return err },
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := p.Hermite(cancelled, u, Anchors(0.1, 1, 3)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// One anchor is a range of one ε.
	path, err := p.Hermite(ctx, u, []float64{0.5})
	require.NoError(t, err)
	if _, err := path.Utility(ctx, 0.5); err != nil {
		t.Error(err)
	}
	// Without held-out examples their metrics are no numbers.
	p.HeldOut = nil
	utility, err := p.Newton(u).Utility(ctx, 1)
	if err != nil || !math.IsNaN(utility.HeldOut.Loss) || !math.IsNaN(utility.HeldOut.Error) {
		t.Errorf("%+v, %v", utility, err)
	}
}
