package machine

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/internal/require"
)

func TestGrid(t *testing.T) {
	all := Grid(3)
	if len(all) != 9 {
		t.Fatalf("%d candidates", len(all))
	}
	for i, want := range map[int]Candidate{
		0: {1e-5, 0.05, 0, 0}, 4: {math.Sqrt(1e-5), math.Sqrt(0.1), 0.5, 0.5}, 8: {1, 2, 1, 1}, 2: {1e-5, 2, 0, 1},
	} {
		got := all[i]
		if math.Abs(got.Penalty/want.Penalty-1) > 1e-12 || math.Abs(got.Width/want.Width-1) > 1e-12 || got.X != want.X || got.Y != want.Y {
			t.Errorf("candidate %d is %+v, want %+v", i, got, want)
		}
	}
}

// The weights are where the gradient vanishes, and a larger penalty makes them shorter.
func TestTrain(t *testing.T) {
	examples, err := Examples(dataset.Generated(300, 1))
	require.NoError(t, err)
	norms := make([]float64, 0, 2)
	for _, penalty := range []float64{0.01, 0.1} {
		c := Candidate{Penalty: penalty, Width: 0.5}
		theta, err := c.Train(t.Context(), examples, 1e-8)
		require.NoError(t, err)
		gradient, square := make([]float64, len(theta)), 0.0
		linear.Objective{Risk: linear.Risk{Examples: examples, Loss: linear.Huber{Width: 0.5}}, Ridge: penalty}.GradientTo(gradient, theta)
		for _, g := range gradient {
			square += g * g
		}
		if math.Sqrt(square) > 1e-8 {
			t.Errorf("penalty %g: gradient %g", penalty, math.Sqrt(square))
		}
		norm := 0.0
		for _, x := range theta {
			norm += x * x
		}
		norms = append(norms, norm)
	}
	if !(norms[1] < norms[0]) {
		t.Errorf("squared norms %v", norms)
	}
}
