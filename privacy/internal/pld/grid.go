package pld

import (
	"math"

	"github.com/dpareto/dpareto/privacy/meter"
)

// Grid is a distribution of losses on the points offset + (first + i)·step, i >= 0.
type Grid struct {
	First        int
	Step, Offset float64
	Mass         []float64
}

// DensityPair is a Pair whose losses have a density, but for an atom at center.
type DensityPair interface {
	// mass returns the mass of both distributions with a loss in (from, to].
	mass(from, to float64) (upper, lower float64)
	// Center returns a loss in the bulk of the distribution. Where a grid is much coarser than the bulk,
	// it matters little only if it has a point there.
	Center() float64
	// extent returns losses beyond which there is hardly any mass.
	extent() (lowest, highest float64)
}

// discretise rounds the losses of p to a grid, up for side > 0 and down for side < 0.
func discretise(p DensityPair, step, bottom, side float64, w *meter.Work) (g Grid, ok bool) {
	lowest, highest := p.extent()
	lowest = math.Max(lowest, bottom)
	highest = math.Max(lowest, highest)
	g = Grid{Step: step, Offset: p.Center()}
	first, last := math.Floor((lowest-g.Offset)/step)-1, math.Ceil((highest-g.Offset)/step)+1
	if !(last-first < 2*MaxGrid) || math.Abs(first) > math.MaxInt32 {
		return Grid{}, false
	}
	g.First, g.Mass = int(first), make([]float64, int(last-first)+1)
	if side > 0 {
		g.connect(p, w)
	} else {
		g.merge(p, lowest, highest, w)
	}
	return g, true
}

// leastMass is a mass below which floats lose digits.
const leastMass = 1e-290

// At returns the loss of a grid point.
func (g *Grid) At(index int) float64 { return g.Offset + float64(index)*g.Step }

// put adds a mass at a grid point, or at the lowest one if that is below it.
func (g *Grid) put(index int, mass float64) { g.Mass[max(0, index-g.First)] += mass }

// connect rounds losses pessimistically: the mass of each cell is shared between its two ends so that
// both distributions keep their mass ("connect the dots", Doroshenko, Ghazi, Kamath, Kumar and
// Manurangsi, 2022). The discrete pair dominates p.
func (g *Grid) connect(p DensityPair, w *meter.Work) {
	edge := math.Inf(-1)
	for i := range g.Mass {
		w.Add(pointWork)
		index := g.First + i
		upper, lower := p.mass(edge, g.At(index))
		edge = g.At(index)
		right := upper // all below the first point moves up to it, and what is not in the range of floats
		if below := math.Exp(g.At(index - 1)); i > 0 && lower > leastMass && !math.IsInf(below, 1) {
			right = math.Min(math.Max((upper-below*lower)/-math.Expm1(-g.Step), 0), upper)
			g.Mass[i-1] += upper - right
		}
		g.Mass[i] += right
	}
	upper, _ := p.mass(edge, math.Inf(1)) // by rounding errors
	g.Mass[len(g.Mass)-1] += upper
}

// merge rounds losses optimistically: it cuts their range into cells, whose two masses say no more than
// in which cell a loss is. That is a post-processing, so that p dominates it. Cells are cut so that the logarithm
// of the quotient of their masses, between the losses at their ends, is at a grid point, or else rounded down to one.
//
// Cells are cut from both ends of the range, since densities rise towards the middle: there, an edge close to the
// next grid point is always found. The cell in the middle is what remains.
func (g *Grid) merge(p DensityPair, lowest, highest float64, w *meter.Work) {
	center := p.Center()
	if upper, lower := p.mass(center-0.5*g.Step, center+g.Step); upper > leastMass && lower > leastMass {
		g.Offset = math.Log(upper / lower)
	}
	outside := 0.0
	right := highest
	for index := len(g.Mass) - 1 + g.First; index > 0; index-- {
		w.Add(4 * pointWork)
		if right > g.At(index) {
			to, mass, _ := g.cut(p, right, index, -1)
			g.put(index, mass)
			outside += mass
			right = to
		}
	}
	left := lowest
	for index := g.First + 1; index < 0; index++ {
		w.Add(4 * pointWork)
		if left < g.At(index) {
			to, mass, ok := g.cut(p, left, index, 1)
			if ok {
				g.put(index, mass)
			} else {
				g.put(index-1, mass)
			}
			outside += mass
			left = to
		}
	}
	upper, lower := p.mass(left, right)
	if !(upper > leastMass && lower > leastMass) {
		return
	}
	excess := math.Log(upper/lower) - g.At(0)
	if excess < 0 {
		// Either all losses are rounded down a little more, or a part of the cell to the point below.
		to, mass, ok := g.cut(p, right, 0, -1)
		if !ok || -excess*outside < g.Step*(upper-mass) {
			g.Offset += excess
		} else {
			rest, _ := p.mass(left, to)
			g.put(-1, rest)
			upper = mass
		}
	}
	g.put(0, upper)
}

