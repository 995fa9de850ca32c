package linear

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/internal/require"
)

// A loss with a closed form: ridge regression on the margins, (1 − z)²/2.
type squared struct{}

func (squared) Value(z float64) float64                  { return (1 - z) * (1 - z) / 2 }
func (squared) Derivatives(z float64) (float64, float64) { return z - 1, 1 }
func (squared) Third(float64) float64                    { return 0 }
func (squared) Curvature() float64                       { return 1 }

// One record x = 1 with y = 1: (1 − θ)²/2 + τθ²/2 + aθ is least at
// θ = (1 − a)/(1 + τ), after one step.
func TestMinimizeQuadratic(t *testing.T) {
	d := &dataset.Dataset{Rows: 1, Dim: 1, RowStart: []int{0, 1}, Indices: []int32{0}, Labels: []float32{1}}
	r := newRisk(t, d, 1, squared{})
	for _, tau := range []float64{1e-8, 0.1, 1e3} {
		for _, a := range []float64{-5, 0, 0.3} {
			m, err := Objective{Risk: r, Ridge: tau, Linear: []float64{a}}.Minimize(t.Context(), nil, 0)
			require.NoError(t, err)
			if want := (1 - a) / (1 + tau); math.Abs(m.Theta[0]-want) > 1e-12*math.Abs(want) || m.Iterations != 1 {
				t.Errorf("τ = %v, a = %v: θ = %v after %d steps, want %v after 1", tau, a, m.Theta[0], m.Iterations, want)
			}
		}
	}
}

// Random objectives, some with linear terms that drive the model far into the
// flat parts of the losses. A few of those need the stages.
func TestMinimizeRandom(t *testing.T) {
	staged := 0
	rng := rand.New(rand.NewPCG(3, 4))
	for name, d := range datasets(400) {
		for _, loss := range []Loss{Logistic{}, Huber{Width: 0.5}, Huber{Width: 0.01}} {
			for range 8 {
				o := Objective{
					Risk:   newRisk(t, d, 3, loss),
					Ridge:  math.Pow(10, -6+6*rng.Float64()),
					Linear: randomVector(d.Dim, math.Pow(10, -5+4*rng.Float64()), rng.Uint64()),
				}
				m, err := o.Minimize(t.Context(), nil, 0)
				if err != nil {
					t.Errorf("%s, %T, τ = %v: %v", name, loss, o.Ridge, err)
					continue
				}
				if m.Iterations > directSteps {
					staged++
				}
				gradient := make([]float64, d.Dim)
				o.GradientTo(gradient, m.Theta)
				norm := floats.Norm(gradient, 2)
				if norm > Tolerance*1.001 || math.Abs(norm-m.GradientNorm) > 1e-14 || m.Distance != m.GradientNorm/o.Ridge {
					t.Errorf("%s, %T, τ = %v: gradient norm %v, distance %v, norm found %v", name, loss, o.Ridge, m.GradientNorm, m.Distance, norm)
				}
				if got := o.Value(m.Theta); math.Abs(got-m.Value) > 1e-12*(1+math.Abs(got)) {
					t.Errorf("%s, %T: value %v, want %v", name, loss, m.Value, got)
				}

				// From elsewhere it ends at the same place, up to the distances.
				other, err := o.Minimize(t.Context(), randomVector(d.Dim, 3, rng.Uint64()), 0)
				if err != nil {
					t.Errorf("%s, %T, τ = %v: from elsewhere: %v", name, loss, o.Ridge, err)
				} else if got := floats.Distance(m.Theta, other.Theta, 2); got > m.Distance+other.Distance {
					t.Errorf("%s, %T, τ = %v: minimisers are %v apart, want at most %v", name, loss, o.Ridge, got, m.Distance+other.Distance)
				}
			}
		}
	}
	if staged == 0 {
		t.Error("no objective has needed the stages")
	}
}

