package dpsgd

import (
	"math"
	"math/bits"

	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/privacy/correlated"
)

// mostSteps bounds the steps of a run with [FixedOrder] times its epochs, as the server does for the time of a
// sensitivity.
const mostSteps = 10_000_000

// buffers holds the constants of [BLT].
var buffers = correlated.TwoBuffers()

// noiseMatrix returns a matrix other than Banded.
func (m Matrix) noiseMatrix() correlated.Matrix {
	if m == Tree {
		return correlated.Tree{}
	}
	return buffers
}

// treeNoise makes the noise of tree aggregation, exactly: the sum of the noise of the first t steps of a tree is the
// sum of ⌊2⁴⁰·N⌋ over its nodes with the binary digits of t as lengths. All sums are whole numbers. So each step
// releases a difference of two sums of noisy nodes: the sum after the step minus the sum before it.
type treeNoise struct {
	separation uint64    // steps of a tree
	nodes      [][]int64 // noise of the last node of length 2^level
}

// newTreeNoise returns the noise of a number of parameters.
func newTreeNoise(separation, parameters int) *treeNoise {
	n := &treeNoise{separation: uint64(separation), nodes: make([][]int64, bits.Len(uint(separation)))}
	for level := range n.nodes {
		n.nodes[level] = make([]int64, parameters)
	}
	return n
}

func (*treeNoise) grid(independent float64) float64 { return independent }

func (n *treeNoise) addTo(sum []int64, first int, step uint64, s *random.Stream) {
	// Step t ends the node of the lowest digit of t, in the place of the nodes of all lower digits.
	level := bits.TrailingZeros64((step-1)%n.separation + 1)
	node := n.nodes[level][first : first+len(sum)]
	clear(node)
	random.AddNoise(node, s)
	for i, z := range node {
		sum[i] += z
	}
	for _, ended := range n.nodes[:level] {
		for i, z := range ended[first : first+len(sum)] {
			sum[i] -= z
		}
	}
}

// bufferedNoise makes rows w_t of C⁻¹Z for a BLT. In units of the grid, with z_t = ⌊2⁴⁰·N⌋,
//
//	w_t = z_t − round(Σ_d ω_d·s_d),  s_d ← λ_d·s_d + w_t.
//
// The buffers are rounded, so that x_t = g_t + w_t does not follow from rows of C·G + Z alone. But given what was
// released before, x_t is a whole number m_t plus z_t: the steps are Gaussian mechanisms, each chosen by what the
// earlier ones released. Let a record move the gradients by Δ, whose rows have norms of at most L over the grid. With w_t =
// x_t − g_t, it moves m_t by the row of C·Δ, and by the rounding errors r_t of both data sets. The noise protects moves
// whose norm over all steps is bounded whatever is released, as for [privacy.DPFTRL]. This one is at most
// sens(C)·L/grid + ‖r‖. The grid is so much coarser that this is still sens(C)/σ times 2⁴⁰.
//
// Draws are at most 13·2⁴⁰. The entries of C⁻¹ after the first are not positive, since c is log-convex (Kaluza), which for
// c₁² <= c₀·c₂ follows from Σω/λ < 1. So their absolute sum is below 2, and |w_t| < 27·2⁴⁰ while rounding errors are below
// 2³⁸. The other data set has the same x_t, and its |w_t| is larger by L/grid <= 2⁴⁰/σ at most. So |s_d| < M_d = (28 +
// 1/σ)·2⁴⁰/(1 − λ_d). The rounding errors of a step change s_d by 2⁻⁵²·M_d, and what is left of them all is that over 1 − λ_d. The
// sum has two more of 2⁻⁵³·ω_d·M_d for each buffer. With the rounding to whole numbers
//
//	|r_t| <= 2·(½ + Σ_d ω_d·M_d·2⁻⁵²·(1/(1 − λ_d) + number of buffers)) for each parameter.
type bufferedNoise struct {
	matrix  correlated.BLT
	buffers [][]float64
	draws   []int64
	// moved is the bound of |r_t|, and wider the factor of the grid.
	moved, wider float64
}

// newBufferedNoise returns the noise of a number of parameters with a noise multiplier.
func newBufferedNoise(b correlated.BLT, parameters int, sigma float64) *bufferedNoise {
	n := &bufferedNoise{matrix: b, draws: make([]int64, parameters), moved: 1, wider: math.Inf(1)}
	for d, scale := range b.Scale {
		n.buffers = append(n.buffers, make([]float64, parameters))
		kept := 1 / (1 - b.Decay[d])
		n.moved += 2 * scale * (28 + 1/sigma) * random.NoiseScale * kept * 0x1p-52 * (kept + float64(len(b.Scale)))
	}
	// With ρ = σ‖r‖·2⁻⁴⁰ <= ½ and sens(C) >= 1, a grid that is 1 + 2ρ times as coarse suffices: sens(C)/(1 + 2ρ) + ρ <=
	// sens(C). [model.CheckGrid] refuses infinite grids.
	if rho := sigma / random.NoiseScale * n.moved * math.Sqrt(float64(parameters)*mostSteps); rho <= 0.5 && n.moved < 0x1p38 {
		n.wider = 1 + 2*rho*(1+0x1p-40)
	}
	return n
}

func (n *bufferedNoise) grid(independent float64) float64 {
	return math.Nextafter(independent*n.wider, math.Inf(1))
}

func (n *bufferedNoise) addTo(sum []int64, first int, _ uint64, s *random.Stream) {
	draws := n.draws[first : first+len(sum)]
	clear(draws)
	random.AddNoise(draws, s)
	for i, z := range draws {
		w := z - n.takenBack(first+i)
		n.push(first+i, w)
		sum[i] += w
	}
}

// takenBack returns the part of a parameter's noise that the next step takes back.
func (n *bufferedNoise) takenBack(parameter int) int64 {
	sum := 0.0
	for d, buffer := range n.buffers {
		sum += n.matrix.Scale[d] * buffer[parameter]
	}
	return int64(math.RoundToEven(sum))
}

// push adds the noise of a step to the buffers of a parameter.
func (n *bufferedNoise) push(parameter int, w int64) {
	for d, buffer := range n.buffers {
		buffer[parameter] = n.matrix.Decay[d]*buffer[parameter] + float64(w)
	}
}
