package pld

import (
	"math"
	"math/bits"
	"sort"

	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/meter"
)

// ratios is the distribution of a likelihood ratio S = dP/dQ under Q, on finitely many points, as a bound of
// another one. With loss log S under P and −log S under Q it gives both directions of a pair:
//
//	δ(ε) = E_Q[(S − e^ε)₊] and δ(ε) = E_Q[(1 − e^ε·S)₊].
//
// Both are expectations of convex functions of S. If S is replaced by an S' with E f(S) <= E f(S') for every convex
// f (convex order, which needs E S = E S'), both δ rise, for every ε. Two operations keep the order, since they leave
// a convex function of each independent argument, given the others: means of independent ratios, which random
// allocation needs, and products, which are composition. Therefore
//
//   - an atom may be split between its neighbours on a grid so that the mean stays: by Jensen's inequality E f rises
//     (upper bound);
//   - atoms may be merged into their conditional mean: E f falls (lower bound).
//
// S' need not be a probability distribution: for f >= 0, more mass at any point raises E f, and less lowers it. That
// is how rounding errors are covered. Upper bounds add to both ends of a cell what rounding may have taken off, lower
// bounds keep track of massError. The third error is one of position: a sum of two ratios may end up in the cell
// next to its own. Moving every ratio by a factor 1 ± lossError covers it, since means and products of moved ratios
// are moved by at most the largest, and the sum, of their errors.
type ratios struct {
	s    []float64 // rising, from 0 on
	q, p []float64 // masses of Q and P = s·Q; either may underflow where the other does not
	// infinite is the mass of P where S is infinite.
	infinite float64
	spread   float64 // about the standard deviation of log S
	// massError bounds the relative error of masses of a lower bound, which is 0 in upper bounds.
	massError float64
	// lossError bounds the error of log s.
	lossError float64
	grid      ratioGrid
}

// ratioGrid says on which points a ratio is put.
type ratioGrid struct {
	points  int
	reach   float64 // in standard deviations of a lognormal ratio; beyond, S is 0 or infinite
	trimmed float64 // a mass that may be moved to 0 and infinity
	side    float64 // +1 for an upper bound, −1 for a lower one
	work    *meter.Work
}

// ratioStretch is by how much the spacing of points around 1 exceeds the spacing of points that are
// equidistant in arsinh of log s over its standard deviation: tails matter more.
const ratioStretch = 2

// Errors.
const (
	ratioRounding = 0x1p-51 // of a position
	// leastRatioMass is a mass below which lower bounds leave points out, so that products of two of the others, at
	// least one of them large, keep their digits.
	leastRatioMass = 1e-290
	// lostMass bounds what underflow may take off all masses of an operation: N² products and sums of them lose at
	// most 2⁻¹⁰⁷⁴ each, but for atoms of Q below 2⁻¹⁰²² on large ratios, which lose N·2⁻¹⁰²².
	lostMass = 1e-304
	// largestLog bounds |log s|.
	largestLog = 690
)

// ratioCells collects the masses of products of atoms by the cells between points of a grid.
type ratioCells struct {
	g []float64 // 0, points, +Inf; one of them is 1
	// Of the cell [g_k, g_{k+1}): the mass of Q and P/g_{k+1} if g_{k+1} <= 1, otherwise g_k·Q and P. The quotients
	// of both are between g_k/g_{k+1} and 1.
	q, p  []float64
	rough []float64 // bounds of further relative errors of the masses of cells, or nil
	work  *meter.Work
}

// error returns a bound of the relative error of the masses of a cell.
func (c *ratioCells) error(k int, rounding float64) float64 {
	if c.rough == nil {
		return rounding
	}
	return rounding + c.rough[k]
}

// newRatioCells returns empty cells on points exp(d·sinh u), for equidistant u, from e^lowest to e^highest.
func newRatioCells(o ratioGrid, d, lowest, highest float64) *ratioCells {
	d *= ratioStretch
	points := o.points
	lowest, highest = math.Max(math.Min(lowest, -d), -largestLog), math.Min(math.Max(highest, d), largestLog)
	below, above := math.Asinh(-lowest/d), math.Asinh(highest/d)
	step := (below + above) / float64(points)
	n, m := int(math.Ceil(below/step)), int(math.Ceil(above/step))
	g := make([]float64, 1, n+m+3)
	for i := -n; i <= m; i++ {
		switch {
		case i < 0:
			g = append(g, math.Exp(-d*math.Sinh(below*float64(-i)/float64(n))))
		case i == 0:
			g = append(g, 1)
		default:
			g = append(g, math.Exp(d*math.Sinh(above*float64(i)/float64(m))))
		}
	}
	g = append(g, math.Inf(1))
	return &ratioCells{g: g, q: make([]float64, len(g)-1), p: make([]float64, len(g)-1), work: o.work}
}

