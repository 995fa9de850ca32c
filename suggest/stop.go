package suggest

import (
	"fmt"
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/space"
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
	c := p.checkpoint()
	if c < 0 || len(q) != len(p.Space.Parameters) {
		panic("suggest: no checkpoint parameter, or a point of another length")
	}
	at := q.Clone()
	useful := func(step int64) bool {
		at[c] = float64(step)
		for j := range p.Objectives {
			o := &p.Objectives[j]
			if o.Known != nil && !(o.known(at).Mean < o.cost(o.Reference)) {
				return false
			}
		}
		for j := range p.Constraints {
			k := &p.Constraints[j]
			if k.Known == nil {
				continue
			}
			if v := k.Known(at); !(v >= k.Lower && v <= k.Upper) {
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
// medians, which the run's own measurements are part of. All values are looked at, or
// 32 that are spaced evenly in their logarithm.
//
// run are the measurements of the run so far, in ascending order of the checkpoint
// parameter, which m must not contain. The error is one of the surrogate.
func (m *Model) Hopeless(run []Evaluation, q space.Point, reached, last int64) (bool, error) {
	c := m.problem.checkpoint()
	if c < 0 || len(q) != len(m.problem.Space.Parameters) {
		panic("suggest: no checkpoint parameter, or a point of another length")
	}
	informed := m
	var seen []space.Point
	for _, i := range logSteps(1, int64(len(run)), runObservations) {
		e := &run[i-1]
		var err error
		if informed, err = informed.observed(e); err != nil {
			return false, err
		}
		seen = append(seen, e.Point)
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
			costs[j] = laws[j].Quantile(optimistZ)
		}
		if front.Improvement(costs) > 0 {
			return false, nil
		}
	}
	return true, nil
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

// observed returns the model after an evaluation, with the same hyperparameters.
func (m *Model) observed(e *Evaluation) (*Model, error) {
	next := *m
	next.gps = slices.Clone(m.gps)
	x := m.problem.Space.Encode(nil, e.Point)
	for j, gp := range m.gps {
		v := e.Values[j]
		if gp == nil || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		o := &m.problem.Objectives[j]
		z, variance := o.latent(v, e.stdError(j), e.runs())
		if math.IsNaN(variance) {
			variance = m.noise[j]
		}
		appended, err := gp.Append(x, z, variance)
		if err != nil {
			return nil, fmt.Errorf("objective %q: %w", o.Name, err)
		}
		next.gps[j] = appended
	}
	return &next, nil
}
