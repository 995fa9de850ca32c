package query

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/restrict"
	"github.com/dpareto/dpareto/suggest/space"
)

// Query asks for the configuration with the best value of one objective among those that
// meet bounds on others.
type Query struct {
	// Optimize is the index of the objective.
	Optimize int

	// Bounds are the bounds by objective, in their own units: upper bounds of minimised
	// objectives, lower bounds of maximised ones, NaN for none.
	Bounds []float64

	// Confidence is the probability, in (0, 1), by the model, with which a modelled
	// objective is at least as good as the value that counts for it. Fit the model with
	// [model.Options].ForReading. Above 0.5 only evaluated configurations answer: a search goes where the model
	// is too optimistic. None does if no model agrees with the measurements (see [model.Check]).
	Confidence float64

	// Seed determines the random draws of the search.
	Seed uint64
}

// Answer is a configuration that answers a [Query].
type Answer struct {
	Point space.Point

	// Reached are the objectives' values that hold with the query's confidence, in their
	// own units. Those of known objectives are exact.
	Reached []float64

	// Predictions are the posteriors.
	Predictions []suggest.Prediction

	// Violation is the largest excess over a bound, in units of the distance of the bound
	// from the objective's reference (1 where they are equal). 0 where all bounds hold.
	Violation float64

	// Acceptable is set if the posterior medians of all constraints are within their
	// bounds.
	Acceptable bool
}

// Met reports whether the bounds of the query and the constraints hold.
func (a *Answer) Met() bool { return a.Acceptable && a.Violation == 0 }

// indifferent is the confidence up to which a model's median is enough.
const indifferent = 0.5

const (
	candidates  = 256 // quasi-random ones
	startPoints = 8   // of the local search
	climbSteps  = 60  // steps of it
	settled     = 2   // of them that are looked at exactly
	rounds      = 16  // of bisection, where a known objective is optimised

	// standInReach is how far along a parameter's scale a stand-in may have kept a search
	// from the bound of a known objective.
	standInReach = 0.05
)

// Better reports whether a is the better answer of two to the same problem. An answer that meets the
// constraints is better than one that does not; then the smaller violation decides, then the
// optimised objective, then the other objectives.
func (q Query) Better(p *suggest.Problem, a, b *Answer) bool {
	return (&search{problem: p, query: q}).better(a, b)
}

// Constant returns the best answer among the constants of a problem, and its index. It has neither
// Point nor Predictions. It returns false if there are no constants.
func (q Query) Constant(p *suggest.Problem) (best Answer, index int, ok bool) {
	s := &search{problem: p, query: q}
	for i, values := range p.Constants {
		a := Answer{Reached: slices.Clone(values), Acceptable: true}
		for j, v := range values {
			a.Violation = math.Max(a.Violation, s.excess(j, p.Objectives[j].Cost(v)))
		}
		if !ok || s.better(&a, &best) {
			best, index, ok = a, i, true
		}
	}
	return best, index, ok
}

// Measured returns the best answer among the evaluated configurations of a model. It
// returns false if none counts (see [model.Model.Counts]). It panics if the query has
// another number of bounds than there are objectives.
func (q Query) Measured(m *model.Model) (best Answer, ok bool) {
	s := newSearch(m, q)
	for _, c := range m.Configurations() {
		if !m.Counts(&c) {
			continue
		}
		measured := func(o *suggest.Objective, _ space.Point) float64 {
			j := slices.IndexFunc(s.problem.Objectives, func(p suggest.Objective) bool { return p.Name == o.Name })
			return o.Cost(c.Values[j])
		}
		a := s.assess(c.Point, measured)
		a.Acceptable = m.Acceptable(c.Point, c.Values)
		if m.Check().Contradicted {
			s.takeMeasured(&a, c.Values)
		}
		if !ok || s.better(&a, &best) {
			best, ok = a, true
		}
	}
	return best, ok
}

// takeMeasured replaces the predictions of a model in an answer by measured values. They hold with no confidence
// above 0.5.
func (s *search) takeMeasured(a *Answer, values []float64) {
	a.Violation = 0
	for j := range a.Reached {
		a.Reached[j] = values[j]
		a.Violation = math.Max(a.Violation, s.excess(j, s.problem.Objectives[j].Cost(values[j])))
		a.Predictions[j] = suggest.Prediction{Median: values[j], Lower: math.NaN(), Upper: math.NaN()}
	}
	a.Acceptable = s.query.Confidence <= indifferent
	for i := range s.problem.Constraints {
		a.Acceptable = a.Acceptable && s.problem.Constraints[i].Holds(values[len(a.Reached)+i])
	}
}

