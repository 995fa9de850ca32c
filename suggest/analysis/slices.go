package analysis

import (
	"context"
	"math"
	"slices"

	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
)

// Values returns values of a parameter along its scale, in increasing order: all of them if there
// are at most n, else n of them from end to end. Integers and discrete values that coincide after
// rounding are merged, so that there may be fewer; a categorical parameter has all its categories.
// n is at least 2.
func Values(p *space.Parameter, n int) []float64 {
	if count := p.Count(); count <= float64(n) || p.Kind == space.Categorical {
		values := make([]float64, int(count))
		for i := range values {
			values[i] = p.Value(i)
		}
		return values
	}
	var values []float64
	for i := range n {
		v := p.At(float64(i) / float64(n-1))
		if len(values) == 0 || v > values[len(values)-1] {
			values = append(values, v)
		}
	}
	return values
}

// Predict returns the prediction of objective j at points: the median and the 5 % and 95 %
// quantiles of its posterior in m, or the exact value if m is nil or has no surrogate for it; the
// objective must then be known. Predictions are NaN where a known objective is not finite. Only
// coordinates that exist at a point matter. Predict returns the context's error.
func Predict(ctx context.Context, p *suggest.Problem, m *model.Model, j int, points []space.Point) ([]suggest.Prediction, error) {
	predictions := make([]suggest.Prediction, 0, len(points))
	for some := range slices.Chunk(points, 64) {
		if err := pause.Check(ctx); err != nil {
			return nil, err
		}
		if m == nil || m.Surrogate(j) == nil {
			for _, q := range some {
				if err := pause.Check(ctx); err != nil { // one value may take a second
					return nil, err
				}
				predictions = append(predictions, exact(&p.Objectives[j], q))
			}
			continue
		}
		inputs := make([][]float64, len(some))
		for i, q := range some {
			inputs[i] = p.Inputs(nil, q)
		}
		means, variances := make([]float64, len(some)), make([]float64, len(some))
		m.PosteriorBatch(j, means, variances, inputs)
		for i := range some {
			predictions = append(predictions, m.Prediction(j, means[i], variances[i]))
		}
	}
	return predictions, nil
}

// exact returns the value of a known objective as a prediction.
func exact(o *suggest.Objective, q space.Point) suggest.Prediction {
	v := o.Known(q)
	if math.IsInf(v, 0) {
		v = math.NaN()
	}
	return suggest.Prediction{Median: v, Lower: v, Upper: v}
}
