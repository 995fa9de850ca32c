package bayesopt

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/internal/require"
)

// The published beginning of the sequence.
func TestSobol(t *testing.T) {
	for i, want := range [][2]float64{{0.5, 0.5}, {0.75, 0.25}, {0.25, 0.75}, {0.375, 0.375}, {0.875, 0.875}, {0.625, 0.125}, {0.125, 0.625}} {
		if got := sobol(7)[i]; got != want {
			t.Errorf("point %d is %v, want %v", i, got, want)
		}
	}
	// Every elementary interval of a (0, 2)-net has as many points as its area says: the first 256
	// points with the origin.
	for _, split := range [][2]int{{1, 256}, {256, 1}, {16, 16}, {4, 64}, {64, 4}} {
		count := make(map[[2]int]int)
		for _, p := range append(sobol(255), [2]float64{}) {
			count[[2]int{int(p[0] * float64(split[0])), int(p[1] * float64(split[1]))}]++
		}
		if len(count) != 256 {
			t.Errorf("%v: %d of 256 cells have a point", split, len(count))
		}
	}
}

// trainingSquares returns the squared distances among records, and their labels.
func trainingSquares(data *dataset.Dataset) (squares, labels []float64) {
	d := newDistances(data)
	squares, labels = make([]float64, data.Rows*data.Rows), make([]float64, data.Rows)
	for i := range data.Rows {
		d.from(squares[i*data.Rows:(i+1)*data.Rows], data, i)
		labels[i] = float64(data.Labels[i])
	}
	return squares, labels
}

// The duality gap closes: ½‖w‖² + C·Σ hinge of the machine, against Σα − ½‖w‖², which bounds it
// from below, for small and large costs and widths.
func TestTrainSVM(t *testing.T) {
	squares, labels := trainingSquares(dataset.Generated(200, 3))
	n := len(labels)
	for _, c := range [][2]float64{{0.01, 10}, {1, 1}, {100, 30}, {1000, 0.5}, {1000, 1000}} {
		m, err := trainSVM(t.Context(), squares, labels, c[0], c[1], 1e-8)
		require.NoError(t, err)
		norm, sum, hinge, balance := 0.0, 0.0, 0.0, 0.0
		for i := range n {
			f := m.decide(squares[i*n : (i+1)*n])
			norm += m.weights[i] * (f - m.offset)
			sum += math.Abs(m.weights[i])
			hinge += math.Max(0, 1-labels[i]*f)
			balance += m.weights[i]
			if a := m.weights[i] * labels[i]; a < 0 || a > c[0] {
				t.Errorf("C = %g: weight %g", c[0], a)
			}
		}
		primal, dual := 0.5*norm+c[0]*hinge, sum-0.5*norm
		if gap := primal - dual; gap < -1e-6*primal || gap > 1e-5*primal || math.Abs(balance) > 1e-6*c[0] {
			t.Errorf("C = %g, width %g: primal %g, dual %g, Σαy = %g", c[0], c[1], primal, dual, balance)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := trainSVM(ctx, squares, labels, 1, 1, 1e-3); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want cancelled", err)
	}
}

// The exclusive or, which no linear machine separates, and squared distances of dense records.
func TestExclusiveOr(t *testing.T) {
	data := &dataset.Dataset{Name: "xor", Rows: 4, Dim: 2, Classes: 2, Dense: []float32{0, 0, 1, 1, 0, 1, 1, 0}, Labels: []float32{1, 1, -1, -1}}
	squares, labels := trainingSquares(data)
	for i, want := range []float64{0, 2, 1, 1} {
		if squares[i] != want {
			t.Errorf("squared distance %d is %g, want %g", i, squares[i], want)
		}
	}
	m, err := trainSVM(t.Context(), squares, labels, 100, 1, stoppingTolerance)
	require.NoError(t, err)
	for i, y := range labels {
		// By symmetry all weights are α, and the margins are 1: α(1 + e⁻² − 2e⁻¹) = 1.
		if f := m.decide(squares[i*4 : (i+1)*4]); math.Abs(f-y) > 2*stoppingTolerance || math.Abs(math.Abs(m.weights[i])*(1+math.Exp(-2)-2*math.Exp(-1))-1) > 1e-2 {
			t.Errorf("record %d: %g, weight %g", i, f, m.weights[i])
		}
	}
}