// Search returns the best answer that it finds by a model, which need not have been tried. Known objectives are
// exact, and at their bound where that is best. Measured constraints hold by their posterior medians. With a
// confidence above 0.5 Search finds nothing: see Confidence. Nor does it if no model agrees with the measurements.
//
// To optimise a measured objective, Search moves quasi-random candidates and the evaluated
// configurations to where the bounds of known objectives hold, and improves the best by random
// local search. To optimise a known objective it bisects on its bound: the same search decides
// whether the other bounds can be met. It returns false if no configuration is
// allowed, and the context's error when it is cancelled.
func (q Query) Search(ctx context.Context, m *model.Model) (Answer, bool, error) {
	if q.Confidence > indifferent || m.Check().Contradicted {
		return Answer{}, false, nil
	}
	s := newSearch(m, q)
	best, ok, err := s.run(ctx, s.seeds())
	if err != nil || !ok {
		return Answer{}, false, err
	}
	if o := &s.problem.Objectives[q.Optimize]; o.Known != nil && m.Surrogate(q.Optimize) == nil && best.Met() {
		if best, err = s.bisect(ctx, best); err != nil {
			return Answer{}, false, err
		}
	}
	return best, true, nil
}

// search is the search for an answer.
type search struct {
	model   *model.Model
	problem *suggest.Problem
	query   Query
}

func newSearch(m *model.Model, q Query) *search { return &search{m, m.Problem(), q} }

// better is Query.Better.
func (s *search) better(a, b *Answer) bool { return s.compare(s.meritOf(a), s.meritOf(b)) < 0 }

// meritOf returns the merit of an answer.
func (s *search) meritOf(a *Answer) merit {
	return merit{a.Point, a.Acceptable, a.Violation, s.problem.Costs(a.Reached)}
}

// assess turns a configuration into an answer, given the costs of known objectives.
func (s *search) assess(q space.Point, known costOf) Answer {
	a := Answer{Point: q.Clone(), Predictions: s.model.Predict(q), Acceptable: s.model.Acceptable(q, nil)}
	a.Reached, a.Violation = s.reached(q, known)
	return a
}

// costOf returns the cost of a known objective: exactly, by a stand-in, or as it was
// measured.
type costOf func(*suggest.Objective, space.Point) float64

// reached returns the values that hold with the confidence of the query, and by how much
// they exceed its bounds.
func (s *search) reached(q space.Point, known costOf) (values []float64, violation float64) {
	if len(s.query.Bounds) != len(s.problem.Objectives) {
		panic("query: a bound for every objective is needed")
	}
	z := distuv.UnitNormal.Quantile(s.query.Confidence)
	values = make([]float64, len(s.query.Bounds))
	x := s.problem.Inputs(nil, q)
	for j := range s.problem.Objectives {
		o := &s.problem.Objectives[j]
		var cost float64
		if s.model.Surrogate(j) != nil {
			mean, variance := s.model.Posterior(j, x)
			cost = pessimistic(s.model.Distribution(j, mean, variance), z)
		} else {
			cost = known(o, q)
		}
		values[j] = s.model.Possible(j, o.Cost(cost)) // Cost is its own inverse
		violation = math.Max(violation, s.excess(j, cost))
	}
	return values, violation
}

// excess returns by how much a cost exceeds the bound on objective j, in units of the distance of the
// bound from the reference. It is 0 without a bound.
func (s *search) excess(j int, cost float64) float64 {
	o, bound := &s.problem.Objectives[j], s.query.Bounds[j]
	if math.IsNaN(bound) {
		return 0
	}
	scale := math.Abs(o.Reference - bound)
	if scale == 0 {
		scale = 1
	}
	return (cost - o.Cost(bound)) / scale
}

// pessimistic returns the cost that is not exceeded with probability Φ(z).
func pessimistic(l acquisition.Distribution, z float64) float64 {
	if l.Family == acquisition.NegatedLogNormal { // falls in z
		z = -z
	}
	return l.Quantile(z)
}

