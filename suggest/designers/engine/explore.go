package engine

import (
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// A model that takes the objectives to be smoother than they are is sure that nothing is where it
// has not looked, and the search stays on one piece of a front that has several. So while the
// front stagnates, a share of the suggestions explores: they take the model's standard deviations
// to be larger, as if all outcomes were less certain than it says, and look where an outcome of
// more than the usual luck would improve the front.
const (
	// patience is the number of trials that may add little to the front before the search
	// explores, and the inverse of the share of suggestions that do.
	patience = 8

	// littleGain is the share of the front's hypervolume that is little.
	littleGain = 0.01
)

// explores reports whether the suggestion of a number explores: one of patience does where the
// last patience trials of the history have added little to the front of the medians.
func (s *surface) explores(h *suggest.History, number int64) bool {
	if s.seeking || number%patience != 0 {
		return false
	}
	recent := lastTrials(h, patience)
	now, before := s.problem.ConstantCosts(), s.problem.ConstantCosts()
	for _, e := range s.common.members {
		if now = append(now, e.medians); e.since < recent {
			before = append(before, e.medians)
		}
	}
	whole := pareto.Hypervolume(now, s.view.reference)
	return whole > 0 && whole-pareto.Hypervolume(before, s.view.reference) < littleGain*whole
}

// lastTrials returns the index of the first evaluation of the last n trials of a history.
func lastTrials(h *suggest.History, n int) int {
	i := len(h.Evaluations)
	for ; i > 0 && n > 0; n-- {
		i--
		for run := h.Evaluations[i].Run; run != 0 && i > 0 && h.Evaluations[i-1].Run == run; {
			i--
		}
	}
	return i
}
