package suggest

import (
	"cmp"
	"math"

	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/pareto"
)

const (
	// directions is the number of random rays along which fronts are seen that have
	// too many boxes.
	directions = 16

	// drawDirections is that for a single draw of a front, the draws taking turns.
	drawDirections = 4

	// maxBoxes bounds the boxes of all draws of a front together; see draws.
	maxBoxes = 3000

	// fewestDraws is the number of draws to which the number of boxes can reduce them.
	fewestDraws = 5
)

// mostPoints is the number of points of a front, by the number of objectives, up to
// which it is divided into boxes. In four objectives 40 points leave 260 of them. In
// five they are many soon, and on DTLZ2 (80 evaluations, three seeds each) the random
// rays, which look elsewhere every time, led to larger hypervolumes than boxes: 0.94
// on average against 0.75, and in four objectives 0.90 against 0.82.
var mostPoints = []int{3: 500, 4: 40}

// target is what a run is to improve: one draw of the front, divided into boxes or
// seen along random directions (acquisition.LogScalarised).
type target struct {
	front *pareto.Front
	rays  *acquisition.Scalarisation // nil with boxes
}

// target returns that of a front.
func (s *surface) target(points [][]float64) target { return s.targetAlong(points, s.rays) }

// drawnTarget returns that of a draw of the front after the first.
func (s *surface) drawnTarget(points [][]float64, draw int) target {
	if s.rays == nil {
		return s.target(points)
	}
	first := draw * drawDirections % directions
	return s.targetAlong(points, s.rays[first:first+drawDirections])
}

func (s *surface) targetAlong(points, rays [][]float64) target {
	t := target{front: pareto.NewFront(points, s.reference())}
	if rays != nil {
		t.rays = acquisition.NewScalarisation(t.front.Points(), s.reference(), s.scales, rays)
	}
	return t
}

// improvement returns by how much the hypervolume would grow, or an estimate.
func (t target) improvement(v []float64) float64 {
	if t.rays == nil {
		return t.front.Improvement(v)
	}
	if !t.front.Improves(v) {
		return 0
	}
	return math.Max(t.rays.Improvement(v), math.SmallestNonzeroFloat64) // perhaps between the rays
}

// logExpected returns the logarithm of the expected improvement and its
// derivatives; see [acquisition.LogEHVI].
func (t target) logExpected(laws []acquisition.Law, parts []acquisition.Partial) float64 {
	if t.rays == nil {
		return acquisition.LogEHVI(t.front, laws, parts)
	}
	return acquisition.LogScalarised(t.rays, laws, parts)
}

// chooseRays decides whether fronts are seen along directions, and draws these. It
// is given the medians of the configurations that count.
func (s *surface) chooseRays(medians [][]float64, seed uint64, number int64) {
	m := len(s.known)
	front := pareto.NewFront(medians, s.reference())
	if m < 3 || m < len(mostPoints) && front.Len() <= mostPoints[m] {
		return
	}
	rng := newRand(seed, number, streamRays)
	s.rays = make([][]float64, directions)
	for i := range s.rays {
		u, square := make([]float64, m), 0.0
		for j := range u {
			u[j] = math.Abs(rng.NormFloat64())
			square += u[j] * u[j]
		}
		for j := range u {
			u[j] /= math.Sqrt(square)
		}
		s.rays[i] = u
	}
	// The box that the front spans is seen as a cube. Without a front it is that
	// between the reference and what comes nearest.
	if front.Len() > 0 {
		medians = front.Points()
	}
	s.scales = make([]float64, m)
	for j, r := range s.reference() {
		best := math.Inf(1)
		for _, v := range medians {
			best = math.Min(best, v[j])
		}
		s.scales[j] = math.Abs(r - best)
		if math.IsInf(best, 0) || s.scales[j] == 0 {
			s.scales[j] = cmp.Or(math.Abs(r), 1)
		}
	}
}

// draws returns the number of draws of the front besides that of the medians. With
// many boxes it is smaller.
func (s *surface) draws(samples int, medians target) int {
	if s.rays != nil || len(s.known) < 4 {
		return samples
	}
	return min(samples, max(fewestDraws, maxBoxes/len(medians.front.Cells())))
}
