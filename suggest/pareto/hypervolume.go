package pareto

import (
	"cmp"
	"math"
	"slices"
)

// Hypervolume returns the volume of the region below the reference that the
// points dominate: of {v <= reference : p <= v for some p}. Points that are not
// finite or not strictly below the reference in every objective are ignored.
// It panics if lengths differ.
//
// Two objectives take O(n log n). More take the WFG algorithm of While,
// Bradstreet, Barone, "A Fast Way of Calculating Exact Hypervolumes", IEEE
// Trans. Evol. Comp. 16(1), 2012, which is exponential in the worst case and
// fast for the few hundred points in up to five objectives of a study.
func Hypervolume(points [][]float64, reference []float64) float64 {
	return hypervolume(inside(points, reference), reference)
}

// inside returns the non-dominated points strictly below the reference, without
// duplicates and in lexicographic order. The points are shared, not copied.
func inside(points [][]float64, reference []float64) [][]float64 {
	if len(reference) == 0 {
		panic("pareto: the reference has no objectives")
	}
	kept := make([][]float64, 0, len(points))
	for _, p := range points {
		checkLength(p, reference)
		if finite(p) && below(p, reference) {
			kept = append(kept, p)
		}
	}
	return prune(kept)
}

// prune sorts finite points lexicographically and drops the dominated and the
// duplicate ones, in place.
func prune(points [][]float64) [][]float64 {
	slices.SortFunc(points, slices.Compare[[]float64])
	front := points[:0]
	for _, p := range points {
		if len(p) == 2 {
			// Sorted: only the last kept point can be as good or better.
			if n := len(front); n == 0 || p[1] < front[n-1][1] {
				front = append(front, p)
			}
			continue
		}
		if !slices.ContainsFunc(front, func(q []float64) bool { return atMost(q, p) }) {
			front = append(front, p)
		}
	}
	return front
}

// below reports whether p is less than r in every objective.
func below(p, r []float64) bool {
	for i, v := range p {
		if !(v < r[i]) {
			return false
		}
	}
	return true
}

// atMost reports whether p is at most q in every objective.
func atMost(p, q []float64) bool {
	for i, v := range p {
		if v > q[i] {
			return false
		}
	}
	return true
}

// hypervolume is Hypervolume of a pruned front.
func hypervolume(front [][]float64, reference []float64) float64 {
	switch {
	case len(front) == 0:
		return 0
	case len(reference) == 1:
		return reference[0] - front[0][0]
	case len(reference) == 2:
		return area(front, reference)
	}
	// The points with the worst last objective first: what the others dominate
	// of such a point's own region then reaches as deep as the region itself,
	// and the last objective drops out of the recursion.
	order := slices.Clone(front)
	last := len(reference) - 1
	slices.SortStableFunc(order, func(p, q []float64) int { return cmp.Compare(q[last], p[last]) })
	volume := 0.0
	for k, p := range order {
		own := 1.0
		for j, v := range p[:last] {
			own *= reference[j] - v
		}
		shared := hypervolume(limitSet(order[k+1:], p[:last]), reference[:last])
		volume += (reference[last] - p[last]) * (own - shared)
	}
	return volume
}

// limitSet returns the front, in the objectives of p, of the points after
// raising each to at least p: the part of the region of p that they dominate.
func limitSet(points [][]float64, p []float64) [][]float64 {
	raised := make([][]float64, len(points))
	values := make([]float64, len(points)*len(p))
	for i, q := range points {
		r := values[i*len(p) : (i+1)*len(p)]
		for j, v := range p {
			r[j] = math.Max(q[j], v)
		}
		raised[i] = r
	}
	return prune(raised)
}

// area is the hypervolume of a pruned front in two objectives, whose second
// objective decreases:
//
//	Σ_i (x_{i+1} - x_i) (r_2 - y_i),  x_{n+1} = r_1.
func area(front [][]float64, reference []float64) float64 {
	sum := 0.0
	for i, p := range front {
		next := reference[0]
		if i+1 < len(front) {
			next = front[i+1][0]
		}
		sum += (next - p[0]) * (reference[1] - p[1])
	}
	return sum
}

// Trace returns the hypervolume of the first 1, 2, ... points, in the order in
// which they are given: the course of a study. It never decreases, since each
// step adds the point's improvement (see [Front.Improvement]).
func Trace(points [][]float64, reference []float64) []float64 {
	trace := make([]float64, len(points))
	front := NewFront(nil, reference)
	total := 0.0
	for i, p := range points {
		if gain := front.Improvement(p); gain > 0 {
			total += gain
			front = NewFront(append(front.points, p), reference)
		}
		trace[i] = total
	}
	return trace
}
