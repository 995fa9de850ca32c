package estimate

import (
	"math"
	"slices"
)

// Node is a value of a function with its slopes on either side.
type Node struct {
	X, Y        float64
	Left, Right float64 // slopes; equal where the function is smooth
}

// Interpolant is the piecewise cubic function through nodes with their slopes
// (Hermite). On an interval of length h its error is at most h⁴/384 of the largest
// fourth derivative there.
type Interpolant struct {
	nodes []Node // at increasing X
}

// NewInterpolant returns the function through nodes, in any order. It panics when
// there are none, or two at one X.
func NewInterpolant(nodes []Node) *Interpolant {
	if len(nodes) == 0 {
		panic("estimate: no nodes")
	}
	f := &Interpolant{slices.Clone(nodes)}
	slices.SortFunc(f.nodes, func(a, b Node) int {
		if a.X < b.X {
			return -1
		}
		return 1
	})
	for i, n := range f.nodes[1:] {
		if !(f.nodes[i].X < n.X) {
			panic("estimate: two nodes at one place")
		}
	}
	return f
}

// Monotone returns the function with slopes lowered as far as makes every piece
// monotone whose end slopes have the sign of its rise (Fritsch and Carlson, "Monotone
// piecewise cubic interpolation", 1980, with the circle of radius 3). Pieces that are
// monotone already by that criterion, and those at whose ends the function turns, stay.
func (f *Interpolant) Monotone() *Interpolant {
	g := &Interpolant{slices.Clone(f.nodes)}
	for i := range len(g.nodes) - 1 {
		a, b := &g.nodes[i], &g.nodes[i+1]
		rise := (b.Y - a.Y) / (b.X - a.X)
		alpha, beta := a.Right/rise, b.Left/rise
		if norm := math.Hypot(alpha, beta); alpha >= 0 && beta >= 0 && norm > 3 && !math.IsInf(norm, 1) {
			a.Right *= 3 / norm
			b.Left *= 3 / norm
		}
	}
	return g
}

// At returns the value at x, NaN outside of the range of the nodes.
func (f *Interpolant) At(x float64) float64 {
	i, w := f.weights(x)
	if i < 0 {
		return math.NaN()
	}
	a := f.nodes[i]
	if w.value[1] == 0 && w.slope[1] == 0 {
		return a.Y
	}
	b := f.nodes[i+1]
	return w.value[0]*a.Y + w.value[1]*b.Y + w.slope[0]*a.Right + w.slope[1]*b.Left
}

// weights holds the weights of the values and slopes at the two ends of a piece.
type weights struct{ value, slope [2]float64 }

// weights returns the piece i, from node i to i+1, that x is in, or −1. At a node the
// weights are (1, 0) and (0, 0).
func (f *Interpolant) weights(x float64) (i int, w weights) {
	if !(x >= f.nodes[0].X && x <= f.nodes[len(f.nodes)-1].X) {
		return -1, w
	}
	i, exact := slices.BinarySearchFunc(f.nodes, x, func(n Node, x float64) int {
		switch {
		case n.X < x:
			return -1
		case n.X > x:
			return 1
		default:
			return 0
		}
	})
	if exact {
		w.value[0] = 1
		return i, w
	}
	i--
	h := f.nodes[i+1].X - f.nodes[i].X
	t := (x - f.nodes[i].X) / h
	s := 1 - t
	w.value = [2]float64{s * s * (1 + 2*t), t * t * (1 + 2*s)}
	w.slope = [2]float64{h * t * s * s, -h * t * t * s}
	return i, w
}
