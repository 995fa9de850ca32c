package engine

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/internal/lbfgs"
	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

const (
	// shortlist is the number of screened candidates that are evaluated in full, and
	// drawnShortlist the number where the front is drawn, so that an evaluation costs as
	// many times more.
	shortlist, drawnShortlist = 48, 20

	// outcomes is the number of outcomes of a run that are drawn for every draw of the
	// front while candidates are screened: a pair of opposites, which mayImprove relies on.
	outcomes = 2

	// ascents bounds the evaluations of one local search.
	ascents = 40

	// ascentGain is the gain of the logarithm of the acquisition that a step of a
	// local search must promise, and drawnAscentGain the gain where the acquisition is
	// an average over draws.
	ascentGain, drawnAscentGain = 1e-6, 1e-3

	// wellKnown is the number of configurations beyond which half of the quasi-random
	// candidates suffice: the remaining improvements are around the front.
	wellKnown = 128

	// rounds bounds how often tweaks and another local search follow each other.
	rounds = 2

	// tweaks bounds the rounds of changes of single parameters at the end.
	tweaks = 8
)

// candidate is a configuration and its acquisition.
type candidate struct {
	point space.Point
	value float64
}

// explorer searches the maximum of a surface.
type explorer struct {
	*surface
	choices choices
	options Options
	rng     *rand.Rand
}

// newExplorer returns the search of a surface among untried configurations.
func newExplorer(s *surface, o Options, tried space.Set, rng *rand.Rand) *explorer {
	return &explorer{s, choices{&s.layout, tried, o.Candidates}, o, rng}
}

// find returns the untried configuration of the largest acquisition that it finds, or false if
// there is none. It draws candidates unless an earlier suggestion has.
func (e *explorer) find(ctx context.Context, draw *rand.Rand) (candidate, bool, error) {
	if e.common.chunks == nil {
		spread := e.options.Candidates
		if len(e.model.Configurations()) > wellKnown {
			spread /= 2
		}
		var err error
		if e.common.chunks, err = e.chunks(ctx, e.choices.candidates(e.centres(), spread, draw)); err != nil {
			return candidate{}, false, err
		}
	}
	finalists, err := e.screen(ctx, e.common.chunks)
	if err != nil || len(finalists) == 0 {
		return candidate{}, false, err
	}
	v := e.evaluator()
	e.examine(v, finalists)
	if err := pause.Check(ctx); err != nil {
		return candidate{}, false, err
	}
	byValue(finalists)
	starts := e.starts(finalists)

	// Every start has its own quasi-Newton method: a shared one would mix their
	// curvatures.
	ends := make([]candidate, len(starts))
	errs := make([]error, len(starts))
	e.options.Workers.Share(len(starts), func() func(int) {
		own := e.evaluator()
		return func(i int) { ends[i], errs[i] = e.climb(ctx, own, starts[i]) }
	})
	top := finalists[0]
	for i := range ends {
		if errs[i] != nil {
			return candidate{}, false, errs[i]
		}
		if ends[i].value > top.value {
			top = ends[i]
		}
	}
	for range rounds {
		c := e.tweak(ctx, v, top)
		moved := c.value > top.value
		if top = c; !moved {
			break
		}
		if c, err = e.climb(ctx, v, top); err != nil {
			return candidate{}, false, err
		}
		if c.value == top.value {
			break
		}
		top = c
	}
	return top, true, ctx.Err()
}

func byValue(list []candidate) {
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.value, a.value) })
}

// starts returns the best candidates, some more drawn with probabilities that grow
// with their values, and the best of every combination of categories.
func (e *explorer) starts(finalists []candidate) []candidate {
	n := e.options.Restarts
	if len(e.fronts) > 1 {
		n = (n + 1) / 2 // the cost of each grows with the draws
	}
	n = min(n, len(finalists))
	best := (n + 1) / 2
	starts := slices.Clone(finalists[:best])
	rest := slices.Clone(finalists[best:])
	for len(starts) < n {
		total := 0.0
		for _, c := range rest {
			total += math.Exp(c.value - finalists[0].value)
		}
		pick, at := e.rng.Float64()*total, 0
		for at < len(rest)-1 {
			if pick -= math.Exp(rest[at].value - finalists[0].value); pick < 0 {
				break
			}
			at++
		}
		starts = append(starts, rest[at])
		rest = slices.Delete(rest, at, at+1)
	}
	for _, c := range e.covering(rest, 0) {
		k := combination(e.problem.Space, c.point)
		if !slices.ContainsFunc(starts, func(c candidate) bool { return combination(e.problem.Space, c.point) == k }) {
			starts = append(starts, c)
		}
	}
	return slices.DeleteFunc(starts, func(c candidate) bool { return math.IsInf(c.value, -1) })
}

