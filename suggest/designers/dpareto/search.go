package dpareto

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// candidate is a configuration and its value of the criterion.
type candidate struct {
	point space.Point
	value float64
}

// maximizer searches the largest acquisition of one suggestion.
type maximizer struct {
	objective
	problem       *suggest.Problem
	criterion     criterion // in force
	tried         space.Set
	rng           *rand.Rand
	distributions []acquisition.Distribution // buffer
	x             []float64                  // buffer
}

// criterion is the objective of a search, to maximise.
type criterion func(*pareto.Front, []acquisition.Distribution) float64

// negligible is the HVPoI, relative to the hypervolume of the front, that is no
// longer worth an evaluation. Where there is a front, the medians next to its
// points nearly always improve it by a hair.
const negligible = 1e-5

// maximize suggests the untried configuration of the largest acquisition that
// it finds. It reports false if there is no untried configuration.
func (d designer) maximize(ctx context.Context, fitted *model.Model, pending []space.Point, tried space.Set, seed uint64, number int64) (suggest.Suggestion, bool, error) {
	p := fitted.Problem()
	m := &maximizer{
		objective: d.objective(fitted, pending),
		problem:   p,
		tried:     tried,
		rng:       sample.Stream(seed, number, sample.Search),
		x:         make([]float64, 0, p.Space.Dim()),
	}
	list := m.candidates(d.options, pending, sample.Mix(sample.Candidates.Seed(seed)^uint64(number)))
	if len(list) == 0 {
		s, ok := random.Untried(p, tried, seed, number)
		if !ok {
			return suggest.Suggestion{}, false, nil
		}
		list = append(list, s.Point)
	}
	distributions, err := m.predict(ctx, list)
	if err != nil {
		return suggest.Suggestion{}, false, err
	}
	var q space.Point
	few := max(d.options.Restarts/4, 1) // for the dearer criteria
	for _, stage := range []struct {
		criterion criterion
		restarts  int
		least     float64 // value up to which the next stage decides instead
	}{
		{acquisition.HVPoI, d.options.Restarts, negligible * m.front.Hypervolume()},
		{acquisition.EHVI, few, 0},
		{acquisition.LogPoI, few, math.Inf(-1)},
	} {
		m.criterion = stage.criterion
		top, err := m.search(ctx, list, distributions, stage.restarts)
		if err != nil {
			return suggest.Suggestion{}, false, err
		}
		q = top.point
		if top.value > stage.least {
			break
		}
	}
	s := suggest.Suggestion{
		Point:       q,
		Predictions: fitted.Predict(q),
		Acquisition: acquisition.HVPoI(m.front, m.outcomes(nil, nil, q)),
		Designer:    d.Name(),
	}
	return s, true, nil
}

// predict returns the distributions at every point of list.
func (m *maximizer) predict(ctx context.Context, list []space.Point) ([][]acquisition.Distribution, error) {
	distributions := make([][]acquisition.Distribution, len(list))
	for i, q := range list {
		if i%64 == 0 {
			if err := pause.Check(ctx); err != nil {
				return nil, err
			}
		}
		distributions[i] = m.outcomes(nil, m.x, q)
	}
	return distributions, nil
}

// value returns the criterion, and -Inf for the NaN of a broken prediction.
func (m *maximizer) value(distributions []acquisition.Distribution) float64 {
	if v := m.criterion(m.front, distributions); !math.IsNaN(v) {
		return v
	}
	return math.Inf(-1)
}

// search returns the point of the largest value that it finds by local search
// from the best points of list, whose distributions are given.
func (m *maximizer) search(ctx context.Context, list []space.Point, distributions [][]acquisition.Distribution, restarts int) (candidate, error) {
	starts := make([]candidate, len(list))
	for i, q := range list {
		starts[i] = candidate{q, m.value(distributions[i])}
	}
	slices.SortStableFunc(starts, func(a, b candidate) int { return cmp.Compare(b.value, a.value) })
	top := starts[0]
	for _, c := range starts[:min(len(starts), restarts)] {
		if err := pause.Check(ctx); err != nil {
			return candidate{}, err
		}
		if c = m.climb(c); c.value > top.value {
			top = c
		}
	}
	return m.polish(top), nil
}

