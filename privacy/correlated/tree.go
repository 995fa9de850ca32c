package correlated

import (
	"math"
	"math/bits"
)

// Tree is tree aggregation: every dyadic interval [k·2^l, (k+1)·2^l) of steps that has ended has a node, with the sum of
// its gradients and noise of its own, and prefix sums are made of nodes (Kairouz, McMahan, Song, Thakkar, Thakurta and
// Xu, "Practical and private (deep) learning without sampling or shuffling", 2021). A tree ends after as many steps as
// separate two participations of a record, and another one begins. Rows of C are nodes.
type Tree struct{}

// Validate returns nil.
func (Tree) Validate() error { return nil }

// Sensitivity returns the norm of all nodes together, rounded up. A record has one step in a tree at most, and that
// step is in at most one node of each of the ⌊log₂ separation⌋ + 1 levels.
func (Tree) Sensitivity(steps, separation, participations int) float64 {
	trees := min(participations, (steps-1)/separation+1)
	return math.Nextafter(math.Sqrt(float64(trees*bits.Len(uint(separation)))), math.Inf(1))
}
