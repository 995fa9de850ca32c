package pareto

import (
	"math"
	"slices"
)

// Dominates reports whether a is at least as good as b in every objective and
// better in one. Equal points do not dominate one another. It panics if the
// lengths differ.
func Dominates(a, b []float64) bool {
	checkLength(a, b)
	better := false
	for i, v := range a {
		if !(v <= b[i]) {
			return false
		}
		better = better || v < b[i]
	}
	return better
}

// NonDominated returns the indices, in increasing order, of the points that no
// other point dominates. All points of equal values are kept. A point with a
// NaN or infinite value is never on the front and dominates nothing.
func NonDominated(points [][]float64) []int {
	order := make([]int, 0, len(points))
	for i, p := range points {
		if finite(p) {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return order
	}
	// In lexicographic order a point can be dominated only by an earlier one.
	slices.SortStableFunc(order, func(i, j int) int { return slices.Compare(points[i], points[j]) })
	front := order[:0]
	if len(points[order[0]]) == 2 {
		last := order[0] // the lowest second objective so far, and its point
		for _, i := range order {
			p, q := points[i], points[last]
			if p[1] < q[1] || slices.Equal(p, q) {
				last = i
				front = append(front, i)
			}
		}
	} else {
		for _, i := range order {
			if !slices.ContainsFunc(front, func(j int) bool { return Dominates(points[j], points[i]) }) {
				front = append(front, i)
			}
		}
	}
	slices.Sort(front)
	return front
}

// NonDominatedBeside is [NonDominated] of points that compete with fixed ones: a point that a fixed
// one dominates or equals is not on the front.
func NonDominatedBeside(points, fixed [][]float64) []int {
	front := NonDominated(slices.Concat(fixed, points))
	kept := front[:0]
	for _, i := range front {
		isEqual := func(q []float64) bool { return slices.Equal(q, points[i-len(fixed)]) }
		if i >= len(fixed) && !slices.ContainsFunc(fixed, isEqual) {
			kept = append(kept, i-len(fixed))
		}
	}
	return kept
}

func finite(p []float64) bool {
	for _, v := range p {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

func checkLength(a, b []float64) {
	if len(a) != len(b) {
		panic("pareto: points differ in length")
	}
}