// chunk is a number of candidates, and what their predictions have in common for all suggestions.
type chunk struct {
	runs     []run
	whitened []*surrogate.Whitened // at the looks of runs, by metric; nil for a known one
	beyond   []space.Point         // candidates that are beyond the reference, and so need no prediction
}

// chunks prepares candidates for screen.
func (e *explorer) chunks(ctx context.Context, list []space.Point) ([]chunk, error) {
	var chunks []chunk
	const size = 128
	for part := range slices.Chunk(list, size) {
		if err := pause.Check(ctx); err != nil {
			return nil, err
		}
		c := chunk{whitened: make([]*surrogate.Whitened, len(e.processes))}
		var within []space.Point
		for _, q := range part {
			if e.isBeyondReference(q) {
				c.beyond = append(c.beyond, q)
			} else {
				within = append(within, q)
			}
		}
		var x [][]float64
		c.runs, x = e.runs(within, screenLooks)
		for j, p := range e.processes {
			if p != nil {
				c.whitened[j] = e.model.Surrogate(j).Whiten(x)
			}
		}
		chunks = append(chunks, c)
	}
	return chunks, nil
}

// prospect is a candidate that was screened.
type prospect struct {
	candidate         // by the acquisition for the front of the medians
	drawn     float64 // mean improvement of the draws of the front by drawn outcomes
}

// screen returns the most promising untried candidates. They have the largest acquisition for the
// front of the medians, which also compares improvements that are too rare to be drawn. Where the
// front is drawn this alone would lead away from where the front is uncertain, so half of them have
// the largest mean improvement of the drawn fronts by drawn outcomes instead.
func (e *explorer) screen(ctx context.Context, chunks []chunk) ([]candidate, error) {
	v := e.evaluator()
	var prospects []prospect
	for i := range chunks {
		if err := pause.Check(ctx); err != nil {
			return nil, err
		}
		prospects = append(prospects, e.prospects(v, &chunks[i])...)
	}
	slices.SortStableFunc(prospects, func(a, b prospect) int { return cmp.Compare(b.drawn, a.drawn) })
	size := shortlist
	if len(e.fronts) > 1 {
		size = drawnShortlist
	}
	var lucky, others []candidate
	for _, p := range prospects {
		if len(lucky) < size/2 && p.drawn > 0 {
			lucky = append(lucky, p.candidate)
		} else {
			others = append(others, p.candidate)
		}
	}
	byValue(others)
	return append(e.covering(others, size-len(lucky)), lucky...), nil
}

// prospects evaluates the untried candidates of a chunk at a few looks.
func (e *explorer) prospects(v *evaluator, c *chunk) []prospect {
	var list []prospect
	for _, q := range c.beyond {
		if !e.choices.tried.Contains(q) {
			list = append(list, prospect{candidate: candidate{q, math.Inf(-1)}})
		}
	}
	o := e.outlook(len(e.fronts))
	for j, p := range e.processes {
		if p != nil {
			o.means[j], o.variances[j] = p.PredictWhitened(c.whitened[j])
		}
	}
	for _, r := range c.runs {
		if e.choices.tried.Contains(r.at.point) {
			continue
		}
		n := v.load(r, o)
		cost := v.logCost(r.at, nil)
		list = append(list, prospect{
			candidate: candidate{r.at.point, orNever(v.combine(n, 1, false) - cost)},
			drawn:     v.drawnImprovement(n) * math.Exp(-cost),
		})
	}
	return list
}

// orNever replaces NaN by -Inf.
func orNever(value float64) float64 {
	if math.IsNaN(value) {
		return math.Inf(-1)
	}
	return value
}

// drawnImprovement returns the mean improvement of the draws of the front by the drawn
// outcomes of a run, each the best of its first n looks, times the probabilities that its end
// meets the constraints. It is 0 if the front is not drawn, or
// if a run counts as its trajectory, which no single look represents.
func (v *evaluator) drawnImprovement(n int) float64 {
	if v.outcomes == nil || v.seeking || v.axis >= 0 && n > 1 {
		return 0
	}
	sum := 0.0
	for draw, front := range v.fronts {
		var best [outcomes]float64
		for _, l := range v.looks[:n] {
			distributions := v.distributions[:0]
			for j := range v.known {
				distributions = append(distributions, v.distribution(l, j, draw))
			}
			v.distributions = distributions
			if !v.mayImprove(front, distributions, v.outcomes[draw*outcomes]) {
				continue
			}
			for i, normals := range v.outcomes[draw*outcomes : (draw+1)*outcomes] {
				for j, distribution := range distributions {
					v.outcome[j] = distribution.Quantile(normals[j])
				}
				best[i] = math.Max(best[i], front.improvement(v.outcome))
			}
		}
		feasible := math.Exp(v.logFeasible(v.looks[n-1], draw))
		for _, improvement := range best {
			sum += improvement * feasible / float64(len(v.outcomes))
		}
	}
	return sum
}

