package privacy

import "math"

// lossSum is the loss of independent runs, each of one of its parts. Tilts are
// taken from a geometric grid, so that different δ and numbers of runs share what
// was computed for them. It is not safe for concurrent use.
type lossSum struct {
	parts []lossPart
	known map[int]float64 // log E[e^{cL}] by index of the tilt
	work  *Work
}

type lossPart struct {
	pair   lossPair
	count  float64
	nodes  *lossNodes // covers the tilts asked for so far
	beyond float64    // a tilt that no quadrature can cover, or 0
	work   *Work
}

// cumulants are log E[e^{cL}] at some tilt c and its first two derivatives.
type cumulants struct{ k, k2 float64 }

// tiltGrid is the number of tilts in an octave. A contour may pass the saddle at
// a distance of a few percent.
const tiltGrid = 16

func tiltAt(index int) float64 { return math.Exp2(float64(index) / tiltGrid) }

// cumulant returns log E[e^{cL}] of one run of all parts at a tilt of the grid.
func (s *lossSum) cumulant(index int) float64 {
	sum, ok := s.known[index]
	if !ok {
		sum = s.logMoment(tiltAt(index))
		if s.known == nil {
			s.known = make(map[int]float64)
		}
		s.known[index] = sum
	}
	return sum
}

// logMoment returns log E[e^{cL}] of one run of all parts.
func (s *lossSum) logMoment(c float64) float64 {
	sum := 0.0
	for i := range s.parts {
		sum += s.parts[i].count * s.parts[i].cumulant(c)
	}
	return sum
}

// cumulantAt returns the cumulants of one run of all parts at any tilt.
func (s *lossSum) cumulantAt(c float64) cumulants {
	var sum cumulants
	for i := range s.parts {
		p := &s.parts[i]
		one := p.cumulants(c)
		sum.k += p.count * one.k
		sum.k2 += p.count * one.k2
	}
	return sum
}

// cumulants returns the cumulants of one run of the part, infinite if the quadrature would be
// too long.
func (p *lossPart) cumulants(c float64) cumulants {
	if rate, ok := p.pair.normal(); ok {
		return cumulants{rate * c * (c + 1), 2 * rate}
	}
	if !p.cover(c) {
		return cumulants{math.Inf(1), math.Inf(1)}
	}
	p.work.add(len(p.nodes.loss))
	return p.nodes.cumulants(c)
}

// cumulant returns log E[e^{cL}] alone.
func (p *lossPart) cumulant(c float64) float64 {
	if rate, ok := p.pair.normal(); ok {
		return rate * c * (c + 1)
	}
	if !p.cover(c) {
		return math.Inf(1)
	}
	p.work.add(len(p.nodes.loss))
	return p.nodes.cumulant(c)
}

// cover extends the quadrature to the tilt c; it reports false where that would
// take too many nodes.
func (p *lossPart) cover(c float64) bool {
	if p.nodes != nil && p.nodes.tilt >= c {
		return true
	}
	if p.beyond > 0 && c >= p.beyond {
		return false
	}
	nodes, ok := p.pair.nodes(math.Max(8, 1.5*c), math.Inf(1), 0)
	p.work.add(nodes.size() * nodeWork)
	if !ok {
		nodes, ok = p.pair.nodes(c, math.Inf(1), 0)
		p.work.add(nodes.size() * nodeWork)
	}
	if !ok {
		p.beyond = c
		return false
	}
	p.nodes = nodes
	return true
}

// bound is the best Rényi bound of ε for some δ and number of runs. Its order
// minus 1 is close to the saddle point of the integral for δ(ε).
type bound struct {
	index    int     // of the tilt, order − 1
	epsilon  float64 // least upper bound of ε, may be negative
	logDelta float64
}

