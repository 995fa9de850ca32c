package suggest

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/space"
)

// Query asks for the configuration with the best value of one objective among those that
// meet bounds on others.
type Query struct {
	// Optimize is the index of the objective.
	Optimize int

	// Bounds are the bounds by objective, in their own units: upper ones of objectives to
	// minimise, lower ones of objectives to maximise. NaN for none.
	Bounds []float64

	// Confidence is the probability, in (0, 1), with which a modelled objective is at
	// least as good as the value that stands for it, by the model: fit it with
	// [ModelOptions.ForReading].
	Confidence float64

	// Seed determines the random draws of the search.
	Seed uint64
}

// Answer is a configuration that answers a [Query].
type Answer struct {
	Point space.Point

	// Reached are the values of the objectives that hold with the query's confidence, in
	// their own units: the exact values of known ones.
	Reached []float64

	// Predictions are the posteriors.
	Predictions []Prediction

	// Violation is the largest excess over a bound, relative to the distance of the bound
	// from the objective's reference (to 1 where they are the same): 0 where all bounds
	// hold.
	Violation float64

	// Acceptable tells that the posterior medians of all constraints are within their
	// bounds.
	Acceptable bool
}

// Met reports whether the bounds of the query and the constraints hold.
func (a *Answer) Met() bool { return a.Acceptable && a.Violation == 0 }

const (
	queryCandidates = 256 // quasi-random ones
	queryStarts     = 8   // of the local search
	queryClimb      = 60  // steps of it
	querySettled    = 2   // of them that are looked at exactly
	queryRounds     = 16  // of bisection, where a known objective is optimised

	// standInReach is how far along a parameter's scale a stand-in may have kept a search
	// from the bound of a known objective.
	standInReach = 0.05
)

// Better reports whether a is the better answer: it meets the constraints and b does not,
// or exceeds the bounds by less, or meets them as b does and has the better value of the
// optimised objective.
func (m *Model) Better(q Query, a, b *Answer) bool {
	return compareMerits(m.meritOf(q, a), m.meritOf(q, b)) < 0
}

// meritOf returns an answer's merit.
func (m *Model) meritOf(q Query, a *Answer) merit {
	o := &m.problem.Objectives[q.Optimize]
	return merit{a.Point, a.Acceptable, a.Violation, o.cost(a.Reached[q.Optimize])}
}

// Measured returns the best answer among the evaluated configurations of the model. It
// returns false if none has a finite value of every metric. It panics if the query has
// another number of bounds than there are objectives.
func (m *Model) Measured(q Query) (best Answer, ok bool) {
	for i := range m.configurations {
		c := &m.configurations[i]
		if !c.finite() {
			continue
		}
		measured := func(o *Objective, _ space.Point) float64 {
			j := slices.IndexFunc(m.problem.Objectives, func(p Objective) bool { return p.Name == o.Name })
			return o.cost(c.values[j])
		}
		a := m.assess(q, c.point, measured)
		a.Acceptable = m.acceptable(c.point, c.values)
		if !ok || m.Better(q, &a, &best) {
			best, ok = a, true
		}
	}
	return best, ok
}

// assess returns the answer that a configuration is, given the costs of known objectives.
func (m *Model) assess(q Query, at space.Point, known func(*Objective, space.Point) float64) Answer {
	a := Answer{Point: at.Clone(), Predictions: m.Predict(at), Acceptable: m.acceptable(at, nil)}
	a.Reached, a.Violation = m.reached(q, at, known)
	return a
}

// exactCost returns the exact cost of a known objective.
func exactCost(o *Objective, q space.Point) float64 { return o.known(q).Mean }

// reached returns the values that hold with the confidence of the query, and by how much
// they exceed its bounds.
func (m *Model) reached(q Query, at space.Point, known func(*Objective, space.Point) float64) (values []float64, violation float64) {
	if len(q.Bounds) != len(m.problem.Objectives) {
		panic("suggest: a bound for every objective is needed")
	}
	z := distuv.UnitNormal.Quantile(q.Confidence)
	values = make([]float64, len(q.Bounds))
	x := m.problem.Space.Encode(nil, at)
	for j := range m.problem.Objectives {
		o := &m.problem.Objectives[j]
		var cost float64
		if gp := m.gps[j]; gp != nil {
			cost = pessimistic(o.law(gp.Predict(x)), z)
		} else {
			cost = known(o, at)
		}
		values[j] = o.cost(cost) // its own inverse
		if bound := q.Bounds[j]; !math.IsNaN(bound) {
			scale := math.Abs(o.Reference - bound)
			if scale == 0 {
				scale = 1
			}
			violation = math.Max(violation, (cost-o.cost(bound))/scale)
		}
	}
	return values, violation
}