// mayImprove reports whether the better of each objective's two drawn outcomes, which are
// opposites, would together improve a front. Mostly they would not, which saves time.
func (v *evaluator) mayImprove(front target, distributions []acquisition.Distribution, normals []float64) bool {
	for j, distribution := range distributions {
		z := math.Abs(normals[j])
		if distribution.Family != acquisition.NegatedLogNormal {
			z = -z
		}
		v.outcome[j] = distribution.Quantile(z)
	}
	return front.front.Improves(v.outcome)
}

// isBeyondReference reports whether a known objective of q is not better than its
// reference, for runs that are looked at once.
func (s *surface) isBeyondReference(q space.Point) bool {
	if s.checkpoint >= 0 {
		return false
	}
	for _, k := range s.known {
		if k == nil {
			continue
		}
		if o := k.objective; !(o.SearchCost(q) < o.Cost(o.Reference)) {
			return true
		}
	}
	return false
}

// exact returns the acquisition at a configuration, -Inf if it is NaN.
func (e *explorer) exact(v *evaluator, q space.Point) float64 {
	return orNever(v.value(e.siteAt(q), e.steps(q, looks), len(e.fronts), nil))
}

// examine replaces the values of screened candidates by exact ones.
func (e *explorer) examine(v *evaluator, list []candidate) {
	if len(e.fronts) == 1 && e.checkpoint < 0 && !e.seeking {
		return // they are exact; only a search for feasible runs values more than screen does
	}
	points := make([]space.Point, len(list))
	for i, c := range list {
		points[i] = c.point
	}
	runs, o := e.predict(points, looks)
	for i, r := range runs {
		n := v.load(r, o)
		value := v.combine(n, len(e.fronts), false) - v.logCost(r.at, nil)
		list[i].value = orNever(value)
	}
}

// climb improves a configuration by a quasi-Newton search over its relaxed
// parameters and returns the best rounding of the end.
func (e *explorer) climb(ctx context.Context, v *evaluator, c candidate) (candidate, error) {
	at := e.siteAt(c.point)
	var moving []int
	for j := range c.point {
		if e.isRelaxed(j) && e.problem.Space.Active(c.point, j) && e.problem.Space.Parameters[j].Count() > 1 {
			moving = append(moving, j)
		}
	}
	if len(moving) == 0 {
		return c, nil
	}
	f := &descent{v: v, at: at, moving: moving, steps: e.steps(c.point, screenLooks), grad: make([]float64, len(c.point))}
	x := make([]float64, len(moving))
	lower, upper := make([]float64, len(moving)), make([]float64, len(moving))
	for i, j := range moving {
		x[i] = at.unit[j]
		upper[i] = 1
	}
	if _, err := lbfgs.Minimise(ctx, f, x, lower, upper, lbfgs.Options{MaxEvaluations: ascents, MaxStep: 0.3, GradientTolerance: 1e-3, Decrease: e.ascentGain()}); err != nil {
		if ctx.Err() != nil {
			return c, ctx.Err()
		}
		return c, nil // the search cannot start here
	}
	for _, q := range e.choices.roundings(c.point, moving, x) {
		if q = e.choices.admit(q); !e.choices.open(q) {
			continue
		}
		if value := e.exact(v, q); value > c.value {
			c = candidate{q, value}
		}
	}
	return c, nil
}

// ascentGain returns the least gain that a step of a local search must promise.
func (e *explorer) ascentGain() float64 {
	if len(e.fronts) > 1 {
		return drawnAscentGain
	}
	return ascentGain
}

// descent is minus a surface as a function of the moving parameters' positions.
type descent struct {
	v      *evaluator
	at     site
	moving []int
	steps  []float64
	grad   []float64
}

// Value implements [lbfgs.Function].
func (f *descent) Value(x []float64) (float64, error) {
	for i, j := range f.moving {
		f.at.unit[j] = x[i]
	}
	return -f.v.evaluate(f.at, f.steps, len(f.v.fronts), true), nil
}

// Gradient implements [lbfgs.Function].
func (f *descent) Gradient(grad []float64) {
	f.v.gradient(f.grad, f.at, f.steps)
	for i, j := range f.moving {
		grad[i] = -f.grad[j]
	}
}

// tweak improves a configuration by changes of single integers, discretes and
// categories, as long as one helps and until the context ends.
func (e *explorer) tweak(ctx context.Context, v *evaluator, c candidate) candidate {
	for range tweaks {
		before := c.value
		for j := range c.point {
			p := &e.problem.Space.Parameters[j]
			for _, value := range neighbours(p, c.point[j]) {
				if pause.Check(ctx) != nil {
					return c
				}
				q := c.point.Clone()
				q[j] = value
				for _, q := range e.choices.entered(q, c.point) {
					if q.Equal(c.point) || !e.choices.open(q) {
						continue
					}
					if value := e.exact(v, q); value > c.value {
						c = candidate{q, value}
					}
				}
			}
		}
		if c.value == before {
			break
		}
	}
	return c
}
