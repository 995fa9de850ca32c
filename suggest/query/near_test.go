package query_test

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/query"
	"github.com/dpareto/dpareto/suggest/space"
)

// A configuration far from all runs answers by the model's median, and with no confidence.
func TestConfidenceNeedsRuns(t *testing.T) {
	p := simulated.TradeOff()
	h := simulated.TradeOffHistory(p, 25, 1, 0.05)
	m, err := model.Fit(t.Context(), p, h, model.Options{ForReading: true})
	if err != nil {
		t.Fatal(err)
	}
	far := 0
	for _, confidence := range []float64{0.5, 0.75, 0.9} {
		for _, bound := range []float64{0.1, 0.5, 2} {
			q := query.Query{Optimize: 1, Bounds: []float64{bound, unbounded}, Confidence: confidence}
			a, ok, err := q.Search(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			distance := math.Inf(1)
			for _, e := range h.Evaluations {
				largest := 0.0
				for j := range p.Space.Parameters {
					if parameter := &p.Space.Parameters[j]; parameter.Kind != space.Categorical {
						largest = math.Max(largest, math.Abs(parameter.Unit(a.Point[j])-parameter.Unit(e.Point[j])))
					} else if a.Point[j] != e.Point[j] {
						largest = 1
					}
				}
				distance = math.Min(distance, largest)
			}
			if confidence == 0.5 && distance > 0.1 {
				far++
			}
			if !ok || confidence > 0.5 && distance > 0.0501 || !(p.Objectives[0].Known(a.Point) <= bound) && a.Met() {
				t.Errorf("confidence %g, at most %g: %v is %g from the nearest run", confidence, bound, a.Point, distance)
			}
		}
	}
	if far == 0 {
		t.Error("no answer is far from the runs, also without confidence")
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
	if err != nil || m.Check().Basis != model.BasisMeasurements {
		t.Fatalf("%+v, %v", m.Check(), err)
	}
	for _, confidence := range []float64{0.5, 0.9} {
		q := query.Query{Optimize: 0, Bounds: []float64{unbounded, 1.5}, Confidence: confidence}
		a, ok := q.Measured(m)
		if want := 0.1 + 1/70.0; !ok || a.Met() != (confidence == 0.5) || confidence == 0.5 && math.Abs(a.Point[0]-want) > 1e-9 || a.Reached[1] != 1 {
			t.Errorf("confidence %g: %+v", confidence, a)
		}
		if _, ok, err := q.Search(t.Context(), m); err != nil || ok && confidence > 0.5 {
			t.Errorf("confidence %g: a model answers that agrees with nothing, %v", confidence, err)
		}
	}
}
