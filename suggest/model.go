package suggest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// ErrNoData is returned by [FitModel], wrapped with the objective's name, when
// a measured objective has no finite value yet.
var ErrNoData = errors.New("suggest: no finite value to fit a model to")

// ModelOptions tunes [FitModel]. The zero value is ready to use.
type ModelOptions struct {
	// ModelKnown fits a surrogate to objectives with a Known function too, from
	// the values in the history, as Avent et al. did. By default they are
	// exact.
	ModelKnown bool

	// Restarts is the number of starting points, beyond the first, of each
	// surrogate's fit. 0 means a number that falls from 4 to 0 as the history
	// grows; a negative number means none.
	Restarts int

	// Seed determines the starting points.
	Seed uint64

	// imputeInfeasible gives infeasible configurations the worst value seen.
	imputeInfeasible bool
}

// Model is the posterior of every objective of a problem given a history:
// independent Gaussian processes, each on its objective's transform, and the
// exact function where one is known. A *Model is immutable and safe for
// concurrent use.
type Model struct {
	problem        *Problem
	configurations []configuration
	gps            []*surrogate.GP // nil for an exact objective
	noise          []float64       // typical noise variance of one more point
}

// FitModel fits the surrogates to h, with replicates of a configuration pooled.
// Pending configurations are ignored. It returns a [space.FieldErrors] when p
// is invalid or h does not fit p, [ErrNoData], an error of the surrogate that
// names the objective, or the context's error.
//
// Values that are infinite in the bad direction are given the worst finite
// value seen, others that are not finite are left out.
func FitModel(ctx context.Context, p *Problem, h *History, o ModelOptions) (*Model, error) {
	if err := validate(p, h, Request{}); err != nil {
		return nil, err
	}
	m := &Model{
		problem:        p,
		configurations: pool(h, len(p.Objectives)),
		gps:            make([]*surrogate.GP, len(p.Objectives)),
		noise:          make([]float64, len(p.Objectives)),
	}
	for j := range p.Objectives {
		objective := &p.Objectives[j]
		if objective.Known != nil && !o.ModelKnown {
			continue
		}
		data, err := m.observe(j, h, o.imputeInfeasible)
		if err != nil {
			return nil, fmt.Errorf("objective %q: %w", objective.Name, err)
		}
		m.gps[j], m.noise[j], err = data.fit(ctx, o.Restarts, mix(o.Seed^mix(uint64(j))))
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("objective %q: %w", objective.Name, err)
		}
	}
	return m, nil
}

// observe gathers the data of objective j.
func (m *Model) observe(j int, h *History, imputeInfeasible bool) (*observations, error) {
	o := &m.problem.Objectives[j]
	data := &observations{deterministic: o.Known != nil}
	worst := math.NaN()
	for i := range m.configurations {
		c := &m.configurations[i]
		v := c.values[j]
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		z, variance := o.latent(v, c.stdErrors[j], c.runs)
		data.add(m.problem.Space.Encode(nil, c.point), z, variance, c.runs)
		if math.IsNaN(worst) {
			worst = z
		}
		worst = o.worst(worst, z)
	}
	if math.IsNaN(worst) {
		return nil, ErrNoData
	}
	// The bad values, as bad as the worst that was measured: worse would bend
	// the surrogate everywhere.
	for i := range m.configurations {
		if c := &m.configurations[i]; o.isBad(c.values[j]) {
			data.add(m.problem.Space.Encode(nil, c.point), worst, math.NaN(), 1)
		}
	}
	if imputeInfeasible && o.Known == nil { // a known objective has its value there too
		for _, q := range h.Infeasible {
			data.add(m.problem.Space.Encode(nil, q), worst, math.NaN(), 1)
		}
	}
	return data, nil
}

// Predict returns the posterior of every objective at q. It panics if q has the
// wrong length.
func (m *Model) Predict(q space.Point) []Prediction {
	laws := m.laws(nil, nil, q)
	predictions := make([]Prediction, len(laws))
	for j, l := range laws {
		predictions[j] = m.problem.Objectives[j].prediction(l)
	}
	return predictions
}