// pessimistic returns the cost that is not exceeded with probability Φ(z).
func pessimistic(l acquisition.Law, z float64) float64 {
	if l.Family == acquisition.NegatedLogNormal { // falls in z
		z = -z
	}
	return l.Quantile(z)
}

// Answer searches the answer to a query: a configuration that need not have been tried.
// Known objectives with a bound, and a known one that is optimised, are exact, and at
// their bound where that is best. Measured constraints hold by their posterior medians.
//
// A measured objective is minimised by quasi-random candidates and the evaluated
// configurations, moved to where the bounds of known objectives hold, and random local
// search from the best; a known one by bisection on its bound, so that the same search
// decides whether the other bounds can be met. It returns false if no configuration is
// allowed, and the context's error when it is cancelled.
func (m *Model) Answer(ctx context.Context, q Query) (Answer, bool, error) {
	s := &querySearch{model: m, query: q}
	best, ok, err := s.run(ctx, m.seeds())
	if err != nil || !ok {
		return Answer{}, false, err
	}
	if o := &m.problem.Objectives[q.Optimize]; o.Known != nil && m.gps[q.Optimize] == nil && best.Met() {
		if best, err = s.bisect(ctx, best); err != nil {
			return Answer{}, false, err
		}
	}
	return best, true, nil
}

// seeds returns the configurations from which a search starts beside others: those of the
// model.
func (m *Model) seeds() []space.Point {
	list := make([]space.Point, 0, len(m.configurations))
	for i := range m.configurations {
		if q := m.configurations[i].point; m.problem.Space.Contains(q) == nil {
			list = append(list, q)
		}
	}
	return list
}

// querySearch is the search for an answer.
type querySearch struct {
	model *Model
	query Query
}

// problem returns the problem under the bounds of known objectives to minimise.
func (s *querySearch) problem() (*Problem, limits) {
	var bounds limits
	for j := range s.model.problem.Objectives {
		o := &s.model.problem.Objectives[j]
		if b := s.query.Bounds[j]; !math.IsNaN(b) && o.Known != nil && s.model.gps[j] == nil && o.Goal == Minimize {
			bounds = append(bounds, Limit{Objective: j, Known: o.Known, Search: o.Search, Upper: b})
		}
	}
	return s.model.problem.conditioned(Condition{AtMost: bounds}), bounds
}

// merit is what a search improves: first whether the constraints hold, then the
// violation, then the optimised cost.
type merit struct {
	point      space.Point
	acceptable bool
	violation  float64
	cost       float64
}

// compareMerits returns a negative number if a is better.
func compareMerits(a, b merit) int {
	if a.acceptable != b.acceptable {
		if a.acceptable {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.violation, b.violation), cmp.Compare(a.cost, b.cost))
}

// merit evaluates a configuration with the stand-ins of known objectives.
func (s *querySearch) merit(q space.Point) merit {
	values, violation := s.model.reached(s.query, q, (*Objective).search)
	o := &s.model.problem.Objectives[s.query.Optimize]
	return merit{q, s.model.acceptable(q, nil), violation, o.cost(values[s.query.Optimize])}
}

// run returns the best answer of one search.
func (s *querySearch) run(ctx context.Context, seeds []space.Point) (Answer, bool, error) {
	p, bounds := s.problem()
	admit := func(q space.Point) space.Point {
		q = p.Space.Canonical(q)
		if p.allowed(q) || p.Repair == nil {
			return q
		}
		if repaired := p.Repair(q); repaired != nil {
			return repaired
		}
		return q
	}
	seen := make(pointSet)
	var list []merit
	consider := func(q space.Point) {
		if q = admit(q.Clone()); !seen.contains(q) && s.model.problem.allowed(q) {
			seen.add(q)
			list = append(list, s.merit(q))
		}
	}
	sequence := newHalton(len(p.Space.Parameters), mix(s.query.Seed+streamCandidates))
	u := make([]float64, len(p.Space.Parameters))
	for n := range queryCandidates {
		if n%64 == 0 && ctx.Err() != nil {
			return Answer{}, false, ctx.Err()
		}
		sequence.at(u, uint64(n))
		consider(at(p.Space, u))
	}
	for i, q := range seeds {
		if i%64 == 0 && ctx.Err() != nil {
			return Answer{}, false, ctx.Err()
		}
		consider(q)
	}
	if len(list) == 0 {
		return Answer{}, false, nil
	}
	slices.SortStableFunc(list, compareMerits)
	rng := newRand(s.query.Seed, int64(len(list)), streamSearch)
	starts := list[:min(queryStarts, len(list))]
	for i := range starts {
		if err := ctx.Err(); err != nil {
			return Answer{}, false, err
		}
		starts[i] = s.climb(p.Space, rng, starts[i], admit)
	}
	slices.SortStableFunc(starts, compareMerits)
	var best *Answer
	for _, c := range starts[:min(querySettled, len(starts))] {
		a := s.settle(c.point, p, bounds)
		if best == nil || s.model.Better(s.query, &a, best) {
			best = &a
		}
	}
	return *best, true, nil
}

