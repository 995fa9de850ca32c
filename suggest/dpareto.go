package suggest

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// Defaults of [DParetoOptions].
const (
	DefaultInitialPoints = 16
	DefaultCandidates    = 1000
	DefaultRestarts      = 20
)

// DParetoOptions tunes [NewDPareto]. A field that is 0 takes its default.
type DParetoOptions struct {
	// InitialPoints is the number of configurations drawn from the design laws
	// before the first model: evaluated, pending and infeasible ones count. At
	// least 1. Default [DefaultInitialPoints], as in the published experiments.
	InitialPoints int

	// Candidates is the number of quasi-random configurations, uniform on the
	// parameters' scales, at which the acquisition is first evaluated, before
	// a fifth as many around the front. Default [DefaultCandidates].
	Candidates int

	// Restarts is the number of the best candidates that local search
	// improves. Default [DefaultRestarts].
	Restarts int

	// ExactKnown uses the Known functions of objectives in the acquisition. By
	// default they are modelled by a Gaussian process like measured ones, as
	// in the paper, and never called.
	ExactKnown bool
}

type dpareto struct{ options DParetoOptions }

// NewDPareto returns the designer "dpareto": Algorithm 2 of Avent et al.
// (PoPETs 2020). After the initial points it fits independent Gaussian
// processes to the objectives' transforms (log ε, logit error) and suggests
// the configuration of the largest HVPoI, the hypervolume improvement of the
// posterior medians times the probability of improvement. Both are taken with
// respect to the problem's reference and to the front of the posterior medians
// at the evaluated configurations. The hypervolume is in the objectives' own
// units.
//
// The acquisition is evaluated at points of the space, that is with integers
// rounded, and no configuration is suggested twice. Pending configurations are
// taken to yield what the model predicts.
//
// HVPoI sees medians only. Where the largest that is found is at most 1e-5 of
// the front's hypervolume, the expected hypervolume improvement decides, which
// also sees what the model is unsure of; and where that is 0 too, as it can be
// far from the reference, the logarithm of the probability of improvement. If
// the model fails, a quasi-random configuration stands in.
//
// It panics if an option is negative.
func NewDPareto(o DParetoOptions) Designer {
	if o.InitialPoints < 0 || o.Candidates < 0 || o.Restarts < 0 {
		panic("suggest: negative option")
	}
	o.InitialPoints = cmp.Or(o.InitialPoints, DefaultInitialPoints)
	o.Candidates = cmp.Or(o.Candidates, DefaultCandidates)
	o.Restarts = cmp.Or(o.Restarts, DefaultRestarts)
	return dpareto{o}
}

func (dpareto) Name() string    { return "dpareto" }
func (dpareto) Version() string { return "2" }

func (d dpareto) Suggest(ctx context.Context, p *Problem, h *History, r Request) ([]Suggestion, error) {
	if err := validate(p, h, r); err != nil {
		return nil, err
	}
	var model *Model // of the evaluations and of believed pending configurations
	believed := 0    // pending ones
	return modelled{
		designed: func(n int) bool { return n < d.options.InitialPoints },
		initial: func(tried pointSet, number int64) (Suggestion, bool) {
			return initialPoint(p, tried, r.Seed, number)
		},
		next: func(pending []space.Point, tried pointSet, number int64) (s Suggestion, ok bool, err error) {
			if model == nil {
				end := beginPhase(ctx, PhaseFit, h)
				model, err = d.fit(ctx, p, h, pending, r.Seed)
				end()
				believed = len(pending)
			}
			for ; err == nil && believed < len(pending); believed++ {
				model, err = model.believe(pending[believed])
			}
			if err != nil {
				return s, false, err
			}
			defer beginPhase(ctx, PhaseSearch, h)()
			return d.maximize(ctx, model, pending, tried, r.Seed, number)
		},
	}.suggest(ctx, p, h, r, len(h.Evaluations)+len(h.Infeasible)+len(h.Pending))
}

// fit returns the model of h after believing the pending configurations.
func (d dpareto) fit(ctx context.Context, p *Problem, h *History, pending []space.Point, seed uint64) (*Model, error) {
	m, err := FitModel(ctx, p, h, ModelOptions{
		ModelKnown:       !d.options.ExactKnown,
		Seed:             mix(seed + streamFit),
		imputeInfeasible: true,
		homoscedastic:    true,
	})
	for _, q := range pending {
		if err != nil {
			return nil, err
		}
		m, err = m.believe(q)
	}
	return m, err
}

// initialPoint draws an untried configuration from the design laws.
func initialPoint(p *Problem, tried pointSet, seed uint64, number int64) (Suggestion, bool) {
	rng := newRand(seed, number, streamDesign)
	q, ok := p.draw(tried, func() space.Point { return p.Space.Sample(rng) })
	if !ok {
		q, ok = p.firstUntried(tried)
	}
	return Suggestion{Point: q, Designer: NewRandom().Name()}, ok
}

