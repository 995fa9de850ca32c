package privacy

import (
	"cmp"
	"math"
	"math/cmplx"
	"slices"
)

// lossSum is the loss of independent runs, each of one of its parts. Tilts are
// taken from a geometric grid, so that different δ and numbers of runs share what
// was computed for them. It is not safe for concurrent use.
type lossSum struct {
	parts     []lossPart
	known     map[int]float64 // log E[e^{cL}] by index of the tilt
	truncated map[int]*lossSum
	saddle    int // index of the tilt of the latest bound
	work      *Work
}

// truncate returns the sum with the largest losses of each run made infinite, of which there is one in a number
// of runs with a probability of at most e^logTail. Similar values share a sum.
func (s *lossSum) truncate(runs, logTail float64) *lossSum {
	var count float64
	for _, p := range s.parts {
		count += p.count
	}
	const share = 8
	index := int(math.Floor((logTail - math.Log(runs*count)) / share))
	t, ok := s.truncated[index]
	if ok {
		return t
	}
	t = &lossSum{work: s.work}
	changed := false
	for _, p := range s.parts {
		pair, ok := p.pair.truncate(float64(index) * share)
		changed = changed || ok
		t.parts = append(t.parts, lossPart{pair: pair, count: p.count, work: s.work})
	}
	if !changed {
		return s
	}
	if s.truncated == nil {
		s.truncated = make(map[int]*lossSum)
	}
	s.truncated[index] = t
	return t
}

func (s *lossSum) countIn(w *Work) {
	s.work = w
	for i := range s.parts {
		s.parts[i].work = w
	}
	for _, t := range s.truncated {
		t.countIn(w)
	}
}

// infinite bounds the probability of an infinite loss in one run of all parts.
func (s *lossSum) infinite() float64 {
	sum := 0.0
	for _, p := range s.parts {
		sum += p.count * p.pair.infinite()
	}
	return sum
}

type lossPart struct {
	pair  lossPair
	count float64
	nodes map[int]*lossNodes // see cover; nil where there are too many
	work  *Work
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
	nodes, ok := p.cover(c)
	if !ok {
		return cumulants{math.Inf(1), math.Inf(1)}
	}
	p.work.add(len(nodes.loss))
	return nodes.cumulants(c)
}

// cumulant returns log E[e^{cL}] alone.
func (p *lossPart) cumulant(c float64) float64 {
	if rate, ok := p.pair.normal(); ok {
		return rate * c * (c + 1)
	}
	nodes, ok := p.cover(c)
	if !ok {
		return math.Inf(1)
	}
	p.work.add(len(nodes.loss))
	return nodes.cumulant(c)
}

// cover returns a quadrature for the tilt c; it reports false where that would take too many nodes. Tilts between
// powers of two share one, so that results do not depend on the order of calls.
func (p *lossPart) cover(c float64) (*lossNodes, bool) {
	const smallest = 3 // one quadrature serves all tilts up to 8, unless it has too many nodes
	level := int(math.Ceil(math.Log2(c)))
	if level < smallest {
		if nodes, ok := p.coverLevel(smallest); ok {
			return nodes, true
		}
	}
	return p.coverLevel(level)
}

