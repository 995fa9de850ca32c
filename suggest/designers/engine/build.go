package engine

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

const (
	// looks is the number of checkpoints at which the acquisition looks at a run.
	looks = 7

	// screenLooks is the number while candidates are screened and improved.
	screenLooks = 4

	// maxBase is the number of configurations, beyond pending ones, at which the
	// front is drawn.
	maxBase = 40

	// settled is the posterior standard deviation, relative to the prior one, below which
	// a value is as good as known.
	settled = 1e-3

	// optimism is the number of standard deviations by which a configuration must be
	// better than its median to count as possibly on the front, and the factor of standard
	// deviations where the search explores.
	optimism = 2
)

// member is a configuration that is on the front or may turn out to be.
type member struct {
	point    space.Point
	x        []float64 // encoded
	measured bool      // an evaluated configuration, not a pending one
	trials   int       // that measured it
	since    int       // index of the first evaluation, of a measured one
	settled  bool      // its variances are exact, not bounds
	place    int       // among measurements, of a measured one
	open     bool      // its objectives are drawn, not settled
	barred   bool      // a pending one, by the medians of its constraints
	medians  []float64 // costs

	// The latent means and variances of the modelled objectives.
	means, variances []float64

	gain float64 // of an optimistic outcome, +Inf if its medians are on the front
}

// common is what suggestions by one model have in common. It is made for the first of them, and for each where a
// reference value is inferred, which makes another problem of each.
type common struct {
	of      *model.Model // nil before the first
	members []member     // measured configurations that may be on the front, with predictions
	found   bool         // one meets the constraints
	chunks  []chunk      // candidates, once the search needs them
}

// newSurface returns the acquisition function given a model, for one suggestion. It adds to b what others of the same
// model can use.
func newSurface(m *model.Model, b *common, o Options, t turn) (*surface, error) {
	p := m.Problem()
	metrics := len(p.Objectives) + len(p.Constraints)
	s := &surface{
		layout:    newLayout(p, o.FinalOnly),
		model:     m,
		common:    b,
		processes: make([]*surrogate.Conditioned, metrics),
		known:     make([]*relaxed, len(p.Objectives)),
		axis:      -1,
		boldness:  1,
	}
	sequence := sample.NewHalton(len(p.Space.Parameters), sample.Mix(t.seed))
	u := make([]float64, len(p.Space.Parameters))
	var probes []space.Point
	for k := range 8 {
		sequence.At(u, uint64(k))
		probes = append(probes, sample.At(p.Space, u))
	}
	measured := 0
	for j := range p.Objectives {
		if m.Surrogate(j) == nil {
			s.known[j] = relax(&p.Objectives[j], p.Space, probes)
			s.axis = j
		} else {
			measured++
		}
	}
	if s.checkpoint < 0 || len(p.Objectives) != 2 || measured != 1 {
		s.axis = -1
	}

	if p.Cost == suggest.CostKnown {
		logarithm := func(q space.Point) float64 { return math.Log(p.RunCost(q)) }
		s.runCost = relax(&suggest.Objective{Name: "cost", Goal: suggest.Minimize, Known: logarithm}, p.Space, probes)
	}
	s.members = s.gather(t.pending, o.PlugIn, t.seed, t.number)
	if err := s.condition(o, t.seed, t.number); err != nil {
		return nil, err
	}
	return s, nil
}

// measure fills what suggestions have in common, but for candidates.
func (s *surface) measure() {
	b := s.common
	*b = common{of: s.model}
	for _, c := range s.model.Configurations() {
		if !s.model.Counts(&c) || !s.model.Acceptable(c.Point, c.Values) {
			continue
		}
		b.found = true
		if e, ok := s.member(c.Point, 0); ok {
			e.measured, e.trials, e.since, e.place = true, len(c.Evaluations), c.Evaluations[0], len(b.members)
			b.members = append(b.members, e)
		}
	}
}

// gather returns the configurations at which the front is drawn.
func (s *surface) gather(pending []space.Point, plugIn bool, seed uint64, number int64) []member {
	b := s.common
	if b.of != s.model {
		s.measure()
	}
	s.seeking = s.constrained() && !b.found
	all := slices.Clone(b.members)
	medians := make([][]float64, len(all))
	for i := range all {
		medians[i] = all[i].medians
	}
	s.view = newView(s.problem, medians, seed, number)
	front := s.view.target(medians)

	// The exact variance is expensive, a bound of it cheap.
	possible := all[:0]
	for _, e := range all {
		if slices.ContainsFunc(front.front.Points(), func(v []float64) bool { return slices.Equal(v, e.medians) }) {
			e.gain = math.Inf(1)
		} else if plugIn || front.improvement(s.optimistic(e)) == 0 {
			continue
		}
		possible = append(possible, e)
	}
	s.settle(possible)
	for _, e := range possible {
		b.members[e.place].settled = true // its variances are the copy's
	}
	optimists := possible[:0]
	for _, e := range possible {
		if !math.IsInf(e.gain, 1) {
			e.gain = front.improvement(s.optimistic(e))
		}
		if math.IsInf(e.gain, 1) || e.gain > 0 && e.open {
			optimists = append(optimists, e)
		}
	}
	slices.SortStableFunc(optimists, func(a, b member) int { return cmp.Compare(b.gain, a.gain) })
	kept, drawn := optimists[:0], 0
	for _, e := range optimists {
		if e.open = e.open && !plugIn && drawn < maxBase; e.open {
			drawn++
		}
		if e.open || math.IsInf(e.gain, 1) { // what is on the front stays on it
			kept = append(kept, e)
		}
	}
	optimists = kept
	for _, q := range pending {
		steps := s.steps(q, looks)
		if s.checkpoint >= 0 && !s.perEpoch {
			steps = checkpoints(&s.problem.Space.Parameters[s.checkpoint], math.Min(q[s.checkpoint], s.problem.UsefulLength(q)), looks)
		}
		for _, step := range append([]float64{0}, steps...) {
			if step == 0 && steps != nil {
				continue
			}
			if e, ok := s.member(q, step); ok {
				e.open, e.barred = true, !s.model.Acceptable(e.point, nil)
				s.seeking = s.seeking && e.barred
				optimists = append(optimists, e)
			}
		}
	}
	return optimists
}