// fallback returns an untried configuration of the quasi-random sequence.
func fallback(p *Problem, tried pointSet, seed uint64, number int64) (Suggestion, bool) {
	q, ok := p.draw(tried, quasiRandomDraws(p.Space, seed, number))
	if !ok {
		q, ok = p.firstUntried(tried)
	}
	return Suggestion{Point: q, Designer: NewQuasiRandom().Name()}, ok
}

// candidate is a configuration and its value of the criterion.
type candidate struct {
	point space.Point
	value float64
}

// maximizer searches the largest acquisition of one suggestion.
type maximizer struct {
	model     *Model
	front     *pareto.Front
	criterion criterion // in force
	tried     pointSet
	rng       *rand.Rand
	laws      []acquisition.Law // buffer
	x         []float64         // buffer
}

// criterion is what a search maximises.
type criterion func(*pareto.Front, []acquisition.Law) float64

// negligible is the HVPoI, relative to the hypervolume of the front, that is no
// longer worth an evaluation. Where there is a front, the medians next to its
// points nearly always improve it by a hair.
const negligible = 1e-5

// maximize suggests the untried configuration of the largest acquisition that
// it finds. It reports false if there is no untried configuration.
func (d dpareto) maximize(ctx context.Context, model *Model, pending []space.Point, tried pointSet, seed uint64, number int64) (Suggestion, bool, error) {
	m := &maximizer{
		model: model,
		front: model.front(pending),
		tried: tried,
		rng:   newRand(seed, number, streamSearch),
		x:     make([]float64, 0, model.problem.Space.Dim()),
	}
	list := m.candidates(d.options, pending, mix(mix(seed+streamCandidates)^uint64(number)))
	if len(list) == 0 {
		s, ok := initialPoint(model.problem, tried, seed, number)
		if !ok {
			return Suggestion{}, false, nil
		}
		list = append(list, s.Point)
	}
	laws, err := m.predict(ctx, list)
	if err != nil {
		return Suggestion{}, false, err
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
		top, err := m.search(ctx, list, laws, stage.restarts)
		if err != nil {
			return Suggestion{}, false, err
		}
		q = top.point
		if top.value > stage.least {
			break
		}
	}
	s := Suggestion{
		Point:       q,
		Predictions: model.Predict(q),
		Acquisition: acquisition.HVPoI(m.front, model.laws(nil, nil, q)),
		Designer:    d.Name(),
	}
	return s, true, nil
}

// predict returns the laws at every point of list.
func (m *maximizer) predict(ctx context.Context, list []space.Point) ([][]acquisition.Law, error) {
	laws := make([][]acquisition.Law, len(list))
	for i, q := range list {
		if i%64 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		laws[i] = m.model.laws(nil, m.x, q)
	}
	return laws, nil
}

// value returns the criterion for laws. A NaN of a broken prediction does not
// win.
func (m *maximizer) value(laws []acquisition.Law) float64 {
	if v := m.criterion(m.front, laws); !math.IsNaN(v) {
		return v
	}
	return math.Inf(-1)
}

// search returns the point of the largest value that it finds by local search
// from the best points of list, whose laws are given.
func (m *maximizer) search(ctx context.Context, list []space.Point, laws [][]acquisition.Law, restarts int) (candidate, error) {
	starts := make([]candidate, len(list))
	for i, q := range list {
		starts[i] = candidate{q, m.value(laws[i])}
	}
	slices.SortStableFunc(starts, func(a, b candidate) int { return cmp.Compare(b.value, a.value) })
	top := starts[0]
	for _, c := range starts[:min(len(starts), restarts)] {
		if err := ctx.Err(); err != nil {
			return candidate{}, err
		}
		if c = m.climb(c); c.value > top.value {
			top = c
		}
	}
	return m.polish(top), nil
}

// maxReplacements times the number of candidates is how many quasi-random ones
// that are not allowed are replaced by further ones.
const maxReplacements = 10

// candidates returns different untried configurations that are allowed:
// quasi-random ones and some around the front, or all if the space has at most
// o.Candidates points.
func (m *maximizer) candidates(o DParetoOptions, pending []space.Point, key uint64) []space.Point {
	s := m.model.problem.Space
	seen := make(pointSet)
	var list []space.Point
	refused := 0
	consider := func(q space.Point) {
		switch {
		case m.tried.contains(q) || seen.contains(q):
		case m.model.problem.allowed(q):
			seen.add(q)
			list = append(list, q)
		default:
			refused++
		}
	}
	if s.Cardinality() <= float64(o.Candidates) {
		for q := range points(s) {
			consider(q)
		}
		return list
	}
	sequence := newHalton(len(s.Parameters), key)
	u := make([]float64, len(s.Parameters))
	for n := 0; n-min(refused, maxReplacements*o.Candidates) < o.Candidates; n++ {
		sequence.at(u, uint64(n))
		consider(at(s, u))
	}
	if centres := m.frontPoints(pending); len(centres) > 0 {
		for i := range o.Candidates / 5 {
			sd := minStep * math.Exp(m.rng.Float64()*math.Log(maxStep/minStep))
			consider(perturb(m.model.problem.Space, m.rng, centres[i%len(centres)], sd))
		}
	}
	return list
}

