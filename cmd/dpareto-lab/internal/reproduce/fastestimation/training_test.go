package fastestimation

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/internal/require"
)

// made returns a problem of made-up people.
func made(t *testing.T, rows int, loss linear.Loss) *problem {
	t.Helper()
	r := &records{source: sources[0], train: dataset.Generated(rows, 1), test: dataset.Generated(50, 2)}
	p, err := r.problem(loss, rows)
	require.NoError(t, err)
	return p
}

// P(|u| > t) = e^−t for each coordinate, both signs are as likely, and coordinates are
// independent: the mean of ‖u‖² is 2d and not the d(d+1) of the other distribution.
func TestLaplace(t *testing.T) {
	const dim, draws = 5, 40000
	u := make([]float64, dim)
	var positive, beyond, squares, products float64
	for i := range draws {
		laplace.draw(u, random.New(1, i, 2, 3))
		for _, x := range u {
			if x > 0 {
				positive++
			}
			if math.Abs(x) > 1.5 {
				beyond++
			}
		}
		squares += floats.Dot(u, u)
		products += math.Abs(u[0]) * math.Abs(u[1])
	}
	for _, tt := range []struct {
		name                   string
		got, want, uncertainty float64
	}{
		{"positive", positive / dim / draws, 0.5, math.Sqrt(0.25 / (dim * draws))},
		{"beyond 1.5", beyond / dim / draws, math.Exp(-1.5), math.Sqrt(math.Exp(-1.5) / (dim * draws))},
		{"mean square", squares / draws, 2 * dim, math.Sqrt(20. * dim / draws)}, // Var u² = 24 − 4
		{"mean product", products / draws, 1, math.Sqrt(3. / draws)},            // Var |u₀u₁| = 4 − 1
	} {
		if math.Abs(tt.got-tt.want) > 4*tt.uncertainty {
			t.Errorf("%s: %v, want %v ± %v", tt.name, tt.got, tt.want, tt.uncertainty)
		}
	}
}

// With a batch of all examples a step is one of gradient descent on the objective.
func TestDescend(t *testing.T) {
	p := made(t, batchSize, linear.Logistic{})
	training := trainings[3]
	u := training.unit(p, 1, 0, 5)
	o := objectiveperturbation.Objective(p.train, training.estimation(p).Mechanism(0.3), u)
	want := make([]float64, p.dim())
	gradient := make([]float64, p.dim())
	for range 100 {
		o.GradientTo(gradient, want)
		floats.AddScaled(want, -0.01, gradient)
	}
	for _, by := range []solver{steps, passes} {
		got := descend(o, by, random.New(1, 0, 0, 0))
		if distance := floats.Distance(got, want, 2); distance > 1e-13 {
			t.Errorf("solver %d: %v from gradient descent", by, distance)
		}
	}
	// Smaller batches lead elsewhere, many passes to the minimum.
	p = made(t, 230, linear.Huber{Width: 2})
	o = objectiveperturbation.Objective(p.train, training.estimation(p).Mechanism(0.3), training.unit(p, 1, 0, 5))
	o.Ridge = 1 // a minimum that is soon reached
	minimum, err := o.Minimize(t.Context(), nil, 0)
	require.NoError(t, err)
	start := floats.Norm(minimum.Theta, 2)
	few := floats.Distance(descend(o, steps, random.New(1, 0, 0, 0)), minimum.Theta, 2)
	many := floats.Distance(descend(o, passes, random.New(1, 0, 0, 0)), minimum.Theta, 2)
	if !(many < 0.1*start && few > 0.2*start && few < start) {
		t.Errorf("from %v to %v in steps and %v in passes", start, few, many)
	}
}

// A path has the losses of models trained from zero, and their slopes.
func TestPath(t *testing.T) {
	for _, loss := range losses {
		p := made(t, 300, loss.loss)
		for _, training := range trainings[:3] {
			path, err := training.path(t.Context(), p, 7, 1, func(k int) bool { return k == 4 })
			require.NoError(t, err)
			e := training.estimation(p)
			u := training.unit(p, 7, 1, -1)
			trained := func(epsilon float64) point {
				minimum, err := objectiveperturbation.Objective(p.train, e.Mechanism(epsilon), u).Minimize(t.Context(), nil, 1e-12)
				require.NoError(t, err)
				return p.evaluate(minimum.Theta)
			}
			for _, k := range []int{0, 4, 19} {
				want := trained(targets[k])
				if math.Abs(path[k].loss-want.loss) > 1e-7 || path[k].heldOut.Error != want.heldOut.Error ||
					math.Abs(path[k].heldOut.Loss-want.heldOut.Loss) > 1e-7 {
					t.Errorf("%s, %s, ε = %v: %+v, want %+v", loss.name, training.name, targets[k], path[k], want)
				}
				if math.IsNaN(path[k].slope) != (k != 4) {
					t.Errorf("%s, %s: slope %v at ε = %v", loss.name, training.name, path[k].slope, targets[k])
				}
			}
			const h = 1e-4
			slope := (trained(targets[4]+h).loss - trained(targets[4]-h).loss) / (2 * h)
			if math.Abs(path[4].slope-slope) > 1e-4*math.Abs(slope) {
				t.Errorf("%s, %s: slope %v, by differences %v", loss.name, training.name, path[4].slope, slope)
			}
		}
	}
}

// Noise is common to all ε where models are minimisers, and fresh where they are not.
func TestUnit(t *testing.T) {
	p := made(t, 100, linear.Logistic{})
	seen := make(map[float64]bool)
	for draw := range 3 {
		for target := -1; target < len(targets); target++ {
			seen[trainings[3].unit(p, 1, draw, target)[0]] = true
		}
	}
	if len(seen) != 3*(len(targets)+1) {
		t.Errorf("%d different draws", len(seen))
	}
}