// seeds returns the model's configurations, from which a search starts beside others.
func (s *search) seeds() []space.Point {
	var list []space.Point
	for _, c := range s.model.Configurations() {
		if s.problem.Space.Contains(c.Point) == nil {
			list = append(list, c.Point)
		}
	}
	return list
}

// restricted returns the problem under the bounds of known objectives to minimise.
func (s *search) restricted() (*suggest.Problem, restrict.Limits) {
	var bounds restrict.Limits
	for j := range s.problem.Objectives {
		o := &s.problem.Objectives[j]
		if b := s.query.Bounds[j]; !math.IsNaN(b) && o.Known != nil && s.model.Surrogate(j) == nil && o.Goal == suggest.Minimize {
			bounds = append(bounds, restrict.Limit{Objective: j, Known: o.Known, Search: o.Search, Upper: b})
		}
	}
	return (&restrict.Condition{AtMost: bounds}).Restrict(s.problem), bounds
}

// merit is the criterion that a search improves: first whether the constraints hold, then the violation, then the
// optimised cost, then the other costs.
type merit struct {
	point      space.Point
	acceptable bool
	violation  float64
	costs      []float64 // of the objectives
}

// compare returns a negative number if a is better.
func (s *search) compare(a, b merit) int {
	if a.acceptable != b.acceptable {
		if a.acceptable {
			return -1
		}
		return 1
	}
	order := cmp.Compare(a.violation, b.violation)
	for j, bound := range s.query.Bounds { // equal violations of a far bound may be rounded
		if !math.IsNaN(bound) {
			met := s.problem.Objectives[j].Cost(bound)
			order = cmp.Or(order, cmp.Compare(math.Max(a.costs[j], met), math.Max(b.costs[j], met)))
		}
	}
	return cmp.Or(order, cmp.Compare(a.costs[s.query.Optimize], b.costs[s.query.Optimize]), slices.Compare(a.costs, b.costs))
}

// merit evaluates a configuration with the stand-ins of known objectives.
func (s *search) merit(q space.Point) merit {
	values, violation := s.reached(q, (*suggest.Objective).SearchCost)
	return merit{q, s.model.Acceptable(q, nil), violation, s.problem.Costs(values)}
}

// run returns the best answer of one search.
func (s *search) run(ctx context.Context, seeds []space.Point) (Answer, bool, error) {
	p, bounds := s.restricted()
	admit := func(q space.Point) space.Point {
		q = p.Space.Canonical(q)
		if p.Allows(q) || p.Repair == nil {
			return q
		}
		if repaired := p.Repair(q); repaired != nil {
			return repaired
		}
		return q
	}
	seen := make(space.Set)
	var list []merit
	consider := func(q space.Point) {
		if q = admit(q.Clone()); !seen.Contains(q) && s.problem.Allows(q) {
			seen.Add(q)
			list = append(list, s.merit(q))
		}
	}
	sequence := sample.NewHalton(len(p.Space.Parameters), sample.Candidates.Seed(s.query.Seed))
	u := make([]float64, len(p.Space.Parameters))
	for n := range candidates {
		if err := pause.Check(ctx); err != nil {
			return Answer{}, false, err
		}
		sequence.At(u, uint64(n))
		consider(sample.At(p.Space, u))
	}
	for _, q := range seeds {
		if err := pause.Check(ctx); err != nil {
			return Answer{}, false, err
		}
		consider(q)
	}
	if len(list) == 0 {
		return Answer{}, false, nil
	}
	slices.SortStableFunc(list, s.compare)
	rng := sample.Stream(s.query.Seed, int64(len(list)), sample.Search)
	starts := list[:min(startPoints, len(list))]
	for i := range starts {
		if err := pause.Check(ctx); err != nil {
			return Answer{}, false, err
		}
		starts[i] = s.climb(p.Space, rng, starts[i], admit)
	}
	slices.SortStableFunc(starts, s.compare)
	var best *Answer
	for _, c := range starts[:min(settled, len(starts))] {
		a := s.settle(c.point, p, bounds)
		if best == nil || s.better(&a, best) {
			best = &a
		}
	}
	return *best, true, nil
}