// Gradient descent with the step 1/(c + τ), which contracts towards the minimiser
// by c/(c + τ) each time, comes to the same place without second derivatives.
func TestMinimizeAgainstGradientDescent(t *testing.T) {
	for name, d := range datasets(200) {
		for _, loss := range []Loss{Logistic{}, Huber{Width: 0.5}} {
			o := Objective{Risk: newRisk(t, d, 1, loss), Ridge: 0.1, Linear: randomVector(d.Dim, 0.03, 8)}
			m, err := o.Minimize(t.Context(), nil, 0)
			require.NoError(t, err)
			theta, gradient := make([]float64, d.Dim), make([]float64, d.Dim)
			for range 400 {
				o.GradientTo(gradient, theta)
				floats.AddScaled(theta, -1/(loss.Curvature()+o.Ridge), gradient)
			}
			if got := floats.Distance(theta, m.Theta, 2); got > 2e-9 || floats.Norm(theta, 2) < 0.1 {
				t.Errorf("%s, %T: gradient descent ends %v away", name, loss, got)
			}
		}
	}
}

func TestMinimizeWarmStart(t *testing.T) {
	d := dataset.Generated(2000, 1)
	o := Objective{Risk: newRisk(t, d, 4, Logistic{}), Ridge: 1e-4, Linear: randomVector(d.Dim, 0.01, 8)}
	cold, err := o.Minimize(t.Context(), nil, 0)
	require.NoError(t, err)
	same, err := o.Minimize(t.Context(), cold.Theta, 0)
	if err != nil || same.Iterations != 0 || !floats.Equal(same.Theta, cold.Theta) {
		t.Errorf("from the minimiser: %d steps, %v", same.Iterations, err)
	}
	o.Ridge *= 1.1
	again, err := o.Minimize(t.Context(), nil, 0)
	require.NoError(t, err)
	warm, err := o.Minimize(t.Context(), cold.Theta, 0)
	if err != nil || warm.Iterations >= again.Iterations {
		t.Errorf("%d steps from nearby, %d from zero, %v", warm.Iterations, again.Iterations, err)
	}
}

func TestMinimizeFailures(t *testing.T) {
	d := dataset.Generated(200, 1)
	r := newRisk(t, d, 4, Logistic{})
	start := make([]float64, d.Dim)

	// Rounding of a linear term of 1e9 alone exceeds the tolerance.
	far := Objective{Risk: r, Ridge: 1.0 / 3, Linear: randomVector(d.Dim, 1e9, 1)}
	m, err := far.Minimize(t.Context(), nil, 0)
	failure, ok := errors.AsType[*NotConvergedError](err)
	if !ok || failure.Tolerance != Tolerance || failure.GradientNorm != m.GradientNorm || failure.GradientNorm <= Tolerance ||
		failure.Distance != m.Distance || m.Distance != m.GradientNorm/far.Ridge {
		t.Fatalf("minimum at gradient norm %v, error %v", m.GradientNorm, err)
	}
	// What it says is true: with a tolerance within reach, the minimiser is there.
	reachable, err := far.Minimize(t.Context(), nil, 2*failure.GradientNorm)
	require.NoError(t, err)
	if got := floats.Distance(reachable.Theta, m.Theta, 2); got > m.Distance+reachable.Distance {
		t.Errorf("minimisers are %v apart, want at most %v", got, m.Distance+reachable.Distance)
	}

	// One-hot groups make the Hessian singular, but for the ridge.
	flat := Objective{Risk: r, Ridge: 1e-30}
	if _, err := flat.Minimize(t.Context(), nil, 0); err == nil {
		t.Error("a singular Hessian gives no error")
	}

	start[0] = math.NaN()
	if _, err := (Objective{Risk: r, Ridge: 1}).Minimize(t.Context(), start, 0); err == nil {
		t.Error("a start that is not a number gives no error")
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Objective{Risk: r, Ridge: 1}).Minimize(ctx, nil, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}