// laws appends the laws of the costs at q to dst[:0]. x is a buffer for the
// encoded point.
func (m *Model) laws(dst []acquisition.Law, x []float64, q space.Point) []acquisition.Law {
	dst = dst[:0]
	x = m.problem.Space.Encode(x, q)
	for j, gp := range m.gps {
		o := &m.problem.Objectives[j]
		if gp == nil {
			dst = append(dst, o.known(q))
			continue
		}
		dst = append(dst, o.law(gp.Predict(x)))
	}
	return dst
}

// Estimate is what a model says of one evaluated configuration.
type Estimate struct {
	Point space.Point

	// Evaluations are the indices of its evaluations in the history.
	Evaluations []int

	// Values and StdErrors are the pooled measurements, in own units: means
	// over Runs, and their standard errors (NaN if unknown).
	Values, StdErrors []float64
	Runs              int

	// Predictions are the posteriors given all of the history.
	Predictions []Prediction

	// OnFront tells that no other configuration's posterior medians dominate
	// this one's. A configuration with a value that is not finite is never on
	// the front.
	OnFront bool
}

// Estimates returns every different configuration that was evaluated, in order
// of its first evaluation, with its posterior and whether it is on the front of
// the posterior medians. That front, unlike the one of the raw measurements,
// does not consist of the configurations with the luckiest noise.
func (m *Model) Estimates() []Estimate {
	estimates := make([]Estimate, len(m.configurations))
	costs := make([][]float64, len(m.configurations))
	for i := range m.configurations {
		c := &m.configurations[i]
		laws := m.laws(nil, nil, c.point)
		e := Estimate{
			Point:       c.point.Clone(),
			Evaluations: slices.Clone(c.evaluations),
			Values:      slices.Clone(c.values),
			StdErrors:   slices.Clone(c.stdErrors),
			Runs:        c.runs,
			Predictions: make([]Prediction, len(laws)),
		}
		costs[i] = c.costs(laws)
		for j, l := range laws {
			e.Predictions[j] = m.problem.Objectives[j].prediction(l)
		}
		estimates[i] = e
	}
	for _, i := range pareto.NonDominated(costs) {
		estimates[i].OnFront = true
	}
	return estimates
}

// costs returns the medians of the laws at c, or NaN if c can not be on a front.
func (c *configuration) costs(laws []acquisition.Law) []float64 {
	costs := make([]float64, len(laws))
	for j, l := range laws {
		costs[j] = l.Median()
		if v := c.values[j]; math.IsNaN(v) || math.IsInf(v, 0) {
			costs[j] = math.NaN()
		}
	}
	return costs
}

// front returns the front of the posterior medians of the evaluated and of the
// given other configurations, in costs below the reference.
func (m *Model) front(others []space.Point) *pareto.Front {
	costs := make([][]float64, 0, len(m.configurations)+len(others))
	for i := range m.configurations {
		c := &m.configurations[i]
		costs = append(costs, c.costs(m.laws(nil, nil, c.point)))
	}
	for _, q := range others {
		laws := m.laws(nil, nil, q)
		medians := make([]float64, len(laws))
		for j, l := range laws {
			medians[j] = l.Median()
		}
		costs = append(costs, medians)
	}
	reference := make([]float64, len(m.problem.Objectives))
	for j := range reference {
		o := &m.problem.Objectives[j]
		reference[j] = o.cost(o.Reference)
	}
	return pareto.NewFront(costs, reference)
}

// believe returns the model after observing, at q, exactly what it predicts
// there: the kriging believer of Ginsbourger, Le Riche, Carraro, "Kriging is
// well-suited to parallelize optimization" (2010). Means do not change,
// variances shrink around q.
func (m *Model) believe(q space.Point) (*Model, error) {
	next := *m
	next.gps = slices.Clone(m.gps)
	x := m.problem.Space.Encode(nil, q)
	for j, gp := range m.gps {
		if gp == nil {
			continue
		}
		mean, _ := gp.Predict(x)
		appended, err := gp.Append(x, mean, m.noise[j])
		if err != nil {
			return nil, fmt.Errorf("objective %q: %w", m.problem.Objectives[j].Name, err)
		}
		next.gps[j] = appended
	}
	return &next, nil
}
