package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/internal/require"
)

// numbers returns examples whose labels are numbers.
func numbers(rows int) *dataset.Dataset {
	rng := rand.New(rand.NewPCG(1, 2))
	d := &dataset.Dataset{Name: "numbers", Rows: rows, Dim: 3, LabelRange: [2]float64{0, 10}}
	for range rows {
		var y float64
		for k := range 3 {
			x := 2*rng.Float64() - 1
			d.Dense = append(d.Dense, float32(x))
			y += float64(k) * x / 4
		}
		d.Labels = append(d.Labels, float32(max(-1, min(y, 1))))
	}
	return d
}

// Gradients are those of the loss, each clipped alone, and what a row adds never exceeds the clipping norm, whatever
// the weights.
func TestRegressionGradients(t *testing.T) {
	examples, err := NewExamples(numbers(40))
	require.NoError(t, err)
	m := NewLinear(Spec{Kind: LinearRegression}, examples)
	for _, scale := range []float64{0.5, 1e6} {
		rng := rand.New(rand.NewPCG(3, 4))
		for k := range m.weights {
			m.weights[k] = scale * rng.NormFloat64()
		}
		for row := range int32(40) {
			one, err := NewExamples(examples.data.Select("one", []int{int(row)}))
			require.NoError(t, err)
			clear(m.gradient)
			m.Accumulate([]int32{row}, math.Inf(1))
			want := fd.Gradient(nil, func(w []float64) float64 {
				other := NewLinear(Spec{Kind: LinearRegression}, one)
				copy(other.weights, w)
				_, loss := other.Evaluate(one)
				return loss
			}, m.weights, &fd.Settings{Formula: fd.Central, Step: scale * 1e-4})
			if norm := floats.Norm(want, 2); floats.Distance(m.gradient, want, 2) > 1e-6*(norm+1) {
				t.Errorf("row %d: gradient %v, want %v", row, m.gradient, want)
			}
			const clip, grid = 0.3, 0.3 * 0x1p-30
			clear(m.sum)
			m.AccumulateRounded([]int32{row}, clip, grid)
			var squares float64
			for _, s := range m.sum {
				squares += float64(s) * float64(s)
			}
			norm := math.Sqrt(squares) * grid
			if full := floats.Norm(want, 2); norm > clip || norm < 0.999*min(clip, full)-1e-6 {
				t.Errorf("row %d: a clipped gradient of norm %v, of norm %v before", row, norm, full)
			}
		}
	}
}

// The error is the root mean squared error of predictions within the range, over its width.
func TestRegressionError(t *testing.T) {
	d := &dataset.Dataset{Rows: 2, Dim: 1, LabelRange: [2]float64{0, 10}, Dense: []float32{0, 1}, Labels: []float32{0.5, -1}}
	examples, err := NewExamples(d)
	require.NoError(t, err)
	m := NewLinear(Spec{Kind: LinearRegression}, examples)
	m.weights[0], m.weights[1] = -5, 1 // predicts 1 and −4, which becomes −1
	errorRate, loss := m.Evaluate(examples)
	if want := math.Sqrt(0.25/2) / 2; math.Abs(errorRate-want) > 1e-15 || math.Abs(loss-(0.25+9)/4) > 1e-15 {
		t.Errorf("error %v, loss %v, want %v, %v", errorRate, loss, want, (0.25+9)/4)
	}
	d.Labels[0] = 2
	if _, err := NewExamples(d); err == nil {
		t.Error("a label outside its range is taken")
	}
}