// renyi returns the best Rényi bound. ok is false where no bound within the range
// of floats was found.
func (s *lossSum) renyi(runs, logDelta float64) (b bound, ok bool) {
	const lowest = -50 * tiltGrid // tilts from 2⁻⁵⁰ to 2⁵⁰
	limit := 50 * tiltGrid
	if largest := runs * s.largest(); !math.IsInf(largest, 1) {
		// Further up, e^{cL} loses digits, and the bound is the largest loss.
		limit = min(limit, max(0, int(tiltGrid*math.Log2(1e12/largest))))
	}
	at := func(index int) float64 {
		c := tiltAt(index)
		epsilon := runs*s.cumulant(index)/c + Improved.surcharge(1+c, logDelta)
		if math.IsNaN(epsilon) || index < lowest || index > limit {
			return math.Inf(1)
		}
		return epsilon
	}
	// The bound falls and then rises with the tilt. The start is the best tilt of
	// a normal distribution of the same variance, or where E[e^{cL}] becomes large.
	start := -2 * logDelta / (runs * s.cumulantAt(1).k2)
	for _, p := range s.parts {
		cliff := p.pair.cliff()
		start = math.Min(start, cliff*cliff)
	}
	start = tiltGrid * 0.5 * math.Log2(start)
	index := int(math.Min(math.Max(lowest, start), float64(limit)))
	best := at(index)
	for stride := tiltGrid / 2; stride > 0; {
		if v := at(index - stride); v < best || math.IsInf(best, 1) && index > lowest {
			best, index = v, index-stride
		} else if v := at(index + stride); v < best {
			best, index = v, index+stride
		} else {
			stride /= 2
		}
	}
	return bound{index, best, logDelta}, !math.IsInf(best, 0)
}

// largest returns the largest loss of one run of all parts, or +Inf.
func (s *lossSum) largest() float64 {
	var sum float64
	for _, p := range s.parts {
		sum += p.count * p.pair.largest()
	}
	return sum
}

// refine returns the least Rényi bound for tilts between the grid points next to b.index.
func (s *lossSum) refine(b bound, runs float64) float64 {
	best := b.epsilon
	center := tiltAt(b.index)
	for width := 0.5 / tiltGrid; width > 1e-4; width /= 2 {
		for _, c := range [2]float64{center * math.Exp2(-width), center * math.Exp2(width)} {
			epsilon := runs*s.logMoment(c)/c + Improved.surcharge(1+c, b.logDelta)
			if epsilon < best {
				best, center = epsilon, c
				break
			}
		}
	}
	return best
}

// contour holds the integrand of δ(ε) on a line through a saddle,
//
//	δ(ε) = 1/2πi ∫ e^{K(t) − tε}/(t(t+1)) dt,  t = c + iy,
//
// at y = 0, step, 2·step, ... The trapezoidal sum is not δ(ε) but
// Σ_j e^{cjW}·δ(ε + jW) with W = 2π/step: an upper bound, whose excess is kept
// below 1e-11 by the choice of W.
type contour struct {
	c, step float64
	k       float64   // K(c)
	re, im  []float64 // e^{K(t)−K(c)}/(t(t+1))
}

// Numbers of points of a contour.
const (
	fewestPoints = 64
	mostPoints   = 1 << 13
)

// line is a vertical line in the plane of tilts with the part of the distribution
// of losses that matters for δ(ε) after tilting by it.
type line struct {
	index       int
	left, right float64 // extent around the ε of a bound
}

func (l line) width() float64 { return math.Max(l.left, l.right) }

// chooseLine returns a line close to the saddle with a small width. Left of the
// saddle rare large losses matter less. Going there by a share x of the tilt c
// costs a factor e^{(xc)²·K”/2}, about δ^{−x²}, of accuracy.
func (s *lossSum) chooseLine(b bound, runs float64) line {
	best := s.lineAt(b.index, b, runs)
	for shift := 2; shift <= tiltGrid; shift += 2 {
		x := 1 - tiltAt(-shift)
		if x*x*-b.logDelta > 9 {
			break
		}
		if l := s.lineAt(b.index-shift, b, runs); l.width() < 0.9*best.width() {
			best = l
		}
	}
	return best
}

