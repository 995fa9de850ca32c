package pareto

import "slices"

// Subset returns the indices of at most k points that together have nearly the
// hypervolume of all, in the order in which they were chosen: each time the one that
// improves the hypervolume of those before it most, the first among equals. Points that
// do not improve it are left out, so that there are fewer than k of a small front.
//
// The hypervolume of the choice is at least 1 - 1/e of the largest that k points can have
// (Nemhauser, Wolsey, Fisher, "An analysis of approximations for maximizing submodular
// set functions", 1978). It panics if lengths differ, the reference is empty, or k is
// negative.
func Subset(points [][]float64, reference []float64, k int) []int {
	if k < 0 {
		panic("pareto: negative size of a subset")
	}
	chosen := []int{}
	front := NewFront(nil, reference)
	for len(chosen) < k {
		best, most := -1, 0.0
		for i, p := range points {
			if gain := front.Improvement(p); gain > most {
				best, most = i, gain
			}
		}
		if best < 0 {
			break
		}
		chosen = append(chosen, best)
		front = NewFront(append(slices.Clone(front.points), points[best]), reference)
	}
	return chosen
}
