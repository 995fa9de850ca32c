package query_test

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/query"
	"github.com/dpareto/dpareto/suggest/space"
)

// With confidence only what was run answers, and is never said to reach what no run can have.
func TestConfidenceNeedsRuns(t *testing.T) {
	p := simulated.TradeOff()
	h := simulated.TradeOffHistory(p, 25, 1, 0.05)
	m, err := model.Fit(t.Context(), p, h, model.Options{ForReading: true})
	require.NoError(t, err)
	for _, bound := range []float64{0.1, 0.5, 2} {
		for _, confidence := range []float64{0.5, 0.75, 0.9} {
			q := query.Query{Optimize: 1, Bounds: []float64{bound, unbounded}, Confidence: confidence}
			if a, ok, err := q.Search(t.Context(), m); err != nil || ok != (confidence == 0.5) {
				t.Errorf("confidence %g, at most %g: %+v, %v", confidence, bound, a, err)
			}
		}
	}
}

// A loss that falls steeply is not said to reach values below 0.
func TestReachedIsPossible(t *testing.T) {
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{{Name: "x", Kind: space.Double, Max: 1}}},
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Reference: 2, Known: func(q space.Point) float64 { return q[0] }},
			{Name: "loss", Goal: suggest.Minimize, Reference: 100},
		},
	}
	h := new(suggest.History)
	for _, x := range []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6} {
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: space.Point{x}, Values: []float64{x, max(1, 100-180*x)}})
	}
	m, err := model.Fit(t.Context(), p, h, model.Options{ForReading: true})
	require.NoError(t, err)
	q := query.Query{Optimize: 1, Bounds: []float64{1, unbounded}, Confidence: 0.1}
	a, ok, err := q.Search(t.Context(), m)
	if err != nil || !ok || a.Reached[1] != 0 {
		t.Errorf("%+v, %v, %v, want a loss of 0, the least possible", a, ok, err)
	}
}

// Where no model agrees with the measurements, these answer, and hold with no confidence above one half.
func TestNoConfidenceWithoutModel(t *testing.T) {
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{{Name: "x", Kind: space.Double, Max: 1}}},
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Reference: 2, Known: func(q space.Point) float64 { return q[0] }},
			{Name: "loss", Goal: suggest.Minimize, Reference: 3, NoiseFree: true},
		},
	}
	h := new(suggest.History)
	for i := range 60 { // faster than any model can follow without noise
		x := 0.1 + float64(i)/70
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: space.Point{x}, Values: []float64{x, 2 - float64(i%2)}})
	}
	m, err := model.Fit(t.Context(), p, h, model.Options{ForReading: true})
	if err != nil || !m.Check().Contradicted {
		t.Fatalf("%+v, %v", m.Check(), err)
	}
	for _, confidence := range []float64{0.5, 0.9} {
		q := query.Query{Optimize: 0, Bounds: []float64{unbounded, 1.5}, Confidence: confidence}
		a, ok := q.Measured(m)
		if want := 0.1 + 1/70.0; !ok || a.Met() != (confidence == 0.5) || confidence == 0.5 && math.Abs(a.Point[0]-want) > 1e-9 || a.Reached[1] != 1 {
			t.Errorf("confidence %g: %+v", confidence, a)
		}
		if a, ok, err := q.Search(t.Context(), m); ok || err != nil {
			t.Errorf("confidence %g: the model is not trusted, but finds %+v, %v", confidence, a, err)
		}
	}
}