// lineAt measures by how much to go left and right of b.epsilon until
// e^{c(x−ε)}·δ(x) is below 1e-11 of δ(ε), for the tilt c of the given index.
func (s *lossSum) lineAt(index int, b bound, runs float64) line {
	const excess = 30
	c, k := tiltAt(index), s.cumulant(index)
	// Markov's inequality: δ(x) <= P[L > x] <= E[e^{aL}]·e^{−ax} for every a >= 0.
	room := excess + runs*k - c*b.epsilon - b.logDelta
	// Both bounds, convex functions of the distance d over d, fall and then rise.
	l := line{index: index, right: math.Inf(1)}
	for at := index + 1; at <= index+8*tiltGrid; at = further(at, index) {
		d := tiltAt(at) - c
		w := (runs*(s.cumulant(at)-k) - d*b.epsilon + room) / d
		if !(w < l.right) {
			break
		}
		l.right = w
	}
	l.left = (-runs*k + c*b.epsilon + room) / c // d = c, where K = 0
	nearer := math.Inf(1)
	for at := index - 1; at >= index-8*tiltGrid; at = -further(-at, -index) {
		d := c - tiltAt(at)
		w := (runs*(s.cumulant(at)-k) + d*b.epsilon + room) / d
		if !(w < nearer) {
			break
		}
		nearer = w
		l.left = math.Min(l.left, w)
	}
	return l
}

// further returns the tilt to try after at > from: beyond the next two, one that other lines
// try too.
func further(at, from int) int {
	switch d := at - from; {
	case d < 2:
		return at + 1
	case d < tiltGrid:
		return (at + 4) &^ 3
	default:
		return (at + tiltGrid) &^ (tiltGrid - 1)
	}
}

// newContour returns the contour on a line, or false when the integrand does not
// die down soon: then the losses have too few continuous contributions, as for
// few runs, for this method.
func (s *lossSum) newContour(l line, b bound, runs float64) (*contour, bool) {
	if !(l.width() > 0) || math.IsInf(l.width(), 1) {
		return nil, false
	}
	c, step := tiltAt(l.index), 2*math.Pi/l.width()
	at := s.cumulantAt(c)
	ct := &contour{c: c, k: runs * at.k, step: step}
	tiny := 1e-16 * math.Exp(b.logDelta-ct.k+c*b.epsilon) * math.Pi / step
	turns := make([]turner, len(s.parts))
	// A normal distribution would take half as many points to begin with.
	points := fewestPoints
	decay := math.Sqrt(-2 * math.Log(tiny*c*(c+1)) / (runs * at.k2))
	for points < mostPoints && float64(points)*step < 2*decay {
		points *= 2
	}
	for ; points <= mostPoints; points *= 2 {
		s.work.add(8 * points)
		for i := range s.parts {
			if !turns[i].cover(&s.parts[i], c, runs, step*float64(points)) {
				return nil, false
			}
		}
		if ct.integrand(turns, points, runs, tiny) {
			return ct, true
		}
	}
	return nil, false
}

// integrand computes the contour at up to the given number of points. It reports whether the
// second half of them is below tiny, as it must be.
func (ct *contour) integrand(turns []turner, points int, runs, tiny float64) bool {
	logAbs, phase := make([]float64, points), make([]float64, points)
	for i := range turns {
		turns[i].add(logAbs, phase, runs, ct.step)
	}
	ct.re, ct.im = logAbs, phase
	last := 0
	for i := 0; i <= 2*last+8; i++ {
		if i == points {
			return false
		}
		y := float64(i) * ct.step
		// 1/(t(t+1))
		c := ct.c
		den := (c*c + y*y) * ((c+1)*(c+1) + y*y)
		dRe, dIm := c*(c+1)-y*y, -y*(2*c+1)
		abs := math.Exp(logAbs[i]) / den
		sin, cos := math.Sincos(phase[i])
		ct.re[i], ct.im[i] = abs*(cos*dRe-sin*dIm), abs*(cos*dIm+sin*dRe)
		if math.Hypot(ct.re[i], ct.im[i]) > tiny {
			last = i
		}
	}
	ct.re, ct.im = ct.re[:2*last+9], ct.im[:2*last+9]
	return true
}

