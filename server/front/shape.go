package front

import (
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest/pareto"
)

// within reports whether a point lies in the box below the reference.
func within(cost, reference []float64) bool {
	for j, v := range cost {
		if !(v < reference[j]) {
			return false
		}
	}
	return true
}

// contributions returns how much the hypervolume of a front shrinks without each of its points.
func contributions(costs [][]float64, reference []float64) []float64 {
	total := pareto.Hypervolume(costs, reference)
	out := make([]float64, len(costs))
	for i, v := range costs {
		if !within(v, reference) {
			continue
		}
		others := slices.Delete(slices.Clone(costs), i, i+1)
		if len(reference) == 2 {
			out[i] = pareto.NewFront(others, reference).Improvement(v) // a difference would lose digits
		} else {
			out[i] = max(0, total-pareto.Hypervolume(others, reference))
		}
	}
	return out
}

// knee returns the index of the knee of a front of two objectives in lexicographic order. That is
// the point within the box furthest below the line between the ends of the front in the box, with
// both objectives scaled to the ends' difference. knee returns -1 if no point is below the line.
func knee(costs [][]float64, reference []float64) int {
	if len(reference) != 2 {
		return -1
	}
	first := slices.IndexFunc(costs, func(v []float64) bool { return within(v, reference) })
	if first < 0 {
		return -1
	}
	last := first
	for i, v := range costs {
		if within(v, reference) {
			last = i
		}
	}
	a, b := costs[first], costs[last]
	best, furthest := -1, 0.0
	for i := first + 1; i < last; i++ {
		// From (0, 1) to (1, 0) the line is x + y = 1.
		x, y := (costs[i][0]-a[0])/(b[0]-a[0]), (costs[i][1]-b[1])/(a[1]-b[1])
		if distance := (1 - x - y) / math.Sqrt2; distance > furthest {
			best, furthest = i, distance
		}
	}
	return best
}
