package estimate

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// axes returns one example of norm 1 for each coordinate and label.
func axes(t *testing.T, labels []float32, coordinates []int32) *linear.Examples {
	t.Helper()
	d := &dataset.Dataset{Name: "axes", Rows: len(labels), Dim: 2, Classes: 2, RowStart: []int{0}, Labels: labels}
	for _, j := range coordinates {
		d.Indices, d.Values = append(d.Indices, j), append(d.Values, 1)
		d.RowStart = append(d.RowStart, len(d.Indices))
	}
	e, err := linear.NewExamples(d, 1)
	require.NoError(t, err)
	return e
}

// lineError returns the error at ε = to of the line through from.
func lineError(t *testing.T, p Problem, u []float64, from, to float64) float64 {
	t.Helper()
	e, err := p.Expand(t.Context(), u, from)
	require.NoError(t, err)
	line, err := e.Line(to)
	require.NoError(t, err)
	s, err := p.Solve(t.Context(), u, to, nil)
	require.NoError(t, err)
	return math.Abs(line - p.Risk.Value(s.Theta))
}

// strength returns a lower bound of the least eigenvalue of the Hessian where ‖θ‖ <= norm:
// every margin is at most norm.
func strength(p Problem, norm float64) float64 {
	dim := p.Risk.Examples.Dim()
	gram := mat.NewSymDense(dim, nil)
	p.Risk.HessianTo(gram, make([]float64, dim)) // XᵀX/4n
	var eigen mat.EigenSym
	eigen.Factorize(gram, false)
	_, least := linear.Logistic{}.Derivatives(norm)
	return max(0, 4*least*eigen.Values(nil)[0]*(1-1e-9))
}

// TestLineErrorBound compares the bound with the errors of lines through trained models:
// random problems, calibrations on either branch, with and without assumptions that hold.
func TestLineErrorBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 22))
	tightest := math.Inf(1)
	for i := range 60 {
		p := Problem{
			Risk:           linear.Risk{Examples: normal(t, 20+rng.IntN(600), 1+rng.IntN(6), rng.Float64(), uint64(i)), Loss: linear.Logistic{}},
			Regularization: math.Pow(10, -5+4*rng.Float64()),
			Calibration:    []privacy.ObjectiveCalibration{privacy.RankOne, privacy.Chaudhuri, privacy.ContinuousChaudhuri}[i%3],
			Tolerance:      1e-12,
		}
		boundary, _ := Boundary(p.Mechanism(1))
		u := unitNoise(p.Risk.Examples.Dim(), 3, i)
		from := math.Exp(-4 + 6*rng.Float64())
		to := from * math.Exp(3*(rng.Float64()-0.5))
		if min(from, to) <= boundary && boundary < max(from, to) {
			if _, err := p.LineErrorBound(u, from, to, LineAssumptions{}); err == nil {
				t.Errorf("a bound from %v to %v, across %v", from, to, boundary)
			}
			continue
		}
		norm := 0.0
		for k := range 50 { // of the models between the two, with some room
			s, err := p.Solve(t.Context(), u, from*math.Pow(to/from, float64(k)/49), nil)
			require.NoError(t, err)
			norm = max(norm, 1.05*floats.Norm(s.Theta, 2))
		}
		actual := lineError(t, p, u, from, to)
		last := math.Inf(1)
		for _, a := range []LineAssumptions{{}, {Norm: norm}, {Norm: norm, Strength: strength(p, norm)}} {
			bound, err := p.LineErrorBound(u, from, to, a)
			require.NoError(t, err)
			if !(bound >= actual-1e-9) || bound > last {
				t.Errorf("%v, from %v to %v with %+v: error %v, bound %v, before %v", p.Mechanism(from), from, to, a, actual, bound, last)
			}
			last = bound
		}
		tightest = min(tightest, last/actual)
	}
	t.Logf("the bound is at least %.3g times the error", tightest)
	if tightest > 50 {
		t.Errorf("the bound is %v times the error at best", tightest)
	}
}