// constrained reports whether there are constraints that must be measured.
func (s *surface) constrained() bool {
	return slices.ContainsFunc(s.problem.Constraints, func(c suggest.Constraint) bool { return c.Known == nil })
}

// member returns a configuration as a member, with the checkpoint parameter at step unless
// that is 0, and with bounds of its variances. It reports false if the configuration can never
// be on the front.
func (s *surface) member(q space.Point, step float64) (member, bool) {
	if step != 0 {
		q = q.Clone()
		q[s.checkpoint] = step
	}
	n := len(s.known)
	e := member{point: q, medians: make([]float64, n), means: make([]float64, n), variances: make([]float64, n)}
	for j := range s.known {
		if s.known[j] == nil {
			continue
		}
		o := &s.problem.Objectives[j]
		e.medians[j] = o.SearchCost(q)
		if !(e.medians[j] < o.Cost(o.Reference)) {
			return e, false
		}
	}
	e.x = s.problem.Inputs(nil, q)
	for j := range s.known {
		if s.known[j] == nil {
			e.means[j], e.variances[j] = s.model.Surrogate(j).Bound(e.x)
			e.medians[j] = s.model.Distribution(j, e.means[j], 0).Median()
		}
	}
	return e, true
}

// settle replaces the bounds of the members' variances by the variances.
func (s *surface) settle(members []member) {
	var x [][]float64
	var rough []int
	for i := range members {
		if !members[i].settled {
			x, rough = append(x, members[i].x), append(rough, i)
		}
	}
	means, variances := make([]float64, len(x)), make([]float64, len(x))
	for j := range s.known {
		if s.known[j] != nil {
			continue
		}
		gp := s.model.Surrogate(j)
		gp.PredictBatch(means, variances, x)
		for k, i := range rough {
			members[i].variances[j] = variances[k]
		}
		scale := gp.Hyperparameters().SignalVariance
		for i := range members {
			members[i].open = members[i].open || members[i].variances[j] > settled*settled*scale
		}
	}
}

// optimistic returns the costs of a member for an outcome better than its medians.
func (s *surface) optimistic(e member) []float64 {
	costs := slices.Clone(e.medians)
	for j := range costs {
		if s.known[j] == nil {
			distribution := s.model.Distribution(j, e.means[j], e.variances[j])
			costs[j] = math.Min(distribution.Quantile(-optimism), distribution.Quantile(optimism))
		}
	}
	return costs
}

// condition draws the objectives at the open members and builds the fronts.
func (s *surface) condition(o Options, seed uint64, number int64) error {
	var base [][]float64
	for _, e := range s.members {
		if e.open {
			base = append(base, e.x)
		}
	}
	var medians [][]float64
	for _, e := range s.members {
		if !e.barred {
			medians = append(medians, e.medians)
		}
	}
	s.fronts = []target{s.view.target(medians)}
	draws := 1
	if len(base) > 0 && !o.PlugIn {
		draws += s.view.draws(o.Samples, s.fronts[0])
	}
	rng := sample.Stream(seed, number, sample.Fronts)
	for m := range s.processes {
		gp := s.model.Surrogate(m)
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
			return fmt.Errorf("metric %q: %w", s.problem.Metrics()[m].Name, err)
		}
	}
	for d := 1; d < draws; d++ {
		var points [][]float64
		b := 0
		for _, e := range s.members {
			if !e.open {
				points = append(points, e.medians)
				continue
			}
			if s.drawnAcceptable(d, b) {
				point := slices.Clone(e.medians)
				for j := range s.known {
					if s.known[j] == nil {
						point[j] = s.model.Distribution(j, s.processes[j].BaseValues(d)[b], 0).Median()
					}
				}
				points = append(points, point)
			}
			b++
		}
		s.fronts = append(s.fronts, s.view.drawnTarget(points, d))
	}
	if draws > 1 {
		s.drawOutcomes(rng, draws)
	}
	return nil
}

// drawOutcomes draws the outcomes by which candidates are screened, the same for all.
func (s *surface) drawOutcomes(rng *rand.Rand, draws int) {
	s.outcomes = make([][]float64, draws*outcomes)
	for i := range s.outcomes {
		s.outcomes[i] = make([]float64, len(s.known))
		for j := range s.known {
			if i%2 == 0 {
				s.outcomes[i][j] = rng.NormFloat64()
			} else {
				s.outcomes[i][j] = -s.outcomes[i-1][j]
			}
		}
	}
}

// drawnAcceptable reports whether the constraints are within bounds at base point b
// of a draw.
func (s *surface) drawnAcceptable(draw, b int) bool {
	for i := range s.problem.Constraints {
		j := len(s.problem.Objectives) + i
		if s.processes[j] == nil {
			continue // a known constraint, see suggest.Problem.Allows
		}
		if v := s.model.Distribution(j, s.processes[j].BaseValues(draw)[b], 0).Median(); !s.problem.Constraints[i].Holds(v) {
			return false
		}
	}
	return true
}

// centres returns the measured configurations on the front of the medians.
func (s *surface) centres() []space.Point {
	var list []space.Point
	for _, e := range s.members {
		if math.IsInf(e.gain, 1) {
			list = append(list, e.point)
		}
	}
	return list
}
