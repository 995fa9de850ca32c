package correlated

import (
	"math"
	"math/bits"
)

// Tree is tree aggregation over a number of steps >= 1: every dyadic interval [k·2^l, (k+1)·2^l) of steps that has
// ended has a node, with the sum of its gradients and noise of its own, and prefix sums are made of nodes (Kairouz,
// McMahan, Song, Thakkar, Thakurta and Xu, "Practical and private (deep) learning without sampling or shuffling",
// 2021).
type Tree int64

// Height returns the number of levels that have a node, ⌊log₂ steps⌋ + 1.
func (t Tree) Height() int { return bits.Len64(uint64(t)) }

// Sensitivity returns the norm of all nodes together for a record with a gradient of norm 1 in one step: at most one
// node a level has that step, so that it is √Height. It is rounded up. Noise of standard deviation σ·L per node then
// has μ = Sensitivity/σ, or the Rényi divergence α·Height/(2σ²); E trees that a record takes part in have √E and E
// times that.
func (t Tree) Sensitivity() float64 {
	return math.Nextafter(math.Sqrt(float64(t.Height())), math.Inf(1))
}

// Nodes returns the number of nodes in the sum of the first i >= 0 gradients, which is its variance where a node has
// variance 1.
func (Tree) Nodes(i int64) int { return bits.OnesCount64(uint64(i)) }

// MostNodes returns the largest number of Nodes of a prefix of the steps.
func (t Tree) MostNodes() int {
	h := t.Height()
	if t.Nodes(int64(t)) == h { // all of its bits are 1
		return h
	}
	return h - 1
}