// maxReplacements bounds how many quasi-random candidates that are not allowed are
// replaced by further ones, in multiples of the number of candidates.
const maxReplacements = 10

// candidates returns different untried configurations that are allowed:
// quasi-random ones and some around the front, or all if the space has at most
// o.Candidates points.
func (m *maximizer) candidates(o Options, pending []space.Point, key uint64) []space.Point {
	s := m.problem.Space
	seen := make(space.Set)
	var list []space.Point
	refused := 0
	consider := func(q space.Point) {
		switch {
		case m.tried.Contains(q) || seen.Contains(q):
		case m.problem.Allows(q):
			seen.Add(q)
			list = append(list, q)
		default:
			refused++
		}
	}
	if s.Cardinality() <= float64(o.Candidates) {
		for q := range s.Points() {
			consider(q)
		}
		return list
	}
	sequence := sample.NewHalton(len(s.Parameters), key)
	u := make([]float64, len(s.Parameters))
	for n := 0; n-min(refused, maxReplacements*o.Candidates) < o.Candidates; n++ {
		sequence.At(u, uint64(n))
		consider(sample.At(s, u))
	}
	if centres := m.frontPoints(pending); len(centres) > 0 {
		for i := range o.Candidates / 5 {
			sd := sample.MinStep * math.Exp(m.rng.Float64()*math.Log(sample.MaxStep/sample.MinStep))
			consider(sample.Perturb(m.problem.Space, m.rng, centres[i%len(centres)], sd))
		}
	}
	return list
}

// frontPoints returns the evaluated and pending configurations whose medians
// are on the front.
func (m *maximizer) frontPoints(pending []space.Point) []space.Point {
	onFront := make(map[string]bool, m.front.Len())
	for _, v := range m.front.Points() {
		onFront[space.Point(v).Key()] = true
	}
	var centres []space.Point
	configurations := m.model.Configurations()
	for i := range configurations {
		c := &configurations[i]
		m.distributions = m.outcomes(m.distributions, m.x, c.Point)
		if onFront[space.Point(m.model.Medians(c, m.distributions)).Key()] {
			centres = append(centres, c.Point)
		}
	}
	for _, q := range pending {
		m.distributions = m.outcomes(m.distributions, m.x, q)
		v := make(space.Point, 0, len(m.distributions))
		for _, l := range m.distributions {
			v = append(v, l.Median())
		}
		if onFront[v.Key()] {
			centres = append(centres, q)
		}
	}
	return centres
}

// Numbers of steps of the local search.
const (
	climbSteps  = 40
	polishSteps = 12
)

// climb improves c by random steps, lengthened after a success and shortened
// after a failure.
func (m *maximizer) climb(c candidate) candidate {
	sd := sample.StartStep
	for range climbSteps {
		q := sample.Perturb(m.problem.Space, m.rng, c.point, sd)
		if v := m.valueOfNew(q, c); v > c.value {
			c = candidate{q, v}
			sd = math.Min(sd*2, sample.MaxStep)
		} else {
			sd = math.Max(sd*0.8, sample.MinStep)
		}
	}
	return c
}

// polish improves c by steps along single parameters, halved when none helps.
func (m *maximizer) polish(c candidate) candidate {
	step := sample.StartStep
	for range polishSteps {
		before := c.value
		for j := range c.point {
			for _, direction := range []float64{-1, 1} {
				q := c.point.Clone()
				q[j] = sample.Move(&m.problem.Space.Parameters[j], m.rng, q[j], direction*step)
				q = m.problem.Space.Canonical(q)
				if v := m.valueOfNew(q, c); v > c.value {
					c = candidate{q, v}
				}
			}
		}
		if c.value == before {
			step /= 2
		}
	}
	return c
}

// valueOfNew is the value at q, but -Inf where q is not allowed, has been tried or
// is c itself.
func (m *maximizer) valueOfNew(q space.Point, c candidate) float64 {
	if q.Equal(c.point) || m.tried.Contains(q) || !m.problem.Allows(q) {
		return math.Inf(-1)
	}
	m.distributions = m.outcomes(m.distributions, m.x, q)
	return m.value(m.distributions)
}
