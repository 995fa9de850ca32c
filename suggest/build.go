package suggest

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

const (
	// looks is the number of checkpoints at which a run is looked at.
	looks = 7

	// screenLooks is that while candidates are screened.
	screenLooks = 4

	// maxBase is the number of configurations, beyond pending ones, at which the
	// front is drawn.
	maxBase = 40

	// settled is the posterior standard deviation, relative to that of the prior,
	// below which a value is as good as known.
	settled = 1e-3

	// optimism is the number of standard deviations by which a configuration must be
	// better than its median to count as possibly on the front.
	optimism = 2
)

// member is a configuration that is or may come to be on the front.
type member struct {
	point    space.Point
	x        []float64 // encoded
	measured bool      // an evaluated configuration, not a pending one
	trials   int       // that measured it
	open     bool      // its objectives are drawn, not settled
	medians  []float64 // costs
	gain     float64   // of an optimistic outcome, +Inf if its medians are on the front
}

// newSurface returns the acquisition function given a model and the pending runs.
func newSurface(m *Model, pending []space.Point, o EngineOptions, seed uint64, number int64) (*surface, error) {
	p := m.problem
	s := &surface{
		problem:    p,
		model:      m,
		processes:  make([]*surrogate.Conditioned, len(m.metrics)),
		known:      make([]*relaxed, len(p.Objectives)),
		dim:        p.Space.Dim(),
		checkpoint: -1,
		axis:       -1,
		perEpoch:   p.Cost == CostCheckpoint,
	}
	for column, j := 0, 0; j < len(p.Space.Parameters); j++ {
		s.columns = append(s.columns, column)
		if q := &p.Space.Parameters[j]; q.Kind == space.Categorical {
			column += len(q.Choices)
		} else {
			column++
		}
	}
	if !o.FinalOnly {
		s.checkpoint = p.checkpoint()
	}
	sequence := newHalton(len(p.Space.Parameters), mix(seed))
	u := make([]float64, len(p.Space.Parameters))
	var probes []space.Point
	for k := range 8 {
		sequence.at(u, uint64(k))
		probes = append(probes, at(p.Space, u))
	}
	measured := 0
	for j := range p.Objectives {
		if m.gps[j] == nil {
			s.known[j] = relax(&p.Objectives[j], p.Space, probes)
			s.axis = j
		} else {
			measured++
		}
	}
	if s.checkpoint < 0 || len(p.Objectives) != 2 || measured != 1 {
		s.axis = -1
	}

	s.members = s.gather(pending, o.PlugIn)
	if err := s.condition(o, seed, number); err != nil {
		return nil, err
	}
	return s, nil
}

// gather returns the configurations at which the front is drawn.
func (s *surface) gather(pending []space.Point, plugIn bool) []member {
	var all []member
	for i := range s.model.configurations {
		c := &s.model.configurations[i]
		if e, ok := s.member(c.point, 0); ok && c.finite() && s.model.acceptable(c) {
			e.measured, e.trials = true, len(c.evaluations)
			all = append(all, e)
		}
	}
	medians := make([][]float64, len(all))
	for i := range all {
		medians[i] = all[i].medians
	}
	front := pareto.NewFront(medians, s.reference())
	optimists := all[:0]
	for _, e := range all {
		e.gain = front.Improvement(s.optimistic(e))
		onFront := slices.ContainsFunc(front.Points(), func(v []float64) bool { return slices.Equal(v, e.medians) })
		if onFront {
			e.gain = math.Inf(1)
		}
		if onFront || e.gain > 0 && e.open && !plugIn {
			optimists = append(optimists, e)
		}
	}
	slices.SortStableFunc(optimists, func(a, b member) int { return cmp.Compare(b.gain, a.gain) })
	optimists = optimists[:min(len(optimists), maxBase)]
	if plugIn {
		for i := range optimists {
			optimists[i].open = false
		}
	}
	for _, q := range pending {
		steps := s.steps(q, looks)
		if s.checkpoint >= 0 && !s.perEpoch {
			steps = checkpoints(&s.problem.Space.Parameters[s.checkpoint], math.Min(q[s.checkpoint], s.problem.usefulLength(q)), looks)
		}
		for _, step := range append([]float64{0}, steps...) {
			if step == 0 && steps != nil {
				continue
			}
			if e, ok := s.member(q, step); ok {
				e.open = true
				optimists = append(optimists, e)
			}
		}
	}
	return optimists
}

