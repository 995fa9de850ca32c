package composition

import (
	"math"
	"slices"

	"github.com/dpareto/dpareto/privacy/internal/convolution"
	"github.com/dpareto/dpareto/privacy/internal/pld"
	"github.com/dpareto/dpareto/privacy/internal/profile"
)

// GridPoints returns points of the profiles of all upper directions.
func (c *Losses) GridPoints(runs, logDelta float64) (known [][]profile.Point, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sum := range c.upper {
		points, ok := gridPoints(sum, runs, logDelta)
		if !ok {
			return nil, false
		}
		known = append(known, points)
	}
	return known, true
}

// gridPoints returns points of the profile of a number of runs from δ on, in rising order of ε, from two pessimistic
// grids: what tilts for a small δ leaves no digits of one near 1. ok is false for sums that have a closed form, and where
// a grid fails.
func gridPoints(s *pld.Sum, runs, logDelta float64) (points []profile.Point, ok bool) {
	if _, normal := normalMu(s, runs); normal || s.Infinite() > 0 || len(s.Parts) == 1 && runs*s.Parts[0].Count == 1 {
		return nil, false
	}
	spacing := math.Sqrt(-logDelta) / (2 * profile.Nodes)
	for _, from := range [...]float64{logDelta, logDelta / 3} {
		t := s.Truncate(runs, from-convolution.Spill)
		b, ok := t.Renyi(runs, from)
		if !ok || !(b.Epsilon > 0) {
			return nil, false
		}
		g, ok := convolution.Compose(t, b, runs, convolution.Mesh{Excess: 3e-4, Most: pld.MaxGrid}, 0, 1)
		if !ok {
			return nil, false
		}
		g.Infinite += runs * t.Infinite()
		points = slices.DeleteFunc(points, func(p profile.Point) bool { return p.Delta >= math.Exp(from) })
		points = appendPoints(g, points, math.Exp(from), spacing)
	}
	slices.Reverse(points)
	return points, true
}

// appendPoints appends points of the profile from δ on, in falling order of ε.
func appendPoints(g convolution.Grid, points []profile.Point, delta, spacing float64) []profile.Point {
	shrink := math.Exp(-g.Step)
	above, lower := 0.0, 0.0 // mass above a loss l, and Σ mass·e^{l − loss} over it
	for i := g.Size - 1; i >= 0 && g.At(i) >= 0; i-- {
		at := g.At(i) + g.Rounding
		n := len(points)
		if d := math.Min(1, g.Infinite+above-lower); d >= delta && (n == 0 || at < points[n-1].Epsilon && d >= points[n-1].Delta) {
			r := math.Sqrt(-math.Log(d))
			if n == 0 || points[n-1].R-r >= spacing || g.At(i) < g.Step {
				points = append(points, profile.Point{R: r, Epsilon: at, Delta: d})
			}
		}
		m := g.Mass(i)
		above, lower = above+m, shrink*(lower+m)
	}
	return points
}