// find returns the cell of x.
func (c *ratioCells) find(x float64) int {
	return sort.Search(len(c.g)-2, func(k int) bool { return c.g[k+1] > x })
}

// advance returns the cell of x, which is not before k.
func (c *ratioCells) advance(k int, x float64) int {
	for k < len(c.g)-2 && c.g[k+1] <= x {
		k++
	}
	return k
}

// row is an atom of a ratio with the atoms of another ratio that are at most as large, and how often they are taken.
type row struct {
	of          *ratios
	index       int
	others      *ratios
	from, to    int
	times       float64
	alpha, beta float64 // weights in a mean, of the atom and of the others
}

// addMeans adds alpha·s_i + beta·s_j.
func (c *ratioCells) addMeans(r row) {
	si, qi, pi := r.of.s[r.index], r.of.q[r.index]*r.times, r.of.p[r.index]*r.times
	s, q, p := r.others.s[r.from:r.to], r.others.q[r.from:r.to], r.others.p[r.from:r.to]
	alpha, beta, n := r.alpha, r.beta, len(s)
	c.work.Add(n / 8)
	k := c.find(alpha*si + beta*s[0])
	for j := 0; j < n; {
		k = c.advance(k, alpha*si+beta*s[j])
		limit := (c.g[k+1] - alpha*si) / beta
		sumQ, sumP := q[j], p[j]
		for j++; j < n && s[j] < limit; j++ {
			sumQ += q[j]
			sumP += p[j]
		}
		if next := c.g[k+1]; next <= 1 {
			c.q[k] += qi * sumQ
			c.p[k] += qi * (alpha*(si/next)*sumQ + beta*(sumP/next))
		} else {
			c.q[k] += pi * (c.g[k] / si) * sumQ
			c.p[k] += alpha*pi*sumQ + beta*qi*sumP
		}
	}
}

// addProducts adds s_i·s_j.
func (c *ratioCells) addProducts(r row) {
	si, qi, pi := r.of.s[r.index], r.of.q[r.index]*r.times, r.of.p[r.index]*r.times
	s, q, p := r.others.s[r.from:r.to], r.others.q[r.from:r.to], r.others.p[r.from:r.to]
	n := len(s)
	c.work.Add(n / 8)
	if si == 0 {
		for _, m := range q {
			c.q[0] += qi * m
		}
		return
	}
	k := c.find(si * s[0])
	for j := 0; j < n; {
		k = c.advance(k, si*s[j])
		limit := c.g[k+1] / si
		sumQ, sumP := q[j], p[j]
		for j++; j < n && s[j] < limit; j++ {
			sumQ += q[j]
			sumP += p[j]
		}
		switch next := c.g[k+1]; {
		case next > 1:
			c.q[k] += pi * (c.g[k] / si) * sumQ
			c.p[k] += pi * sumP
		case si < 1:
			c.q[k] += qi * sumQ
			c.p[k] += qi * (si / next) * sumP
		default:
			c.q[k] += qi * sumQ
			c.p[k] += pi * (sumP / next)
		}
	}
}

// pairsOf calls add for every pair of an atom of a and one of b, in rows.
func pairsOf(a, b *ratios, alpha, beta float64, add func(r row)) {
	if a == b {
		for i := range a.s {
			if i > 0 {
				add(row{a, i, a, 0, i, 2, alpha, beta})
			}
			add(row{a, i, a, i, i + 1, 1, alpha, beta})
		}
		return
	}
	n := 0
	for i := range a.s {
		for n < len(b.s) && b.s[n] <= a.s[i] {
			n++
		}
		if n > 0 {
			add(row{a, i, b, 0, n, 1, alpha, beta})
		}
	}
	n = 0
	for j := range b.s {
		for n < len(a.s) && a.s[n] < b.s[j] {
			n++
		}
		if n > 0 {
			add(row{b, j, a, 0, n, 1, beta, alpha})
		}
	}
}