// coverLevel returns the quadrature for the tilt 2^level.
func (p *lossPart) coverLevel(level int) (*lossNodes, bool) {
	if nodes, ok := p.nodes[level]; ok {
		return nodes, nodes != nil
	}
	nodes, ok := p.pair.nodes(math.Exp2(float64(level)), math.Inf(1), 0)
	p.work.add(nodes.size() * nodeWork)
	if !ok {
		nodes = nil
	}
	if p.nodes == nil {
		p.nodes = make(map[int]*lossNodes)
	}
	p.nodes[level] = nodes
	return nodes, ok
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
	largest := 0.0
	for _, p := range s.parts {
		largest = math.Max(largest, p.pair.largest())
	}
	if !math.IsInf(largest, 1) {
		// Further up, e^{cL} loses digits, and the bound is the largest loss.
		digits := 1e8
		if _, atoms := s.atom(); atoms {
			digits = 1e12 / runs
		}
		limit = min(limit, max(0, int(tiltGrid*math.Log2(digits/largest))))
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
	noise   float64   // bound of the rounding errors of all of them
	turning float64   // the sum of their moduli times y
}

// Numbers of points of a contour.
const (
	fewestPoints   = 64
	mostPoints     = 1 << 13
	mostRarePoints = 1 << 16 // at a small tilt, on a wide window
)

// line is a vertical line in the plane of tilts with the part of the distribution
// of losses that matters for δ(ε) after tilting by it.
type line struct {
	index       int
	left, right float64 // extent around the ε of a bound
	negligible  float64 // −log of what is left out, relative to δ
}

func (l line) width() float64 { return math.Max(l.left, l.right) }

// chooseLine returns a line close to the saddle with a small width. Left of the
// saddle rare large losses matter less. Going there by a share x of the tilt c
// costs a factor e^{(xc)²·K”/2}, about δ^{−x²}, of accuracy.
func (s *lossSum) chooseLine(b bound, runs, negligible float64) line {
	best := s.lineAt(b.index, b, runs, negligible)
	for shift := 4; shift <= tiltGrid; shift += 4 {
		x := 1 - tiltAt(-shift)
		if x*x*-b.logDelta > 9 {
			break
		}
		if l := s.lineAt(b.index-shift, b, runs, negligible); l.width() < 0.9*best.width() {
			best = l
		}
	}
	return best
}

// lineAt measures by how much to go left and right of b.epsilon until
// e^{c(x−ε)}·δ(x) is below e^{−negligible} of δ(ε), for the tilt c of the given index.
func (s *lossSum) lineAt(index int, b bound, runs, negligible float64) line {
	c, k := tiltAt(index), s.cumulant(index)
	// Markov's inequality: δ(x) <= P[L > x] <= E[e^{aL}]·e^{−ax} for every a >= 0.
	room := negligible + 3 + runs*k - c*b.epsilon - b.logDelta
	// Both bounds, convex functions of the distance d over d, fall and then rise.
	l := line{index: index, right: math.Inf(1), negligible: negligible}
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
	for _, p := range s.parts {
		if _, ok := p.pair.(densityPair); !ok {
			return nil, false // an integrand with atoms does not die down
		}
	}
	if !(l.width() > 0) || math.IsInf(l.width(), 1) {
		return nil, false
	}
	c, step := tiltAt(l.index), 2*math.Pi/l.width()
	ct := &contour{c: c, k: runs * s.cumulant(l.index), step: step}
	// The sum is about e^{share}·π/step, and what is left out of it beyond y at most e^{−decay}/(step·y).
	share := b.logDelta - ct.k + c*b.epsilon
	last, ok := s.decay(c, runs, step*mostPoints, func(y, decay float64) bool {
		return decay >= l.negligible+4-share-math.Log(math.Pi*y)
	})
	if !ok {
		return nil, false
	}
	count := int(last/step) + 2
	points := fewestPoints
	for points < count {
		points *= 2
	}
	s.work.add(8 * points)
	logAbs, phase, noise := make([]float64, points), make([]float64, points), make([]float64, points)
	for i := range s.parts {
		var turns turner
		if !turns.cover(&s.parts[i], c, runs, step*float64(points)) {
			return nil, false
		}
		turns.add(logAbs, phase, noise, runs, step)
	}
	ct.integrand(logAbs, phase, noise, count)
	return ct, true
}

// decay returns a y <= most that is enough, given that |E[e^{(c+iy)L}]/E[e^{cL}]| of all runs is at most e^{−decay} from
// y on. What is enough for one y is for larger ones.
func (s *lossSum) decay(c, runs, most float64, enough func(y, decay float64) bool) (y float64, ok bool) {
	var normal float64
	var layers []layer
	for i := range s.parts {
		p := &s.parts[i]
		if rate, ok := p.pair.normal(); ok {
			normal += runs * p.count * rate
			continue
		}
		nodes, ok := p.cover(c)
		if !ok {
			return 0, false
		}
		layers = append(layers, nodes.layers(c, runs*p.count)...)
	}
	s.work.add(8 * len(layers))
	reached := func(y float64) bool {
		sum := normal * y * y
		for _, l := range layers {
			sum += l.weight * spreadLoss(l.half*y)
		}
		return enough(y, sum)
	}
	if !reached(most) {
		return 0, false
	}
	lo, hi := 0.0, most
	for !(lo > 0.95*hi) && hi > most/mostPoints {
		mid := 0.5 * (lo + hi)
		if reached(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi, true
}

// layer is a share of a distribution of losses that is uniform on an interval, and half of its length.
type layer struct{ weight, half float64 }

// layers bounds the tilted distribution of the losses of a number of runs from below by uniform distributions, on
// intervals around its mode within which the density is at least as high. Densities between nodes are allowed to be
// lower by a fifth. E[e^{iyL}] of a distribution is at most 1 minus the weights of its layers times spreadLoss(half·y),
// and its power for a number of runs at most the exponential function of minus that, times the runs.
func (n *lossNodes) layers(c, runs float64) []layer {
	const least = 0.8
	k := n.cumulant(c)
	order := make([]int, len(n.loss))
	density := make([]float64, len(n.loss))
	for i := range order {
		order[i] = i
		density[i] = least * runs * math.Exp(n.logMass[i]+c*n.loss[i]-k) / n.width[i]
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(n.loss[i], n.loss[j]) })
	mode := 0
	for i, at := range order {
		if density[at] > density[order[mode]] {
			mode = i
		}
	}
	for i := mode - 1; i >= 0; i-- {
		density[order[i]] = math.Min(density[order[i]], density[order[i+1]])
	}
	for i := mode + 1; i < len(order); i++ {
		density[order[i]] = math.Min(density[order[i]], density[order[i-1]])
	}
	var layers []layer
	level := 0.0
	for i, j := 0, len(order)-1; i < j; {
		next := math.Min(density[order[i]], density[order[j]])
		if next > level {
			length := n.loss[order[j]] - n.loss[order[i]]
			layers = append(layers, layer{(next - level) * length, 0.5 * length})
			level = next
		}
		if density[order[i]] < density[order[j]] {
			i++
		} else {
			j--
		}
	}
	return layers
}

// spreadLoss returns a rising function of v that is at most 1 − |sin v|/v.
func spreadLoss(v float64) float64 {
	const turn = 2.2
	if v > turn {
		return math.Max(spreadLoss(turn), 1-1/v)
	}
	return v * v / 6 * (1 - v*v/20)
}

// pointNoise bounds the relative rounding error of a point and of its turn, besides that of its logarithm.
const pointNoise = (32 + 4*turnsApart) * roundoff

// integrand computes the first count points of the contour, given e^{K(t)−K(c)} and a bound of the errors of its
// logarithm. It overwrites that.
func (ct *contour) integrand(logAbs, phase, noise []float64, count int) {
	ct.re, ct.im = logAbs[:count], phase[:count]
	for i := range ct.re {
		y := float64(i) * ct.step
		// 1/(t(t+1))
		c := ct.c
		den := (c*c + y*y) * ((c+1)*(c+1) + y*y)
		dRe, dIm := c*(c+1)-y*y, -y*(2*c+1)
		abs := math.Exp(logAbs[i]) / den
		sin, cos := math.Sincos(phase[i])
		ct.re[i], ct.im[i] = abs*(cos*dRe-sin*dIm), abs*(cos*dIm+sin*dRe)
		modulus := math.Hypot(ct.re[i], ct.im[i])
		ct.noise += modulus * (noise[i] + pointNoise)
		ct.turning += modulus * y
	}
}

// turnsApart is the number of points after which the turn of the next one is computed afresh.
const turnsApart = 32

// delta returns the logarithm of the contour's part of δ(ε), and its derivative.
func (ct *contour) delta(epsilon float64) (log, slope float64) {
	turn := -ct.step * epsilon
	dSin, dCos := math.Sincos(turn)
	sin, cos := 0.0, 1.0
	sum, moment := 0.5*ct.re[0], 0.0
	for i := 1; i < len(ct.re); i++ {
		if i%turnsApart == 0 {
			sin, cos = math.Sincos(float64(i) * turn)
		} else {
			sin, cos = sin*dCos+cos*dSin, cos*dCos-sin*dSin
		}
		sum += ct.re[i]*cos - ct.im[i]*sin
		moment += float64(i) * (ct.re[i]*sin + ct.im[i]*cos)
	}
	if sum <= 0 { // far out it is noise
		return math.Inf(-1), -ct.c
	}
	// d/dε multiplies the integrand by −t = −c − iy.
	slope = -ct.c + ct.step*moment/sum
	return ct.k - ct.c*epsilon + math.Log(sum*ct.step/math.Pi), slope
}

// contours are parts of δ(ε).
type contours []*contour

// logDelta returns log δ(ε) and its derivative in ε.
func (cts contours) logDelta(epsilon float64) (value, slope float64) {
	value, slope = cts[0].delta(epsilon)
	for _, ct := range cts[1:] {
		v, s := ct.delta(epsilon)
		sum := logAddExp(value, v)
		if sum > math.Inf(-1) {
			slope = slope*math.Exp(value-sum) + s*math.Exp(v-sum)
		}
		value = sum
	}
	return value, slope
}

// roundingMargin covers the rounding and quadrature errors of an inversion,
// relative to ε and absolutely in log δ. They are below 1e-10.
const roundingMargin = 1e-9

// invert returns the ε with δ(ε) = e^logDelta for the given number of runs, moved
// up (side = +1) or down (side = −1) by the rounding margin. ok is false when the
// contour is too long or loses too many digits.
func (s *lossSum) invert(b bound, runs, negligible, side float64) (epsilon float64, ok bool) {
	l := s.chooseLine(b, runs, negligible)
	ct, ok := s.newContour(l, b, runs)
	if !ok {
		return 0, false
	}
	return contours{ct}.solve(b, b.epsilon, l.left, negligible, side)
}

// invertApart is invert for losses of which few are large, so that no tilt is good for all of them: what rare large
// losses add to δ(ε) is integrated on a line of its own, with small tilts.
func (s *lossSum) invertApart(b bound, runs, negligible, side float64) (epsilon float64, ok bool) {
	small := s.truncate(runs, math.Min(-2, b.logDelta+rareShare))
	if small == s {
		return s.invert(b, runs, negligible, side)
	}
	near, ok := small.renyi(runs, b.logDelta)
	if !ok {
		return 0, false
	}
	l := small.chooseLine(near, runs, negligible)
	ct, ok := small.newContour(l, near, runs)
	if !ok {
		return 0, false
	}
	rare, ok := s.rareContour(small, near, runs, negligible)
	if !ok {
		return 0, false
	}
	return contours{ct, rare}.solve(near, b.epsilon, l.left+b.epsilon-near.epsilon, negligible, side)
}

// solve returns the ε with δ(ε) = e^b.logDelta below most, which is near b.epsilon and not further than left below most.
func (cts contours) solve(b bound, most, left, negligible, side float64) (epsilon float64, ok bool) {
	margin := roundingMargin + 8*math.Exp(-negligible)
	reach, hi := 1/cts[0].c, most
	lo := b.epsilon - reach
	for {
		value, _ := cts.logDelta(lo)
		if value >= b.logDelta {
			break
		}
		if math.IsNaN(value) {
			return 0, false
		}
		if hi = lo; most-lo > left {
			return 0, false
		}
		reach *= 2
		lo -= reach
	}
	epsilon = lo
	for range 200 {
		value, slope := cts.logDelta(epsilon)
		if math.IsNaN(value) {
			return 0, false
		}
		if value >= b.logDelta {
			lo = epsilon
		} else {
			hi = epsilon
		}
		next := epsilon - (value-b.logDelta)/slope
		// Close to the root the value is noise; after one more step so is the error.
		if math.Abs(next-epsilon) <= 1e-14*math.Abs(next) || math.Abs(value-b.logDelta) < 1e-3*margin {
			return next + side*(roundingMargin*math.Abs(next)-margin/slope), cts.noise(next) < margin*math.Exp(b.logDelta)
		}
		if !(next > lo && next < hi) {
			next = 0.5 * (lo + hi)
		}
		epsilon = next
	}
	return 0, false
}

// noise bounds the rounding errors of δ(ε), but for those of the scale of each contour.
func (cts contours) noise(epsilon float64) float64 {
	sum := 0.0
	for _, ct := range cts {
		errors := ct.noise + 4*roundoff*math.Abs(epsilon)*ct.turning
		sum += errors * ct.step / math.Pi * math.Exp(ct.k-ct.c*epsilon)
	}
	return sum
}

// rareTilt returns the index of a tilt for sums with a rare large loss, at most the one for small losses.
func (s *lossSum) rareTilt(near bound) int {
	largest := 0.0
	for _, p := range s.parts {
		if l := p.pair.largest(); !math.IsInf(l, 1) { // others are not truncated
			largest = math.Max(largest, l)
		}
	}
	return min(near.index, int(tiltGrid*math.Log2(rareTilt/largest)))
}

// rareContour returns the contour of what losses that are in s and not in small add to δ(ε), of sums of one part. With
// the characteristic functions v of small losses and r of large ones of one run that is (v + r)^n − v^n.
func (s *lossSum) rareContour(small *lossSum, near bound, runs, negligible float64) (*contour, bool) {
	if len(s.parts) > 1 {
		return nil, false
	}
	part, common := &s.parts[0], &small.parts[0]
	rare, ok := part.pair.(rarePair)
	if !ok {
		return nil, false
	}
	times := runs * part.count
	index := s.rareTilt(near)
	c := tiltAt(index)
	l := s.lineAt(index, bound{index, near.epsilon, near.logDelta}, runs, negligible)
	// Left of the window there is no more than all of it, e^rareShare times δ.
	l.left = (negligible + rareShare + 3) / c
	step := 2 * math.Pi / l.width()
	if !(l.width() > 0) || math.IsInf(l.width(), 1) {
		return nil, false
	}
	k := common.cumulant(c)
	ratio, ok := part.massOf(rare.beyondOf(common.pair), c, k) // of r and v at c
	excess := times * math.Log1p(ratio)
	if !ok || !(excess > 0) || excess > 100 {
		return nil, false
	}
	ct := &contour{c: c, k: times * k, step: step}
	share := near.logDelta - ct.k - math.Log(math.Expm1(excess)) + c*near.epsilon
	// |(v + r)^n − v^n| is at most n|r|(|v| + |r|)^{n−1}.
	last, ok := small.decay(c, runs, step*mostRarePoints, func(y, decay float64) bool {
		bound := math.Log(times*ratio) + (times-1)*math.Log(math.Exp(-decay/times)+ratio)
		return math.Log(math.Expm1(excess))-bound >= negligible+4-share-math.Log(math.Pi*y)
	})
	if !ok {
		return nil, false
	}
	count := int(last/step) + 2
	points := fewestPoints
	for points < count {
		points *= 2
	}
	s.work.add(16 * points)
	var turns turner
	if !turns.cover(common, c, runs, step*float64(points)) {
		return nil, false
	}
	logAbs, phase, noise := make([]float64, points), make([]float64, points), make([]float64, points)
	turns.add(logAbs, phase, noise, runs, step)
	large, ok := rare.beyondOf(common.pair).nodes(c, math.Inf(-1), phaseOnPanel/(step*float64(points)))
	s.work.add(large.size() * nodeWork)
	if !ok {
		return nil, false
	}
	weight := make([]float64, len(large.loss))
	for j, l := range large.loss {
		weight[j] = math.Exp(large.logMass[j] + c*l - k)
	}
	ct.re, ct.im = transform(large.loss, weight, points, step)
	ct.re, ct.im = ct.re[:count], ct.im[:count]
	for j := range ct.re {
		log := complex(logAbs[j], phase[j]) // of v^n
		v := log / complex(times, 0)
		r := complex(ct.re[j], ct.im[j]) * cmplx.Exp(-v) // over v
		var value complex128
		growth := complex(times, 0) * log1p(r)
		if real(growth) < 1 {
			value = cmplx.Exp(log) * expm1(growth)
		} else {
			value = cmplx.Exp(log+growth) - cmplx.Exp(log)
		}
		y := float64(j) * step
		t := complex(c, y)
		value /= t * (t + 1)
		ct.re[j], ct.im[j] = real(value), imag(value)
		modulus := cmplx.Abs(value)
		ct.turning += modulus * y
		// An error of r adds n·(v + r)^{n−1} times it.
		ofRare := ratio * transformNoise(float64(j)/float64(points), points)
		most := math.Exp(real(log) - real(v) + math.Max(0, real(growth)))
		ct.noise += modulus*(noise[j]+pointNoise) + times*ofRare*most/cmplx.Abs(t*(t+1))
	}
	return ct, true
}

// massOf returns what the losses of a pair contribute to E[e^{cL}], over e^k.
func (p *lossPart) massOf(pair lossPair, c, k float64) (mass float64, ok bool) {
	n, ok := pair.nodes(c, math.Inf(1), 0)
	p.work.add(n.size() * nodeWork)
	if !ok {
		return 0, false
	}
	for i, l := range n.loss {
		mass += math.Exp(n.logMass[i] + c*l - k)
	}
	return mass, true
}

// pairRenyi is the Rényi divergence of a dominating pair.
type pairRenyi struct {
	part lossPart
}

func (c *pairRenyi) countIn(w *Work) { c.part.work = w }

func (c *pairRenyi) RDP(order float64) float64 {
	return math.Max(0, c.part.cumulant(order-1)/(order-1))
}