// climb improves a configuration by random steps, and then by steps along single
// parameters.
func (s *querySearch) climb(in *space.Space, rng *rand.Rand, c merit, admit func(space.Point) space.Point) merit {
	try := func(q space.Point) bool {
		if q = admit(q); !s.model.problem.allowed(q) {
			return false
		}
		next := s.merit(q)
		if compareMerits(next, c) >= 0 {
			return false
		}
		c = next
		return true
	}
	sd := startStep
	for range queryClimb {
		if try(perturb(in, rng, c.point, sd)) {
			sd = math.Min(sd*2, maxStep)
		} else {
			sd = math.Max(sd*0.8, minStep)
		}
	}
	for step := startStep; step > minStep; step /= 2 {
		for j := range c.point {
			for _, direction := range []float64{-1, 1} {
				q := c.point.Clone()
				q[j] = move(&in.Parameters[j], rng, q[j], direction*step)
				try(q)
			}
		}
	}
	return c
}

// settle returns the answer at a configuration that a search with stand-ins found, moved
// to where the bounds of known objectives hold exactly, and from within them to the bound
// where that is better.
func (s *querySearch) settle(q space.Point, p *Problem, bounds limits) Answer {
	if len(bounds) == 0 {
		return s.model.assess(s.query, q, exactCost)
	}
	exact := *p
	exact.Allowed = s.model.problem.Allowed
	if r := bounds.repair(&exact, q, (*Limit).exact); r != nil {
		q = r
	}
	best := s.model.assess(s.query, q, exactCost)
	good := func(q space.Point) bool {
		return bounds.hold(q, (*Limit).exact) && s.model.problem.allowed(q)
	}
	if !good(q) { // nothing is: as near as it gets
		for j := range q {
			parameter := &p.Space.Parameters[j]
			if !p.Space.Active(q, j) {
				continue
			}
			for _, end := range ends(parameter) {
				at := best.Point.Clone()
				at[j] = end
				if at = p.Space.Canonical(at); !s.model.problem.allowed(at) {
					continue
				}
				if a := s.model.assess(s.query, at, exactCost); s.model.Better(s.query, &a, &best) {
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
			if bounds.hold(beyond, (*Limit).exact) {
				continue // the parameter does not lead out
			}
			a := s.model.assess(s.query, bounds.nearest(parameter, beyond, q, j, good), exactCost)
			if s.model.Better(s.query, &a, &best) {
				best = a
			}
		}
	}
	return best
}

// bisect lowers the bound on the optimised, known objective for as long as all bounds can
// still be met, starting from an answer that meets them.
func (s *querySearch) bisect(ctx context.Context, best Answer) (Answer, error) {
	j := s.query.Optimize
	o := &s.model.problem.Objectives[j]
	inner := *s
	inner.query.Bounds = slices.Clone(s.query.Bounds)
	inner.query.Optimize = s.bounded()
	low, high := math.Inf(-1), best.Reached[j]
	for range queryRounds {
		target := (low + high) / 2
		switch {
		case math.IsInf(low, -1) && o.Goal == Minimize && high > 0:
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
			b := s.model.assess(s.query, a.Point, exactCost)
			if s.model.Better(s.query, &b, &best) {
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

// bounded returns the first measured objective with a bound, or else the first other one:
// what the inner searches of a bisection make good.
func (s *querySearch) bounded() int {
	other := 0
	for j, b := range s.query.Bounds {
		if j == s.query.Optimize {
			continue
		}
		if !math.IsNaN(b) && s.model.gps[j] != nil {
			return j
		}
		other = j
	}
	return other
}
