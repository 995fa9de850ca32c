package linear

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
)

// Rounding errors of the mean loss do not grow with the number of examples.
func TestRiskOfManyExamples(t *testing.T) {
	const rows = 300_000
	d := &dataset.Dataset{
		Name: "equal", Rows: rows, Dim: 1, Classes: 2,
		RowStart: make([]int, rows+1), Indices: make([]int32, rows), Labels: make([]float32, rows),
	}
	for i := range rows {
		d.RowStart[i+1] = i + 1
		d.Labels[i] = 1
	}
	r := newRisk(t, d, 1, Logistic{})
	gradient := make([]float64, 1)
	for _, theta := range []float64{0.1, 0.7, 3} {
		got, want := r.passTo(gradient, nil, []float64{theta}), Logistic{}.Value(theta)
		if math.Abs(got-want) > 1e-13*want {
			t.Errorf("θ = %v: mean loss %v of equal losses %v (%.1e)", theta, got, want, got/want-1)
		}
	}
}
