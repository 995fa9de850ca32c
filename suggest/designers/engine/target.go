package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/pareto"
)

const (
	// directions is the number of random rays along which fronts with too many boxes are
	// seen.
	directions = 16

	// drawDirections is the number of rays for a single draw of a front, the draws taking
	// turns.
	drawDirections = 4

	// maxBoxes bounds the boxes of all draws of a front together; see draws.
	maxBoxes = 3000

	// fewestDraws is the number of draws that are made however many the boxes.
	fewestDraws = 5
)

// mostPoints is the number of points of a front, by the number of objectives, up to
// which it is divided into boxes. In four objectives 40 points leave 260 boxes; in
// five boxes soon are many. On DTLZ2 (80 evaluations, three seeds each) random
// rays, drawn anew for every suggestion, led to larger hypervolumes than boxes: 0.94
// on average against 0.75 in five objectives, and 0.90 against 0.82 in four.
var mostPoints = []int{3: 500, 4: 40}

// target is one draw of the front, which a run is to improve. It is divided into boxes or
// seen along random directions (acquisition.LogScalarised).
type target struct {
	front *pareto.Front
	rays  *acquisition.Scalarisation // nil with boxes
}

// view is how fronts are seen: divided into boxes, or along rays if there are any.
type view struct {
	reference []float64
	constants [][]float64 // costs that are on every front
	rays      [][]float64
	scales    []float64 // of the rays, by objective
}

// newView returns the view of fronts, given the medians of the configurations that count.
func newView(p *suggest.Problem, medians [][]float64, seed uint64, number int64) view {
	v := view{reference: p.ReferenceCosts(), constants: p.ConstantCosts()}
	m := len(v.reference)
	medians = slices.Concat(v.constants, medians)
	front := pareto.NewFront(medians, v.reference)
	if m < 3 || m < len(mostPoints) && front.Len() <= mostPoints[m] {
		return v
	}
	rng := sample.Stream(seed, number, sample.Rays)
	v.rays = make([][]float64, directions)
	for i := range v.rays {
		u, square := make([]float64, m), 0.0
		for j := range u {
			u[j] = math.Abs(rng.NormFloat64())
			square += u[j] * u[j]
		}
		for j := range u {
			u[j] /= math.Sqrt(square)
		}
		v.rays[i] = u
	}
	// The box that the front spans is seen as a cube. Without a front it is the box
	// between the reference and what comes nearest.
	if front.Len() > 0 {
		medians = front.Points()
	}
	v.scales = make([]float64, m)
	for j, r := range v.reference {
		best := math.Inf(1)
		for _, point := range medians {
			best = math.Min(best, point[j])
		}
		v.scales[j] = math.Abs(r - best)
		if math.IsInf(best, 0) || v.scales[j] == 0 {
			v.scales[j] = cmp.Or(math.Abs(r), 1)
		}
	}
	return v
}

// target returns a front as a target.
func (v *view) target(points [][]float64) target { return v.along(points, v.rays) }

// drawnTarget returns a draw of the front, other than the first, as a target.
func (v *view) drawnTarget(points [][]float64, draw int) target {
	if v.rays == nil {
		return v.target(points)
	}
	first := draw * drawDirections % directions
	return v.along(points, v.rays[first:first+drawDirections])
}

func (v *view) along(points, rays [][]float64) target {
	t := target{front: pareto.NewFront(slices.Concat(v.constants, points), v.reference)}
	if rays != nil {
		t.rays = acquisition.NewScalarisation(t.front.Points(), v.reference, v.scales, rays)
	}
	return t
}

// draws returns the number of draws of the front besides its medians, given the wanted
// number and the target of the medians. With many boxes it is smaller.
func (v *view) draws(samples int, medians target) int {
	if v.rays != nil || len(v.reference) < 4 {
		return samples
	}
	return min(samples, max(fewestDraws, maxBoxes/len(medians.front.Cells())))
}

// improvement returns by how much the hypervolume would grow, or an estimate.
func (t target) improvement(v []float64) float64 {
	if t.rays == nil {
		return t.front.Improvement(v)
	}
	if !t.front.Improves(v) {
		return 0
	}
	return math.Max(t.rays.Improvement(v), math.SmallestNonzeroFloat64) // it may lie between the rays
}

// logExpected returns the logarithm of the expected improvement and its
// derivatives; see [acquisition.LogEHVI].
func (t target) logExpected(distributions []acquisition.Distribution, parts []acquisition.Partial) float64 {
	if t.rays == nil {
		return acquisition.LogEHVI(t.front, distributions, parts)
	}
	return acquisition.LogScalarised(t.rays, distributions, parts)
}