// TestTheoremThree shows what the paper's Theorem 3 leaves out. Its constants, bounds on the
// model and three derivatives of the loss, are the same for all n in each case.
func TestTheoremThree(t *testing.T) {
	chaudhuri := func(e *linear.Examples) Problem {
		return Problem{Risk: linear.Risk{Examples: e, Loss: linear.Logistic{}}, Regularization: 1e-6, Calibration: privacy.Chaudhuri, Tolerance: 1e-13}
	}
	t.Run("its example", func(t *testing.T) {
		// "n = 10000, from 0.1 to 0.2: the error is only about 1e-6".
		if got := PublishedLineError(10000, 0.1, 0.2); math.Abs(got-1e-6) > 1e-15 {
			t.Errorf("published %v, want 1e-6", got)
		}
		p := chaudhuri(normal(t, 10000, 20, 0, 1))
		mean, bound := 0.0, 0.0
		for r := range 5 {
			u := unitNoise(20, 1, r)
			b, err := p.LineErrorBound(u, 0.1, 0.2, LineAssumptions{})
			require.NoError(t, err)
			mean, bound = mean+lineError(t, p, u, 0.1, 0.2)/5, bound+b/5
		}
		t.Logf("error %.3g, bound %.3g", mean, bound)
		if mean < 1e-2 {
			t.Errorf("the error is %v, and the paper says 1e-6", mean)
		}
	})
	t.Run("weak direction", func(t *testing.T) {
		// One record alone has the second feature: the Hessian has an eigenvalue of order
		// 1/n. The error falls as 1/n, the paper's as 1/n².
		var errs []float64
		for _, n := range []int{1001, 10001, 100001} {
			labels, coordinates := make([]float32, n), make([]int32, n)
			for i := range labels {
				labels[i] = float32(1 - 2*(i%2))
			}
			coordinates[n-1] = 1
			p := chaudhuri(axes(t, labels, coordinates))
			errs = append(errs, float64(n)*lineError(t, p, []float64{0, 2}, 0.5, 1))
		}
		if ratio := errs[2] / errs[0]; !(ratio > 0.8 && ratio < 1.25) {
			t.Errorf("n times the error: %v, want about the same", errs)
		}
	})
	t.Run("small target", func(t *testing.T) {
		// The loss stays the same function, strongly convex; to falls with 1/n. The paper
		// has from alone in its denominator.
		var errs []float64
		for _, n := range []int{1000, 10000, 100000} {
			labels, coordinates := make([]float32, n), make([]int32, n)
			for i := range labels {
				labels[i], coordinates[i] = float32(1-2*(i/2%4/3)), int32(i%2)
			}
			p := chaudhuri(axes(t, labels, coordinates))
			errs = append(errs, lineError(t, p, []float64{1, -2}, 0.5, 0.01/float64(n)))
		}
		if !(errs[2] > 0.9*errs[0] && errs[2] > 0.05) {
			t.Errorf("errors %v, want them not to fall with n", errs)
		}
	})
	t.Run("strongly convex", func(t *testing.T) {
		// With both ε fixed and the same strongly convex loss the order is 1/n², of the error
		// and of the bound.
		var errs, bounds []float64
		for _, n := range []int{1000, 10000, 100000} {
			labels, coordinates := make([]float32, n), make([]int32, n)
			for i := range labels {
				labels[i], coordinates[i] = float32(1-2*(i/2%4/3)), int32(i%2)
			}
			p := chaudhuri(axes(t, labels, coordinates))
			u := []float64{1, -2}
			a := LineAssumptions{Norm: 3}
			a.Strength = strength(p, a.Norm)
			bound, err := p.LineErrorBound(u, 0.5, 1, a)
			require.NoError(t, err)
			square := float64(n) * float64(n)
			errs, bounds = append(errs, square*lineError(t, p, u, 0.5, 1)), append(bounds, square*bound)
		}
		if !(errs[2] < 1.25*errs[1] && errs[2] > 0.8*errs[1] && bounds[2] < 1.25*bounds[1]) {
			t.Errorf("n² times the errors %v, the bounds %v", errs, bounds)
		}
	})
}

func TestLineErrorBoundErrors(t *testing.T) {
	p := Problem{Risk: linear.Risk{Examples: tiny(t), Loss: linear.Logistic{}}, Regularization: 0.05}
	u := []float64{1.2, -0.7}
	var discontinuity *DiscontinuityError
	published := p
	published.Calibration = privacy.Chaudhuri
	if _, err := published.LineErrorBound(u, 0.1, 4, LineAssumptions{}); !errors.As(err, &discontinuity) {
		t.Errorf("across the pole: %v", err)
	}
	huber := p
	huber.Risk.Loss = linear.Huber{Width: 2}
	if _, err := huber.LineErrorBound(u, 0.1, 0.2, LineAssumptions{}); !errors.Is(err, ErrNotSmooth) {
		t.Errorf("Huber: %v", err)
	}
	for _, bad := range []struct {
		from, to float64
		a        LineAssumptions
	}{{0, 1, LineAssumptions{}}, {1, math.Inf(1), LineAssumptions{}}, {1, 2, LineAssumptions{Norm: -1}}, {1, 2, LineAssumptions{Strength: 0.3}}, {1, 2, LineAssumptions{Norm: math.NaN()}}} {
		if _, err := p.LineErrorBound(u, bad.from, bad.to, bad.a); err == nil {
			t.Errorf("%+v has a bound", bad)
		}
	}
	if same, err := p.LineErrorBound(u, 1, 1, LineAssumptions{}); same != 0 || err != nil {
		t.Errorf("at the ε itself: %v, %v", same, err)
	}
}
