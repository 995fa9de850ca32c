package pareto

// Subset returns the indices of at most k points that together dominate much of the
// region that all of them dominate, in the order in which they were chosen. Each adds most to the
// hypervolume of the points chosen before it, and is the first among equals. Points that add
// nothing are never chosen. It panics if k is negative or lengths differ.
//
// The subset has at least 1 - 1/e of the hypervolume of the best subset of k
// points (Guerreiro, Fonseca, Paquete, "Greedy hypervolume subset selection in low
// dimensions", Evolutionary Computation 24(3), 2016).
func Subset(points [][]float64, reference []float64, k int) []int {
	if k < 0 {
		panic("pareto: the size of a subset is negative")
	}
	var chosen []int
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
		front = NewFront(append(front.Points(), points[best]), reference)
	}
	return chosen
}
