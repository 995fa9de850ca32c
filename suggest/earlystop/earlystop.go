package earlystop

import (
	"context"
	"math"

	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
)

const (
	// optimistZ is the 2.5 % quantile of the standard Gaussian.
	optimistZ = -1.959963984540054
	// stopSteps is the number of checkpoints at which a run is judged.
	stopSteps = 8
	// runObservations is the number of measurements of the run that the model is
	// given: they share most of their noise.
	runObservations = 6
)

// IsFutile reports whether a run of q that has reached a value of the checkpoint parameter
// can add nothing more to the front. It looks at every later value up to last (see
// [suggest.Problem.LastUseful]), or at 8 that are evenly spaced in the logarithm. A run is
// futile if none of them improves the front of the posterior medians, to which its own
// measurements belong, although every measured objective's cost is at its 2.5 % quantile,
// or if the central 95 % interval of a constraint is out of bounds there.
//
// run has the measurements of the run so far, in ascending order of the checkpoint
// parameter; m must not contain them. The error is one of the surrogate or of ctx.
// IsFutile panics if the problem has no checkpoint parameter or q another length.
func IsFutile(ctx context.Context, m *model.Model, run []suggest.Evaluation, q space.Point, reached, last int64) (bool, error) {
	p := m.Problem()
	checkpoint := p.CheckpointIndex()
	if checkpoint < 0 || len(q) != len(p.Space.Parameters) {
		panic("earlystop: no checkpoint parameter, or a point of another length")
	}
	var some []suggest.Evaluation
	var seen []space.Point
	for _, i := range logSteps(1, int64(len(run)), runObservations) {
		some = append(some, run[i-1])
		seen = append(seen, run[i-1].Point)
	}
	informed, err := m.Observe(some)
	if err != nil {
		return false, err
	}
	front := informed.Front(seen)
	at := q.Clone()
	var distributions []acquisition.Distribution
	var x []float64
	costs := make([]float64, len(p.Objectives))
	for _, step := range logSteps(reached+1, last, stopSteps) {
		if err := pause.Check(ctx); err != nil {
			return false, err
		}
		at[checkpoint] = float64(step)
		distributions = informed.Distributions(distributions, x, at)
		for j := range costs {
			costs[j] = math.Min(distributions[j].Quantile(optimistZ), distributions[j].Quantile(-optimistZ))
		}
		if front.Improves(costs) && feasible(informed, at) {
			return false, nil
		}
	}
	return true, nil
}

// feasible reports whether the central 95 % intervals of all measured constraints
// at q have values within bounds.
func feasible(m *model.Model, q space.Point) bool {
	p := m.Problem()
	x := p.Inputs(nil, q)
	for i := range p.Constraints {
		c := &p.Constraints[i]
		j := len(p.Objectives) + i
		gp := m.Surrogate(j)
		if gp == nil {
			continue // a known constraint, see suggest.Problem.LastUseful
		}
		mean, variance := gp.Predict(x)
		distribution := m.Distribution(j, mean, variance)
		a, b := distribution.Quantile(optimistZ), distribution.Quantile(-optimistZ)
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