// meanOf returns the mean of count independent ratios whose mean is a, and other ones whose mean is b; as many if
// a and b are the same.
func meanOf(a *ratios, count float64, b *ratios, other, spread float64) *ratios {
	alpha, beta := count/(count+other), other/(count+other)
	low, high := math.Log(alpha*a.lowest()+beta*b.lowest()), math.Log(math.Max(a.highest(), b.highest()))
	c := newRatioCells(a.grid, spread, low, high)
	pairsOf(a, b, alpha, beta, c.addMeans)
	masses := a.massError + b.massError
	r := &ratios{
		infinite: (alpha*a.infinite*b.total(b.q) + beta*b.infinite*a.total(a.q)) * (1 + c.rounding(a, b)),
		spread:   spread, grid: a.grid, massError: masses,
		lossError: math.Max(a.lossError, b.lossError) + ratioRounding,
	}
	return c.finish(r, c.rounding(a, b))
}

// productOf returns the product of independent ratios.
func productOf(a, b *ratios) *ratios {
	low := math.Log(math.Max(a.lowest(), math.SmallestNonzeroFloat64)) + math.Log(math.Max(b.lowest(), math.SmallestNonzeroFloat64))
	high := math.Log(a.highest()) + math.Log(b.highest())
	spread := math.Hypot(a.spread, b.spread)
	c := newRatioCells(a.grid, spread, low, high)
	pairsOf(a, b, 1, 1, c.addProducts)
	r := &ratios{
		infinite: (a.infinite*b.total(b.p) + b.infinite*a.total(a.p) + a.infinite*b.infinite) * (1 + c.rounding(a, b)),
		spread:   spread, grid: a.grid, massError: a.massError + b.massError,
		lossError: a.lossError + b.lossError + ratioRounding,
	}
	return c.finish(r, c.rounding(a, b))
}

// rounding bounds the relative error of the masses of cells: sums of positive products along rows, and over rows.
func (c *ratioCells) rounding(a, b *ratios) float64 {
	return float64(2*len(a.s)+2*len(b.s)+32) * 0x1p-53
}

// lowest returns the lowest positive point.
func (r *ratios) lowest() float64 {
	if r.s[0] == 0 && len(r.s) > 1 {
		return r.s[1]
	}
	return r.s[0]
}

// highest returns the highest point.
func (r *ratios) highest() float64 { return r.s[len(r.s)-1] }

func (r *ratios) total(masses []float64) float64 {
	sum := 0.0
	for _, m := range masses {
		sum += m
	}
	return sum
}

// finish distributes the masses of cells to points, given a bound of their relative error.
func (c *ratioCells) finish(r *ratios, rounding float64) *ratios {
	if r.grid.side < 0 {
		return c.merge(r, rounding)
	}
	return c.split(r, rounding)
}

// split shares the mass of each cell between its ends.
func (c *ratioCells) split(r *ratios, rounding float64) *ratios {
	n := len(c.g) - 2 // the last point
	masses := make([]float64, n+1)
	top := 0.0
	for k := range c.q {
		q, p := c.q[k], c.p[k]
		if q == 0 && p == 0 {
			continue
		}
		relative := c.error(k, rounding)
		if k == n { // above the last point: g·Q stays there
			masses[k] += q * (1 + 4*relative)
			top = math.Max(0, p-q) + 4*relative*p
			continue
		}
		next := c.g[k+1]
		width := (next - c.g[k]) / next
		if next <= 1 { // masses of Q
			e := 4 * relative * q / width
			right := math.Min(math.Max((p-(1-width)*q)/width, 0), q)
			masses[k] += q - right + e
			masses[k+1] += right + e
		} else { // of P
			e := 4 * relative * p / width
			right := math.Min(math.Max((p-q)/width, 0), p)
			masses[k] += math.Max(0, q-(1-width)*right) + e
			masses[k+1] += right + e
		}
	}
	r.infinite += top + lostMass
	for k, m := range masses {
		if m == 0 {
			continue
		}
		m *= 1 + c.error(k, rounding)
		if k > 0 {
			m *= 1 + c.error(k-1, rounding)
		}
		s := c.g[k]
		r.s = append(r.s, s)
		if s <= 1 {
			r.q, r.p = append(r.q, m), append(r.p, m*s)
		} else {
			r.q, r.p = append(r.q, m/s), append(r.p, m)
		}
	}
	r.trim()
	return r
}

