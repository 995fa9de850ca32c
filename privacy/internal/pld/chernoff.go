package pld

import (
	"math"

	"github.com/dpareto/dpareto/privacy/internal/orders"
)

// Bound is the best Rényi bound of ε for some δ and number of runs. Its order
// minus 1 is close to the saddle point of the integral for δ(ε).
type Bound struct {
	Index    int     // of the tilt, order − 1
	Epsilon  float64 // least upper bound of ε, may be negative
	LogDelta float64
}

// Renyi returns the best Rényi bound. ok is false where no bound within the range
// of floats was found.
func (s *Sum) Renyi(runs, logDelta float64) (b Bound, ok bool) {
	const lowest = -50 * TiltGrid // tilts from 2⁻⁵⁰ to 2⁵⁰
	limit := 50 * TiltGrid
	largest := 0.0
	for _, p := range s.Parts {
		largest = math.Max(largest, p.Pair.Largest())
	}
	if !math.IsInf(largest, 1) {
		// Further up, e^{cL} loses digits, and the bound is the largest loss.
		digits := 1e8
		if _, atoms := s.Unit(); atoms {
			digits = 1e12 / runs
		}
		limit = min(limit, max(0, int(TiltGrid*math.Log2(digits/largest))))
	}
	at := func(index int) float64 {
		c := TiltAt(index)
		epsilon := runs*s.Cumulant(index)/c + orders.Surcharge(1+c, logDelta)
		if math.IsNaN(epsilon) || index < lowest || index > limit {
			return math.Inf(1)
		}
		return epsilon
	}
	// The bound falls and then rises with the tilt. The start is the best tilt of
	// a normal distribution of the same variance, or where E[e^{cL}] becomes large.
	start := -2 * logDelta / (runs * s.cumulantAt(1).k2)
	for _, p := range s.Parts {
		cliff := p.Pair.cliff()
		start = math.Min(start, cliff*cliff)
	}
	start = TiltGrid * 0.5 * math.Log2(start)
	index := int(math.Min(math.Max(lowest, start), float64(limit)))
	best := at(index)
	for stride := TiltGrid / 2; stride > 0; {
		if v := at(index - stride); v < best || math.IsInf(best, 1) && index > lowest {
			best, index = v, index-stride
		} else if v := at(index + stride); v < best {
			best, index = v, index+stride
		} else {
			stride /= 2
		}
	}
	return Bound{index, best, logDelta}, !math.IsInf(best, 0)
}

// Refine returns the least Rényi bound for tilts between the grid points next to b.index.
func (s *Sum) Refine(b Bound, runs float64) float64 {
	best := b.Epsilon
	center := TiltAt(b.Index)
	for width := 0.5 / TiltGrid; width > 1e-4; width /= 2 {
		for _, c := range [2]float64{center * math.Exp2(-width), center * math.Exp2(width)} {
			epsilon := runs*s.logMoment(c)/c + orders.Surcharge(1+c, b.LogDelta)
			if epsilon < best {
				best, center = epsilon, c
				break
			}
		}
	}
	return best
}

// Line is a vertical line in the plane of tilts with the part of the distribution
// of losses that matters for δ(ε) after tilting by it.
type Line struct {
	Index       int
	Left, Right float64 // extent around the ε of a bound
	Negligible  float64 // −log of the omitted mass, relative to δ
}

// Width returns the larger extent.
func (l Line) Width() float64 { return math.Max(l.Left, l.Right) }

// ChooseLine returns a line close to the saddle with a small width. Left of the
// saddle rare large losses matter less. Going there by a share x of the tilt c
// costs a factor e^{(xc)²·K”/2}, about δ^{−x²}, of accuracy.
func (s *Sum) ChooseLine(b Bound, runs, negligible float64) Line {
	best := s.LineAt(b.Index, b, runs, negligible)
	for shift := 4; shift <= TiltGrid; shift += 4 {
		x := 1 - TiltAt(-shift)
		if x*x*-b.LogDelta > 9 {
			break
		}
		if l := s.LineAt(b.Index-shift, b, runs, negligible); l.Width() < 0.9*best.Width() {
			best = l
		}
	}
	return best
}

// LineAt measures by how much to go left and right of b.epsilon until
// e^{c(x−ε)}·δ(x) is below e^{−negligible} of δ(ε), for the tilt c of the given index.
func (s *Sum) LineAt(index int, b Bound, runs, negligible float64) Line {
	c, k := TiltAt(index), s.Cumulant(index)
	// Markov's inequality: δ(x) <= P[L > x] <= E[e^{aL}]·e^{−ax} for every a >= 0.
	room := negligible + 3 + runs*k - c*b.Epsilon - b.LogDelta
	// Both bounds, convex functions of the distance d over d, fall and then rise.
	l := Line{Index: index, Right: math.Inf(1), Negligible: negligible}
	for at := index + 1; at <= index+8*TiltGrid; at = further(at, index) {
		d := TiltAt(at) - c
		w := (runs*(s.Cumulant(at)-k) - d*b.Epsilon + room) / d
		if !(w < l.Right) {
			break
		}
		l.Right = w
	}
	l.Left = (-runs*k + c*b.Epsilon + room) / c // d = c, where K = 0
	nearer := math.Inf(1)
	for at := index - 1; at >= index-8*TiltGrid; at = -further(-at, -index) {
		d := c - TiltAt(at)
		w := (runs*(s.Cumulant(at)-k) + d*b.Epsilon + room) / d
		if !(w < nearer) {
			break
		}
		nearer = w
		l.Left = math.Min(l.Left, w)
	}
	return l
}

// further returns the tilt to try after at > from: beyond the next two, one that other lines
// try too.
func further(at, from int) int {
	switch d := at - from; {
	case d < 2:
		return at + 1
	case d < TiltGrid:
		return (at + 4) &^ 3
	default:
		return (at + TiltGrid) &^ (TiltGrid - 1)
	}
}
