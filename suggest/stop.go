package suggest

import (
	"fmt"
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// LastUseful returns the largest value of the checkpoint parameter, at most that of q,
// at which every known objective is strictly better than its reference and every known
// constraint holds, or 0 if there is none: no state of a run of q beyond it is on a front.
//
// It is found by bisection, in the logarithm of the number of values evaluations, on the
// assumption that a run that has left the reference does not come back, as is so for a
// privacy loss. Where that does not hold at the end of the run, the end is still found.
// It panics if p has no checkpoint parameter or q another length.
func LastUseful(p *Problem, q space.Point) int64 {
	return lastUseful(p, q, func(o *Objective, q space.Point) float64 { return o.known(q).Mean })
}

// lastUseful is [LastUseful] with known costs from the given function.
func lastUseful(p *Problem, q space.Point, known func(*Objective, space.Point) float64) int64 {
	c := p.checkpoint()
	if c < 0 || len(q) != len(p.Space.Parameters) {
		panic("suggest: no checkpoint parameter, or a point of another length")
	}
	at := q.Clone()
	useful := func(step int64) bool {
		at[c] = float64(step)
		for j := range p.Objectives {
			o := &p.Objectives[j]
			if o.Known != nil && !(known(o, at) < o.cost(o.Reference)) {
				return false
			}
		}
		for j := range p.Constraints {
			k := &p.Constraints[j]
			if k.Known == nil {
				continue
			}
			if !k.holds(k.Known(at)) {
				return false
			}
		}
		return true
	}
	last := int64(q[c])
	if useful(last) {
		return last
	}
	lo := int64(p.Space.Parameters[c].Min) - 1 // useful, or the one before the first
	if lo = min(lo, last); lo+1 < last && !useful(lo+1) {
		return 0
	}
	for hi := last; hi-lo > 1; {
		if mid := lo + (hi-lo)/2; useful(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	if lo < int64(p.Space.Parameters[c].Min) {
		return 0
	}
	return lo
}

const (
	// optimistZ is the 2.5 % quantile of the standard Gaussian.
	optimistZ = -1.959963984540054
	// stopSteps is the number of checkpoints at which a run is judged.
	stopSteps = 32
	// runObservations is the number of measurements of the run that the model is
	// given: those of one run share most of their noise.
	runObservations = 6
)

// Hopeless reports whether a run that has reached a value of the checkpoint parameter
// cannot add to the front any more: at every later value up to last (see [LastUseful])
// the 2.5 % quantile of every measured objective's cost, with the exact values of the
// known ones, is outside of the reference or no better than the front of the posterior
// medians, which the run's own measurements are part of, or the central 95 % interval
// of a constraint is out of bounds. All values are looked at, or 32 that are spaced
// evenly in their logarithm.
//
// run are the measurements of the run so far, in ascending order of the checkpoint
// parameter, which m must not contain. The error is one of the surrogate.
func (m *Model) Hopeless(run []Evaluation, q space.Point, reached, last int64) (bool, error) {
	c := m.problem.checkpoint()
	if c < 0 || len(q) != len(m.problem.Space.Parameters) {
		panic("suggest: no checkpoint parameter, or a point of another length")
	}
	var some []*Evaluation
	var seen []space.Point
	for _, i := range logSteps(1, int64(len(run)), runObservations) {
		some = append(some, &run[i-1])
		seen = append(seen, run[i-1].Point)
	}
	informed, err := m.observed(some)
	if err != nil {
		return false, err
	}
	front := informed.front(seen)
	at := q.Clone()
	var laws []acquisition.Law
	var x []float64
	costs := make([]float64, len(m.problem.Objectives))
	for _, step := range logSteps(reached+1, last, stopSteps) {
		at[c] = float64(step)
		laws = informed.laws(laws, x, at)
		for j := range costs {
			costs[j] = math.Min(laws[j].Quantile(optimistZ), laws[j].Quantile(-optimistZ))
		}
		if front.Improves(costs) && informed.feasible(at) {
			return false, nil
		}
	}
	return true, nil
}

// feasible reports whether the central 95 % intervals of all measured constraints
// at q have values within bounds.
func (m *Model) feasible(q space.Point) bool {
	x := m.problem.Space.Encode(nil, q)
	for i := range m.problem.Constraints {
		c := &m.problem.Constraints[i]
		j := len(m.problem.Objectives) + i
		if m.gps[j] == nil {
			continue // see LastUseful
		}
		law := m.metrics[j].law(m.gps[j].Predict(x))
		a, b := law.Quantile(optimistZ), law.Quantile(-optimistZ)
		if math.Max(a, b) < c.Lower || math.Min(a, b) > c.Upper {
			return false
		}
	}
	return true
}

// logSteps returns at most n of the integers from first to last, with both ends, evenly
// spaced in their logarithm.
func logSteps(first, last int64, n int) []int64 {
	var steps []int64
	for i := range n {
		step := last
		if n > 1 && first < last {
			step = int64(math.Round(float64(first) * math.Pow(float64(last)/float64(first), float64(i)/float64(n-1))))
		}
		if len(steps) > 0 {
			step = max(step, steps[len(steps)-1]+1)
		}
		if step < first || step > last {
			break
		}
		steps = append(steps, step)
	}
	return steps
}

// observed returns the model after the evaluations of one run that it does not
// contain, with the same hyperparameters.
func (m *Model) observed(run []*Evaluation) (*Model, error) {
	next := *m
	next.gps = slices.Clone(m.gps)
	checkpoint := m.problem.checkpoint()
	for j, gp := range m.gps {
		if gp == nil {
			continue
		}
		var obs surrogate.Observations
		for _, e := range run {
			v := e.Values[j]
			if math.IsNaN(v) || math.IsInf(v, 0) {
				continue
			}
			z, variance := m.metrics[j].latent(v, e.stdError(j), e.runs())
			if math.IsNaN(variance) {
				variance = 0 // learned
				if known := m.knownNoise[j]; !math.IsNaN(known) {
					variance = known / float64(e.runs())
				}
			}
			obs.X = append(obs.X, m.problem.Space.Encode(nil, e.Point))
			obs.Y = append(obs.Y, z)
			obs.NoiseVariance = append(obs.NoiseVariance, variance)
			obs.Runs = append(obs.Runs, float64(e.runs()))
			obs.Groups = append(obs.Groups, newRun)
			obs.Positions = append(obs.Positions, math.Log(e.Point[checkpoint]))
		}
		if len(obs.X) == 0 {
			continue
		}
		var err error
		if next.gps[j], err = gp.Extend(obs); err != nil {
			return nil, fmt.Errorf("metric %q: %w", m.metrics[j].Name, err)
		}
	}
	return &next, nil
}

// newRun is the group of a run that is not in a model yet.
const newRun = math.MaxInt32
