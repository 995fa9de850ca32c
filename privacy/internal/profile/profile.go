package profile

import (
	"cmp"
	"math"
	"slices"
)

// Nodes is the number of values of ε that a profile is known by. Twice as many lower
// the ε of a selection by some 1e-4 of it.
const Nodes = 160

// Points returns points of a profile in rising order of ε, the first with ε = 0, at equal
// distances of √log(1/δ), in which ε is nearly linear.
func Points(direction func(logDelta float64) (float64, error), least float64, nodes int) ([]Point, error) {
	zero, furthest := 0.0, math.Sqrt(-math.Log(least))
	positive := furthest
	for range 16 { // between δ with ε = 0 and others
		r := 0.5 * (zero + positive)
		epsilon, err := direction(-r * r)
		if err != nil {
			return nil, err
		}
		if epsilon > 0 {
			positive = r
		} else {
			zero = r
		}
	}
	points := []Point{{zero, 0, math.Exp(-zero * zero)}}
	for i := range nodes + 1 {
		r := positive + (furthest-positive)*float64(i)/float64(nodes)
		epsilon, err := direction(-r * r)
		if err != nil {
			return nil, err
		}
		if math.IsInf(epsilon, 1) {
			break
		}
		points = append(points, Point{r, epsilon, math.Exp(-r * r)})
	}
	return points, nil
}

// LowerHull returns the points on the lower convex hull of δ over e^ε. A point above the
// profile only raises the hull, which stays above it.
func LowerHull(points []Point) []Point {
	sorted := slices.SortedFunc(slices.Values(points), func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Epsilon, b.Epsilon), cmp.Compare(a.Delta, b.Delta))
	})
	var hull []Point
	for _, p := range sorted {
		if n := len(hull); n > 0 && p.Delta >= hull[n-1].Delta { // δ does not rise
			continue
		}
		for n := len(hull); n > 1 && fallTo(hull[n-2], hull[n-1]) <= fallFrom(hull[n-1], p); n-- {
			hull = hull[:n-1]
		}
		hull = append(hull, p)
	}
	return hull
}

// FallBetween returns by how much δ falls from a to b per unit of e^ε, 0 where that is below the range of floats.
func FallBetween(a, b Point) float64 { return math.Exp(-a.Epsilon) * fallFrom(a, b) }

// fallFrom returns FallBetween times e^ε of a.
func fallFrom(a, b Point) float64 {
	return (a.Delta - b.Delta) / math.Expm1(b.Epsilon-a.Epsilon)
}

// fallTo returns FallBetween times e^ε of b.
func fallTo(a, b Point) float64 { return (a.Delta - b.Delta) / -math.Expm1(a.Epsilon-b.Epsilon) }

// deltaAtZero bounds δ(0) by a point.
func (p Point) deltaAtZero() float64 {
	if p.Epsilon == 0 {
		return p.Delta
	}
	return 1
}

// LeastDelta takes the place of smaller false positive rates than itself, except 0.
const LeastDelta = 1e-300

// Point has ε >= 0 and δ = e^{−r²}. In r, ε is nearly linear.
type Point struct{ R, Epsilon, Delta float64 }