// cut returns the other end of the cell from an edge, above it for side > 0, whose quotient of masses belongs to
// the grid point with the given index, and the mass of the cell. ok is false where the quotient is below that.
func (g *Grid) cut(p DensityPair, edge float64, index int, side float64) (to, mass float64, ok bool) {
	target := g.At(index)
	near, far := target, target+side*g.Step
	excess := func(to float64) (excess, mass float64) {
		from := edge
		if side < 0 {
			from, to = to, from
		}
		upper, lower := p.mass(from, to)
		if !(upper > leastMass && lower > leastMass) {
			return math.NaN(), 0
		}
		return math.Log(upper/lower) - target, upper
	}
	tolerance := 1e-4 * g.Step
	best := math.NaN()
	to = 2*target - edge // if the density were constant
	for range 12 {
		e, m := excess(to)
		if math.IsNaN(e) {
			return target + 0.5*side*g.Step, 0, false
		}
		if e >= 0 {
			best, mass = to, m
			if e <= tolerance {
				break
			}
		}
		// The excess rises with the end, by about half of it.
		if (e >= 0) == (side > 0) {
			far = to
		} else {
			near = to
		}
		next := to - 2*(e-0.5*tolerance)
		if !((next-near)*side > 0 && (far-next)*side >= 0) {
			next = 0.5 * (near + far)
		}
		if next == to {
			break
		}
		to = next
	}
	if !math.IsNaN(best) {
		return best, mass, true
	}
	_, mass = excess(far)
	return far, mass, false
}

// add adds an atom for side > 0 at the lowest point if it is below, at a grid point if it is on one, and
// otherwise shared between its neighbours so that both distributions keep their mass. For side < 0 it is rounded down.
func (g *Grid) add(loss, mass, side float64) {
	i := (loss - g.Offset) / g.Step
	nearest, left := math.Round(i), math.Floor(i)
	switch {
	case i <= float64(g.First):
		if side > 0 || i == float64(g.First) {
			g.Mass[0] += mass
		}
	case math.Abs(i-nearest) <= 0x1p-50*math.Abs(i):
		g.put(int(nearest), mass)
	case side < 0:
		g.put(int(left), mass)
	default:
		right := mass * math.Expm1(g.At(int(left))-loss) / math.Expm1(-g.Step)
		g.put(int(left), mass-right)
		g.put(int(left)+1, right)
	}
}

// pointWork is the number of operations that the mass next to a grid point takes.
const pointWork = 10

// MaxGrid is the largest number of points of the grid of a pair, over 2, and of a sum.
const MaxGrid = 1 << 20

// LogMoment returns log E[e^{cL}] of a grid.
func (g *Grid) LogMoment(c float64) float64 {
	top := math.Inf(-1)
	for i, m := range g.Mass {
		if math.IsNaN(m) {
			return m
		}
		if m > 0 {
			top = math.Max(top, math.Log(m)+c*g.At(g.First+i))
		}
	}
	var sum float64
	for i, m := range g.Mass {
		if m > 0 {
			sum += math.Exp(math.Log(m) + c*g.At(g.First+i) - top)
		}
	}
	return top + math.Log(sum)
}