// member describes a configuration, with the checkpoint parameter at step unless
// that is 0. It reports false if it can never be on the front.
func (s *surface) member(q space.Point, step float64) (member, bool) {
	if step != 0 {
		q = q.Clone()
		q[s.checkpoint] = step
	}
	e := member{point: q, x: s.problem.Space.Encode(nil, q), medians: make([]float64, len(s.known))}
	for j := range s.known {
		o := &s.problem.Objectives[j]
		if s.known[j] != nil {
			e.medians[j] = o.search(q)
			if !(e.medians[j] < o.cost(o.Reference)) {
				return e, false
			}
			continue
		}
		mean, variance := s.model.gps[j].Predict(e.x)
		e.medians[j] = o.law(mean, variance).Median()
		scale := s.model.gps[j].Hyperparameters().SignalVariance
		e.open = e.open || variance > settled*settled*scale
	}
	return e, true
}

// optimistic returns the costs of a member if it turns out well.
func (s *surface) optimistic(e member) []float64 {
	costs := slices.Clone(e.medians)
	for j := range costs {
		if s.known[j] != nil {
			continue
		}
		o := &s.problem.Objectives[j]
		law := o.law(s.model.gps[j].Predict(e.x))
		costs[j] = math.Min(law.Quantile(-optimism), law.Quantile(optimism))
	}
	return costs
}

func (s *surface) reference() []float64 {
	reference := make([]float64, len(s.problem.Objectives))
	for j := range reference {
		o := &s.problem.Objectives[j]
		reference[j] = o.cost(o.Reference)
	}
	return reference
}

// condition draws the objectives at the open members and builds the fronts.
func (s *surface) condition(o EngineOptions, seed uint64, number int64) error {
	var base [][]float64
	for _, e := range s.members {
		if e.open {
			base = append(base, e.x)
		}
	}
	draws := 1
	if len(base) > 0 && !o.PlugIn {
		draws += o.Samples
	}
	rng := newRand(seed, number, streamFronts)
	for m, gp := range s.model.gps {
		if gp == nil {
			continue
		}
		// The first draw is the median; the others come in pairs of opposites.
		normals := make([][]float64, draws)
		for d := range normals {
			normals[d] = make([]float64, len(base))
			for b := range base {
				switch {
				case d == 0:
				case d%2 == 1:
					normals[d][b] = rng.NormFloat64()
				default:
					normals[d][b] = -normals[d-1][b]
				}
			}
		}
		var err error
		if s.processes[m], err = gp.Condition(base, normals); err != nil {
			return fmt.Errorf("metric %q: %w", s.model.metrics[m].Name, err)
		}
	}
	reference := s.reference()
	for d := range draws {
		points := make([][]float64, len(s.members))
		b := 0
		for i, e := range s.members {
			points[i] = slices.Clone(e.medians)
			if !e.open {
				continue
			}
			for j := range s.known {
				if s.known[j] == nil {
					points[i][j] = s.problem.Objectives[j].law(s.processes[j].BaseValues(d)[b], 0).Median()
				}
			}
			b++
		}
		s.fronts = append(s.fronts, pareto.NewFront(points, reference))
	}
	return nil
}

// finite reports whether every metric was measured.
func (c *configuration) finite() bool {
	for _, v := range c.values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// acceptable reports whether the medians of a configuration's constraints are
// within bounds.
func (m *Model) acceptable(c *configuration) bool {
	for i := range m.problem.Constraints {
		constraint := &m.problem.Constraints[i]
		j := len(m.problem.Objectives) + i
		v := c.values[j]
		if gp := m.gps[j]; gp != nil {
			o := &m.metrics[j]
			v = o.law(gp.Predict(m.problem.Space.Encode(nil, c.point))).Median()
		}
		if v < constraint.Lower || v > constraint.Upper {
			return false
		}
	}
	return true
}

// centres returns the configurations on the front of the medians, and the pending
// ones.
func (s *surface) centres() []space.Point {
	var list []space.Point
	for _, e := range s.members {
		if !e.measured || math.IsInf(e.gain, 1) {
			list = append(list, e.point)
		}
	}
	return list
}