// climb improves a configuration by random steps, and then by steps along single
// parameters.
func (s *search) climb(in *space.Space, rng *rand.Rand, c merit, admit func(space.Point) space.Point) merit {
	try := func(q space.Point) bool {
		if q = admit(q); !s.problem.Allows(q) {
			return false
		}
		next := s.merit(q)
		if s.compare(next, c) >= 0 {
			return false
		}
		c = next
		return true
	}
	sd := sample.StartStep
	for range climbSteps {
		if try(sample.Perturb(in, rng, c.point, sd)) {
			sd = math.Min(sd*2, sample.MaxStep)
		} else {
			sd = math.Max(sd*0.8, sample.MinStep)
		}
	}
	for step := sample.StartStep; step > sample.MinStep; step /= 2 {
		for j := range c.point {
			for _, direction := range []float64{-1, 1} {
				q := c.point.Clone()
				q[j] = sample.Move(&in.Parameters[j], rng, q[j], direction*step)
				try(q)
			}
		}
	}
	return c
}

// settle turns a configuration that a search with stand-ins found into an answer. It moves
// it to where the bounds of known objectives hold exactly, and outwards to a bound where that
// is better.
func (s *search) settle(q space.Point, p *suggest.Problem, bounds restrict.Limits) Answer {
	if len(bounds) == 0 {
		return s.assess(q, (*suggest.Objective).KnownCost)
	}
	exact := *p
	exact.Allowed = s.problem.Allowed
	if r := bounds.Repair(&exact, q, (*restrict.Limit).Exact); r != nil {
		q = r
	}
	best := s.assess(q, (*suggest.Objective).KnownCost)
	good := func(q space.Point) bool {
		return bounds.Hold(q, (*restrict.Limit).Exact) && s.problem.Allows(q)
	}
	if !good(q) { // nothing is: take the nearest
		for j := range q {
			parameter := &p.Space.Parameters[j]
			if !p.Space.Active(q, j) {
				continue
			}
			for _, end := range parameter.Ends() {
				at := best.Point.Clone()
				at[j] = end
				if at = p.Space.Canonical(at); !s.problem.Allows(at) {
					continue
				}
				if a := s.assess(at, (*suggest.Objective).KnownCost); s.better(&a, &best) {
					best = a
				}
			}
		}
		return best
	}
	for j := range q {
		parameter := &p.Space.Parameters[j]
		if parameter.Kind != space.Double || !p.Space.Active(q, j) {
			continue
		}
		for _, step := range []float64{-standInReach, standInReach} {
			beyond := q.Clone()
			beyond[j] = parameter.At(parameter.Unit(q[j]) + step)
			if bounds.Hold(beyond, (*restrict.Limit).Exact) {
				continue // the parameter does not lead out
			}
			a := s.assess(restrict.Nearest(parameter, beyond, q, j, good), (*suggest.Objective).KnownCost)
			if s.better(&a, &best) {
				best = a
			}
		}
	}
	return best
}

// bisect lowers the bound on the optimised, known objective for as long as all bounds can
// still be met, starting from an answer that meets them.
func (s *search) bisect(ctx context.Context, best Answer) (Answer, error) {
	j := s.query.Optimize
	o := &s.problem.Objectives[j]
	inner := *s
	inner.query.Bounds = slices.Clone(s.query.Bounds)
	inner.query.Optimize = s.bounded()
	low, high := math.Inf(-1), best.Reached[j]
	for range rounds {
		target := (low + high) / 2
		switch {
		case math.IsInf(low, -1) && o.Goal == suggest.Minimize && high > 0:
			target = high / 2
		case math.IsInf(low, -1):
			return best, nil // no scale to search on
		case low > 0 && high > 0:
			target = math.Sqrt(low * high)
		}
		inner.query.Bounds[j] = target
		a, ok, err := inner.run(ctx, []space.Point{best.Point})
		if err != nil {
			return best, err
		}
		if ok && a.Met() {
			b := s.assess(a.Point, (*suggest.Objective).KnownCost)
			if s.better(&b, &best) {
				best = b
			}
			high = math.Min(target, best.Reached[j])
		} else {
			low = target
		}
		if low > 0 && high-low < 1e-3*high {
			break
		}
	}
	return best, nil
}

// bounded returns the objective that the inner searches of a bisection optimise: the first
// measured one with a bound, or else another than the optimised one.
func (s *search) bounded() int {
	other := 0
	for j, b := range s.query.Bounds {
		if j == s.query.Optimize {
			continue
		}
		if !math.IsNaN(b) && s.model.Surrogate(j) != nil {
			return j
		}
		other = j
	}
	return other
}
