package model

import (
	"math"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// Bounds of what a model is made of.
const (
	// checkpointsPerRun is the number of evaluations of one run that a model uses at
	// most: more are nearly the same evaluation again.
	checkpointsPerRun = 6

	// modelSize is the number of evaluations that a model is made of at most. The
	// factorisation of its covariance is cubic in it.
	modelSize = 1200

	// trajectoryModelSize is the bound where runs have checkpoints, and each suggestion
	// takes several times as many predictions.
	trajectoryModelSize = 512
)

// thin returns the indices of at most perRun evaluations of each run of h: the last
// one, and others at values of the checkpoint parameter evenly spaced in the
// logarithm.
func thin(p *suggest.Problem, h *suggest.History, perRun int) []int {
	checkpoint := p.CheckpointIndex()
	var kept []int
	for _, r := range runs(h) {
		if checkpoint < 0 {
			kept = append(kept, r.first)
			continue
		}
		kept = append(kept, logSpaced(r, perRun, func(i int) float64 {
			return h.Evaluations[i].Point[checkpoint]
		})...)
	}
	return kept
}

// perRun is how many evaluations of each of n runs are used if they are to be about
// size at most in all.
func perRun(n, size int) int { return min(checkpointsPerRun, max(1, size/max(n, 1))) }

// span is one run in a history: its evaluations are first to last.
type span struct{ first, last int }

// runs divides the evaluations of h into runs.
func runs(h *suggest.History) []span {
	var spans []span
	for i := range h.Evaluations {
		id := h.Evaluations[i].Run
		if n := len(spans); id != 0 && n > 0 && h.Evaluations[spans[n-1].last].Run == id {
			spans[n-1].last = i
		} else {
			spans = append(spans, span{i, i})
		}
	}
	return spans
}

// logSpaced returns at most n indices of r, the last one always, those whose
// increasing values are nearest to ones evenly spaced in the logarithm.
func logSpaced(r span, n int, value func(int) float64) []int {
	low, high := value(r.first), value(r.last)
	var kept []int
	next := r.first
	for k := range n - 1 {
		target := low * math.Pow(high/low, float64(k)/float64(n-1))
		for next < r.last && value(next) < target*(1-1e-9) {
			next++
		}
		if next >= r.last {
			break
		}
		kept = append(kept, next)
		next++
	}
	return append(kept, r.last)
}

// choose returns the indices of the evaluations that the model is made of: all
// that thin keeps, or, if they are too many, half of them by layers of the
// observed front, the best first, and the others evenly spaced in time.
func (f *fitter) choose() []int {
	size := modelSize
	if f.problem.Checkpoint != "" {
		size = trajectoryModelSize
	}
	kept := thin(f.problem, f.history, checkpointsPerRun)
	if len(kept) <= size {
		return kept
	}
	costs := make([][]float64, len(kept))
	for i, k := range kept {
		costs[i] = make([]float64, len(f.problem.Objectives))
		for j := range costs[i] {
			costs[i][j] = f.problem.Objectives[j].Cost(f.history.Evaluations[k].Values[j])
		}
	}
	chosen := make([]bool, len(kept))
	count := 0
	for count < size/2 {
		layer := pareto.NonDominated(costs)
		if len(layer) == 0 {
			break // the remaining values are not finite
		}
		for _, i := range layer {
			costs[i][0] = math.NaN() // not in the next layer
			if count < size/2 {
				chosen[i] = true
				count++
			}
		}
	}
	var others []int
	for i := range kept {
		if !chosen[i] {
			others = append(others, i)
		}
	}
	missing := size - count
	for i := range missing {
		chosen[others[(2*i+1)*len(others)/(2*missing)]] = true
	}
	result := make([]int, 0, size)
	for i, k := range kept {
		if chosen[i] {
			result = append(result, k)
		}
	}
	return result
}

// sample returns the indices of the evaluations from which hyperparameters are
// learned after n runs: of all of these runs if they are at most fitSize, else of
// runs evenly spaced in time.
func (f *fitter) sample(n int) []int {
	h := f.history
	each := perRun(n, fitSize)
	checkpoint := f.problem.CheckpointIndex()
	var indices []int
	for i := range min(n, fitSize) {
		r := f.runs[i]
		if n > fitSize {
			r = f.runs[(2*i+1)*n/(2*fitSize)]
		}
		if checkpoint < 0 || each == 1 {
			indices = append(indices, r.last)
			continue
		}
		indices = append(indices, logSpaced(r, each, func(k int) float64 { return h.Evaluations[k].Point[checkpoint] })...)
	}
	return indices
}
