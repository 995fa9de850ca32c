package plot

import (
	"math"
	"slices"
)

// cost returns the position of a value on the axis, turned so that smaller is better. It
// is NaN for a value that has no finite place on the axis.
func (a Axis) cost(value float64) float64 {
	if a.Log {
		if !(value > 0) {
			return math.NaN()
		}
		value = math.Log10(value)
	}
	if math.IsInf(value, 0) {
		return math.NaN()
	}
	if a.Maximise {
		return -value
	}
	return value
}

// value is the inverse of cost.
func (a Axis) value(cost float64) float64 {
	if a.Maximise {
		cost = -cost
	}
	if a.Log {
		return math.Pow(10, cost)
	}
	return cost
}

// span is the part of an axis that is shown, in costs.
type span struct{ best, worst float64 }

// contains reports whether a cost is shown.
func (s span) contains(cost float64) bool { return s.best <= cost && cost <= s.worst }

// view returns what to show of an axis, given the costs of the front and of all points,
// and the cost of the reference. The view contains everything better than the reference. It also
// contains the front and nine tenths of the worse points, but nothing far beyond the reference; and
// the reference itself, unless that is far beyond the rest.
func view(front, points []float64, reference float64) span {
	const (
		shown  = 0.9  // fraction of the points
		beyond = 0.25 // how far the view goes past the reference, of the extent up to it
		reach  = 0.5  // how far the reference may lie past the points, of their extent
		pad    = 0.04
	)
	front = finite(front)
	all := finite(append(slices.Clone(points), front...))
	if len(all) == 0 {
		all = []float64{reference - 1}
	}
	slices.Sort(all)
	best, worst := all[0], all[int(shown*float64(len(all)-1))]
	for _, cost := range front {
		if cost <= reference {
			worst = max(worst, cost)
		}
	}
	if best >= reference {
		best = reference - max(1e-3, 0.2*(worst-reference)) // everything is outside the box
	}
	if reference <= worst+reach*(worst-best) {
		worst = max(reference, min(worst, reference+beyond*(reference-best)))
	}
	if !(worst > best) {
		worst = best + max(0.1, 0.1*math.Abs(best))
	}
	extent := worst - best
	return span{best - pad*extent, worst + pad*extent}
}

// finite returns the costs that have a place on the axis.
func finite(costs []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(costs), math.IsNaN)
}

// nothing is a span that contains nothing.
var nothing = span{math.Inf(1), math.Inf(-1)}

// add widens a span to contain a cost, which may be NaN for none.
func (s *span) add(cost float64) {
	if !math.IsNaN(cost) {
		s.best, s.worst = min(s.best, cost), max(s.worst, cost)
	}
}

func (s span) isEmpty() bool { return s.best > s.worst }

// widened returns a span with room on both sides, as a fraction of its extent; and one of an extent for a span
// that has none.
func (s span) widened(pad float64) span {
	if s.isEmpty() {
		s = span{0, 0}
	}
	extent := s.worst - s.best
	if extent == 0 {
		return span{s.best - 1, s.worst + 1}
	}
	return span{s.best - pad*extent, s.worst + pad*extent}
}

// near returns a cost, or one just outside of the span if it is far beyond it, where it is clipped.
func (s span) near(cost float64) float64 {
	return min(max(cost, 2*s.best-s.worst), 2*s.worst-s.best)
}