// trim moves ends with hardly any mass to 0 and to infinity: there all f are at least as large but those that
// rise, for which the mass of P is added as well.
func (r *ratios) trim() {
	zero, infinite := 0.0, 0.0
	first, last := 0, len(r.s)
	for ; first+1 < last && zero+r.q[first] < r.grid.trimmed; first++ {
		zero += r.q[first]
		infinite += r.p[first]
	}
	for ; last-1 > first && infinite+r.p[last-1] < r.grid.trimmed; last-- {
		infinite += r.p[last-1]
		zero += r.q[last-1]
	}
	r.infinite += infinite
	r.s, r.q, r.p = r.s[first:last], r.q[first:last], r.p[first:last]
	if r.s[0] == 0 {
		r.q[0] += zero
		return
	}
	r.s = append([]float64{0}, r.s...)
	r.q = append([]float64{zero + lostMass}, r.q...)
	r.p = append([]float64{0}, r.p...)
}

// merge puts the mass of each cell at its mean.
func (c *ratioCells) merge(r *ratios, rounding float64) *ratios {
	for k := range c.rough {
		if c.q[k] > leastRatioMass && c.p[k] > leastRatioMass {
			rounding = math.Max(rounding, c.rough[k]+lognormalRounding)
		}
	}
	// The masses of a mean have twice the errors of the masses, and so has the quotient.
	r.lossError += 2*r.massError + 3*rounding
	r.massError += 2 * rounding
	r.infinite = 0
	for k := range c.q {
		q, p := c.q[k], c.p[k]
		if !(q > leastRatioMass && p > leastRatioMass) {
			continue
		}
		var s float64
		if next := c.g[k+1]; next <= 1 {
			s = math.Min(math.Max(p/q*next, c.g[k]), next)
			p = q * s
			if p < leastRatioMass {
				continue
			}
		} else {
			s = math.Max(p/q*c.g[k], c.g[k])
			if math.IsInf(s, 1) {
				continue
			}
			q = p / s
		}
		r.s, r.q, r.p = append(r.s, s), append(r.q, q), append(r.p, p)
	}
	return r
}

// lognormalRounding bounds the relative error of Φ(b) − Φ(a) for given a and b, apart from the error of exp(−x²/2).
const lognormalRounding = 4e-14

// lognormal returns the ratio of N(1, σ²) and N(0, σ²): log S is normal with variance v = 1/σ² and mean −v/2
// under Q and v/2 under P.
func lognormal(sigma float64, o ratioGrid) *ratios {
	v := 1 / (sigma * sigma)
	reach := 0.5*v + o.reach/sigma
	c := newRatioCells(o, 1/sigma, -reach, reach)
	c.rough = make([]float64, len(c.q))
	from := math.Inf(-1)
	for k := range c.q {
		to := math.Log(c.g[k+1])
		width := (to - from) * sigma
		c.q[k] = gaussian.Interval((from+0.5*v)*sigma, (to+0.5*v)*sigma, width)
		c.p[k] = gaussian.Interval((from-0.5*v)*sigma, (to-0.5*v)*sigma, width)
		c.rough[k] = lognormalError(from, to, v, sigma)
		if c.g[k+1] <= 1 {
			c.p[k] /= c.g[k+1]
		} else {
			c.q[k] *= c.g[k]
		}
		from = to
	}
	return c.finish(&ratios{spread: 1 / sigma, grid: o, lossError: ratioRounding}, lognormalRounding)
}

// lognormalError bounds by how much rounded ends of a cell of log s and rounded exponents change its masses, relative
// to them. An end at x standard deviations is in error by 2⁻⁵¹·(|log s| + v/2)·σ, and the density there is at most
// 1.7·(1/width + |x| + 1) times the mass.
func lognormalError(from, to, v, sigma float64) float64 {
	furthest, inverse := 0.0, 1/((to-from)*sigma)
	for _, end := range [2]float64{from, to} {
		if !math.IsInf(end, 0) {
			furthest = math.Max(furthest, (math.Abs(end)+0.5*v)*sigma)
		}
	}
	return 0x1p-52*furthest*furthest + 0x1p-51*furthest*3.4*(inverse+furthest+1)
}

// powerOf returns what combining count copies of a gives.
func powerOf(a *ratios, count int64, combine func(x *ratios, count int64, y *ratios, other int64) *ratios) *ratios {
	result, times := a, int64(1)
	for bit := bits.Len64(uint64(count)) - 2; bit >= 0; bit-- {
		result = combine(result, times, result, times)
		times *= 2
		if count>>bit&1 == 1 {
			result = combine(result, times, a, 1)
			times++
		}
	}
	return result
}