// logDelta returns log δ(ε) and its derivative in ε.
func (ct *contour) logDelta(epsilon float64) (value, slope float64) {
	turn := -ct.step * epsilon
	dSin, dCos := math.Sincos(turn)
	sin, cos := 0.0, 1.0
	sum, moment := 0.5*ct.re[0], 0.0
	for i := 1; i < len(ct.re); i++ {
		sin, cos = sin*dCos+cos*dSin, cos*dCos-sin*dSin
		sum += ct.re[i]*cos - ct.im[i]*sin
		moment += float64(i) * (ct.re[i]*sin + ct.im[i]*cos)
	}
	// d/dε multiplies the integrand by −t = −c − iy.
	slope = -ct.c + ct.step*moment/sum
	return ct.k - ct.c*epsilon + math.Log(sum*ct.step/math.Pi), slope
}

// roundingMargin covers the rounding and quadrature errors of an inversion,
// relative to ε and absolutely in log δ. They are below 1e-10.
const roundingMargin = 1e-9

// invert returns the ε with δ(ε) = e^logDelta for the given number of runs, moved
// up (side = +1) or down (side = −1) by the rounding margin. ok is false when the
// contour is too long or loses too many digits.
func (s *lossSum) invert(l line, b bound, runs, side float64) (epsilon float64, ok bool) {
	for _, p := range s.parts {
		if !math.IsInf(p.pair.largest(), 1) {
			return 0, false // an integrand with atoms does not die down
		}
	}
	ct, ok := s.newContour(l, b, runs)
	if !ok {
		return 0, false
	}
	// The bound is an upper end of a bracket. Far out there the sum is noise.
	const sums = 16 // of the contour, about
	s.work.add(sums * len(ct.re))
	reach, hi := 1/ct.c, b.epsilon
	lo := b.epsilon - reach
	for {
		if value, _ := ct.logDelta(lo); value >= b.logDelta {
			break
		}
		if hi = lo; reach > l.left {
			return 0, false
		}
		reach *= 2
		lo = b.epsilon - reach
	}
	epsilon = lo
	for range 200 {
		value, slope := ct.logDelta(epsilon)
		if value >= b.logDelta {
			lo = epsilon
		} else { // or not a number
			hi = epsilon
		}
		next := epsilon - (value-b.logDelta)/slope
		// Close to the root the value is noise; after one more step so is the error.
		if math.Abs(next-epsilon) <= 1e-14*math.Abs(next) || math.Abs(value-b.logDelta) < 1e-3*roundingMargin {
			return next + side*roundingMargin*(math.Abs(next)-1/slope), ct.precise(value, next)
		}
		if !(next > lo && next < hi) {
			next = 0.5 * (lo + hi)
		}
		epsilon = next
	}
	return 0, false
}

// precise reports whether δ(ε) = e^logDelta stands out of the rounding errors of
// its sum.
func (ct *contour) precise(logDelta, epsilon float64) bool {
	share := math.Exp(logDelta-ct.k+ct.c*epsilon) * math.Pi / (ct.step * ct.re[0])
	return share > 1e-16*float64(len(ct.re))/roundingMargin
}

// pairRenyi is the Rényi divergence of a dominating pair.
type pairRenyi struct {
	part lossPart
}

func (c *pairRenyi) countIn(w *Work) { c.part.work = w }

func (c *pairRenyi) RDP(order float64) float64 {
	return math.Max(0, c.part.cumulant(order-1)/(order-1))
}