// at returns the point at position u of the parameters' scales, categories
// having equal shares.
func at(s *space.Space, u []float64) space.Point {
	q := make(space.Point, len(u))
	for j, t := range u {
		if p := &s.Parameters[j]; p.Kind == space.Categorical {
			q[j] = p.Value(int(math.Min(math.Floor(t*p.Count()), p.Count()-1)))
		} else {
			q[j] = p.At(t)
		}
	}
	return s.Canonical(q)
}

// frontPoints returns the evaluated and pending configurations whose medians
// are on the front.
func (m *maximizer) frontPoints(pending []space.Point) []space.Point {
	onFront := make(map[string]bool, m.front.Len())
	for _, v := range m.front.Points() {
		onFront[key(v)] = true
	}
	var centres []space.Point
	for i := range m.model.configurations {
		c := &m.model.configurations[i]
		m.laws = m.model.laws(m.laws, m.x, c.point)
		if onFront[key(m.model.costs(c, m.laws))] {
			centres = append(centres, c.point)
		}
	}
	for _, q := range pending {
		m.laws = m.model.laws(m.laws, m.x, q)
		v := make(space.Point, 0, len(m.laws))
		for _, l := range m.laws {
			v = append(v, l.Median())
		}
		if onFront[key(v)] {
			centres = append(centres, q)
		}
	}
	return centres
}

// Steps of the local search, in units of a parameter's scale.
const (
	minStep     = 1e-3
	maxStep     = 0.3
	startStep   = 0.1
	climbSteps  = 40
	polishSteps = 12
)

// climb improves c by random steps, lengthened after a success and shortened
// after a failure.
func (m *maximizer) climb(c candidate) candidate {
	sd := startStep
	for range climbSteps {
		q := perturb(m.model.problem.Space, m.rng, c.point, sd)
		if v := m.valueOfNew(q, c); v > c.value {
			c = candidate{q, v}
			sd = math.Min(sd*2, maxStep)
		} else {
			sd = math.Max(sd*0.8, minStep)
		}
	}
	return c
}

// polish improves c by steps along single parameters, halved when none helps.
func (m *maximizer) polish(c candidate) candidate {
	step := startStep
	for range polishSteps {
		before := c.value
		for j := range c.point {
			for _, direction := range []float64{-1, 1} {
				q := c.point.Clone()
				q[j] = move(&m.model.problem.Space.Parameters[j], m.rng, q[j], direction*step)
				q = m.model.problem.Space.Canonical(q)
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
	if q.Equal(c.point) || m.tried.contains(q) || !m.model.problem.allowed(q) {
		return math.Inf(-1)
	}
	m.laws = m.model.laws(m.laws, m.x, q)
	return m.value(m.laws)
}

// perturb returns q with a random subset of its parameters moved by Gaussian
// steps of standard deviation sd on their scales.
func perturb(s *space.Space, rng *rand.Rand, q space.Point, sd float64) space.Point {
	q = q.Clone()
	always := rng.IntN(len(q)) // one parameter moves for certain
	for j := range q {
		if j == always || rng.IntN(2) == 0 {
			q[j] = move(&s.Parameters[j], rng, q[j], sd*rng.NormFloat64())
		}
	}
	return s.Canonical(q)
}

// move returns the value of a parameter a signed step away on its scale. Steps
// end at the bounds, so that the faces of the space are reached exactly.
// Integers and discretes move by at least one value, and categories to another
// at random.
func move(p *space.Parameter, rng *rand.Rand, v, step float64) float64 {
	n := p.Count()
	if n == 1 {
		return v
	}
	if p.Kind == space.Categorical {
		other := rng.IntN(int(n) - 1)
		if float64(other) >= v {
			other++
		}
		return float64(other)
	}
	moved := p.At(p.Unit(v) + step)
	if moved != v || p.Kind == space.Double {
		return moved
	}
	neighbour := 1.0
	if step < 0 {
		neighbour = -1
	}
	if p.Kind == space.Integer {
		return math.Min(math.Max(v+neighbour, p.Min), p.Max)
	}
	i := slices.Index(p.Values, v) + int(neighbour)
	return p.Values[min(max(i, 0), len(p.Values)-1)]
}
