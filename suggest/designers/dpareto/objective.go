package dpareto

import (
	"context"
	"math"
	"slices"

	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// objective holds the inputs of the acquisition of a configuration.
type objective struct {
	model  *model.Model
	front  *pareto.Front
	latent bool // in the transformed units of the surrogates, and not in the objectives' own
}

// objective returns the objective of a search, given a model that believes the pending
// configurations.
func (d designer) objective(m *model.Model, pending []space.Point) objective {
	o := objective{model: m, latent: d.options.Published}
	if o.latent {
		o.front = o.publishedFront(pending)
	}
	if o.front == nil {
		o.latent, o.front = false, m.Front(pending)
	}
	return o
}

// outcomes is [model.Model.Distributions] in the units of the objective.
func (o *objective) outcomes(dst []acquisition.Distribution, x []float64, q space.Point) []acquisition.Distribution {
	dst = o.model.Distributions(dst, x, q)
	if o.latent {
		for j := range dst {
			dst[j] = dst[j].Latent()
		}
	}
	return dst
}

// publishedFront returns the front of the posterior means of the evaluated and the pending
// configurations, with the reference of the published code; see [New]. It is nil if no
// configuration can be on a front.
func (o *objective) publishedFront(pending []space.Point) *pareto.Front {
	var costs [][]float64
	configurations := o.model.Configurations()
	for i := range configurations {
		c := &configurations[i]
		costs = append(costs, o.model.Medians(c, o.outcomes(nil, nil, c.Point)))
	}
	for _, q := range pending {
		if !o.model.Acceptable(q, nil) {
			continue
		}
		var means []float64
		for _, l := range o.outcomes(nil, nil, q) {
			means = append(means, l.Mean)
		}
		costs = append(costs, means)
	}
	unbounded := slices.Repeat([]float64{math.Inf(1)}, len(o.model.Problem().Objectives))
	points := pareto.NewFront(costs, unbounded).Points()
	if len(points) == 0 {
		return nil
	}
	return pareto.NewFront(points, publishedReference(points))
}

// publishedReference returns the reference that the published code estimates from a front.
func publishedReference(front [][]float64) []float64 {
	reference := slices.Clone(front[0])
	for j := range reference {
		least, most := front[0][j], front[0][j]
		for _, p := range front {
			least, most = min(least, p[j]), max(most, p[j])
		}
		reference[j] = most + 2*(most-least)/float64(len(front))
	}
	return reference
}

// Value is the acquisition at a configuration, with its parts.
type Value struct {
	// Predictions are the posteriors of the objectives, in their own units.
	Predictions []suggest.Prediction

	// Improvement is the hypervolume improvement of the medians, and Probability the
	// probability of any improvement.
	Improvement, Probability float64

	// HVPoI is Improvement times Probability, which [New] maximises.
	HVPoI float64
}

// Acquisition returns the acquisition of [New] with the same options at any configurations, for
// instance on a grid to draw it; they may be evaluated or not allowed. h must hold an evaluation. The
// model's predictions stand for its pending configurations. The seed comes from the designer's
// [suggest.Request]. Acquisition returns a [space.FieldErrors] when p is invalid or h does not fit p,
// the error of a fit that fails, and the context's error. It panics as New does, and if a point has
// the wrong length.
func Acquisition(ctx context.Context, p *suggest.Problem, h *suggest.History, seed uint64, o Options, points []space.Point) ([]Value, error) {
	if err := suggest.Validate(p, h, suggest.Request{}); err != nil {
		return nil, err
	}
	d := newDesigner(o)
	m, err := d.fit(ctx, p, h, h.Pending, seed)
	if err != nil {
		return nil, err
	}
	at := d.objective(m, h.Pending)
	values := make([]Value, len(points))
	var outcomes []acquisition.Distribution
	x := make([]float64, 0, p.Space.Dim())
	for i, q := range points {
		if i%64 == 0 {
			if err := pause.Check(ctx); err != nil {
				return nil, err
			}
		}
		outcomes = at.outcomes(outcomes, x, q)
		values[i] = Value{
			Predictions: m.Predict(q),
			Improvement: acquisition.MedianImprovement(at.front, outcomes),
			Probability: acquisition.PoI(at.front, outcomes),
			HVPoI:       acquisition.HVPoI(at.front, outcomes),
		}
	}
	return values, nil
}
