package inversion

import (
	"cmp"
	"math"
	"math/cmplx"
	"slices"

	"github.com/dpareto/dpareto/privacy/internal/logexp"
	"github.com/dpareto/dpareto/privacy/internal/nufft"
	"github.com/dpareto/dpareto/privacy/internal/pld"
)

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

// newContour returns the contour on a line, or false when the integrand does not
// die down soon: then the losses have too few continuous contributions, as for
// few runs, for this method.
func newContour(s *pld.Sum, l pld.Line, b pld.Bound, runs float64) (*contour, bool) {
	for _, p := range s.Parts {
		if _, ok := p.Pair.(pld.DensityPair); !ok {
			return nil, false // an integrand with atoms does not die down
		}
	}
	if !(l.Width() > 0) || math.IsInf(l.Width(), 1) {
		return nil, false
	}
	c, step := pld.TiltAt(l.Index), 2*math.Pi/l.Width()
	ct := &contour{c: c, k: runs * s.Cumulant(l.Index), step: step}
	// The sum is about e^{share}·π/step, and what is left out of it beyond y at most e^{−decay}/(step·y).
	share := b.LogDelta - ct.k + c*b.Epsilon
	last, ok := decay(s, c, runs, step*mostPoints, func(y, decay float64) bool {
		return decay >= l.Negligible+4-share-math.Log(math.Pi*y)
	})
	if !ok {
		return nil, false
	}
	points, ok := sample(s, c, runs, step, last, 8)
	if !ok {
		return nil, false
	}
	ct.integrand(points)
	return ct, true
}

// contourPoints are values at y = 0, step, 2·step, ... of a line, for as many points as a Fourier transform has.
type contourPoints struct {
	logAbs, phase []float64 // of e^{K(c+iy)−K(c)}
	noise         []float64 // bounds of the errors of its logarithm
	count         int       // of the points that are needed
}

// sample computes e^{K(t)−K(c)} up to y = last, which takes a number of operations for each point besides those
// of its transforms. It reports false if that takes too many nodes.
func sample(s *pld.Sum, c, runs, step, last float64, operations int) (p contourPoints, ok bool) {
	p.count = int(last/step) + 2
	points := fewestPoints
	for points < p.count {
		points *= 2
	}
	s.Work.Add(operations * points)
	p.logAbs, p.phase, p.noise = make([]float64, points), make([]float64, points), make([]float64, points)
	for i := range s.Parts {
		var turns contourTransform
		if !turns.cover(&s.Parts[i], c, runs, step*float64(points)) {
			return p, false
		}
		turns.add(p, runs, step)
	}
	return p, true
}

// decay returns a y <= most that is enough, given that |E[e^{(c+iy)L}]/E[e^{cL}]| of all runs is at most e^{−decay} from
// y on. What is enough for one y is for larger ones.
func decay(s *pld.Sum, c, runs, most float64, enough func(y, decay float64) bool) (y float64, ok bool) {
	var normal float64
	var layers []layer
	for i := range s.Parts {
		p := &s.Parts[i]
		if rate, ok := p.Pair.Normal(); ok {
			normal += runs * p.Count * rate
			continue
		}
		nodes, ok := p.Cover(c)
		if !ok {
			return 0, false
		}
		layers = append(layers, layersOf(nodes, c, runs*p.Count)...)
	}
	s.Work.Add(8 * len(layers))
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

// layersOf bounds the tilted distribution of the losses of a number of runs from below by uniform distributions, on
// intervals around its mode within which the density is at least as high. Densities between nodes are allowed to be
// lower by a fifth. E[e^{iyL}] of a distribution is at most 1 minus the weights of its layers times spreadLoss(half·y),
// and its power for a number of runs at most the exponential function of minus that, times the runs.
func layersOf(n *pld.Nodes, c, runs float64) []layer {
	const least = 0.8
	k := n.Cumulant(c)
	density := make([]float64, len(n.Loss))
	for i := range density {
		density[i] = least * runs * math.Exp(n.LogMass[i]+c*n.Loss[i]-k) / n.Width[i]
	}
	var layers []layer
	first := 0
	for _, end := range n.GroupEnds() { // components of a mixture have layers of their own
		order := make([]int, 0, end-first)
		for i := first; i < end; i++ {
			order = append(order, i)
		}
		layers = appendLayers(layers, n, density, order)
		first = end
	}
	return layers
}

// appendLayers appends the layers of a density at the nodes of an order.
func appendLayers(layers []layer, n *pld.Nodes, density []float64, order []int) []layer {
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(n.Loss[i], n.Loss[j]) })
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
	level := 0.0
	for i, j := 0, len(order)-1; i < j; {
		next := math.Min(density[order[i]], density[order[j]])
		if next > level {
			length := n.Loss[order[j]] - n.Loss[order[i]]
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

// pointNoise bounds the relative rounding error of a point and of its turn, besides the error of its logarithm.
const pointNoise = (32 + 4*turnsApart) * roundoff

// integrand computes the points of the contour that are needed. It overwrites p.
func (ct *contour) integrand(p contourPoints) {
	ct.re, ct.im = p.logAbs[:p.count], p.phase[:p.count]
	for i := range ct.re {
		y := float64(i) * ct.step
		// 1/(t(t+1))
		c := ct.c
		den := (c*c + y*y) * ((c+1)*(c+1) + y*y)
		dRe, dIm := c*(c+1)-y*y, -y*(2*c+1)
		abs := math.Exp(p.logAbs[i]) / den
		sin, cos := math.Sincos(p.phase[i])
		ct.re[i], ct.im[i] = abs*(cos*dRe-sin*dIm), abs*(cos*dIm+sin*dRe)
		modulus := math.Hypot(ct.re[i], ct.im[i])
		ct.noise += modulus * (p.noise[i] + pointNoise)
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
		sum := logexp.LogAddExp(value, v)
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

// Invert returns the ε with δ(ε) = e^logDelta for the given number of runs, moved
// up (side = +1) or down (side = −1) by the rounding margin. ok is false when the
// contour is too long or loses too many digits.
func Invert(s *pld.Sum, b pld.Bound, runs, negligible, side float64) (epsilon float64, ok bool) {
	l := s.ChooseLine(b, runs, negligible)
	ct, ok := newContour(s, l, b, runs)
	if !ok {
		return 0, false
	}
	return contours{ct}.solve(b, b.Epsilon, l.Left, negligible, side)
}

// InvertApart is invert for losses of which few are large, so that no tilt is good for all of them: what rare large
// losses add to δ(ε) is integrated on a line of its own, with small tilts.
func InvertApart(s *pld.Sum, b pld.Bound, runs, negligible, side float64) (epsilon float64, ok bool) {
	small := s.Truncate(runs, math.Min(-2, b.LogDelta+pld.RareShare))
	if small == s {
		return Invert(s, b, runs, negligible, side)
	}
	near, ok := small.Renyi(runs, b.LogDelta)
	if !ok {
		return 0, false
	}
	l := small.ChooseLine(near, runs, negligible)
	ct, ok := newContour(small, l, near, runs)
	if !ok {
		return 0, false
	}
	rare, ok := rareContour(s, small, near, runs, negligible)
	if !ok {
		return 0, false
	}
	return contours{ct, rare}.solve(near, b.Epsilon, l.Left+b.Epsilon-near.Epsilon, negligible, side)
}

// solve returns the ε with δ(ε) = e^b.logDelta below most, which is near b.epsilon and not further than left below most.
func (cts contours) solve(b pld.Bound, most, left, negligible, side float64) (epsilon float64, ok bool) {
	margin := roundingMargin + 8*math.Exp(-negligible)
	reach, hi := 1/cts[0].c, most
	lo := b.Epsilon - reach
	for {
		value, _ := cts.logDelta(lo)
		if value >= b.LogDelta {
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
		if value >= b.LogDelta {
			lo = epsilon
		} else {
			hi = epsilon
		}
		next := epsilon - (value-b.LogDelta)/slope
		// Close to the root the value is noise; after one more step so is the error.
		if math.Abs(next-epsilon) <= 1e-14*math.Abs(next) || math.Abs(value-b.LogDelta) < 1e-3*margin {
			return next + side*(roundingMargin*math.Abs(next)-margin/slope), cts.noise(next) < margin*math.Exp(b.LogDelta)
		}
		if !(next > lo && next < hi) {
			next = 0.5 * (lo + hi)
		}
		epsilon = next
	}
	return 0, false
}

// noise bounds the rounding errors of δ(ε), except the errors of the scale of each contour.
func (cts contours) noise(epsilon float64) float64 {
	sum := 0.0
	for _, ct := range cts {
		errors := ct.noise + 4*roundoff*math.Abs(epsilon)*ct.turning
		sum += errors * ct.step / math.Pi * math.Exp(ct.k-ct.c*epsilon)
	}
	return sum
}

// rareContour returns the contour of what losses that are in s and not in small add to δ(ε), of sums of one part. With
// the characteristic functions v of small losses and r of large ones of one run that is (v + r)^n − v^n.
func rareContour(s *pld.Sum, small *pld.Sum, near pld.Bound, runs, negligible float64) (*contour, bool) {
	if len(s.Parts) > 1 {
		return nil, false
	}
	part, common := &s.Parts[0], &small.Parts[0]
	rare, ok := part.Pair.(pld.RarePair)
	if !ok {
		return nil, false
	}
	times := runs * part.Count
	index := s.RareTilt(near)
	c := pld.TiltAt(index)
	l := s.LineAt(index, pld.Bound{Index: index, Epsilon: near.Epsilon, LogDelta: near.LogDelta}, runs, negligible)
	// Left of the window there is no more than all of it, e^rareShare times δ.
	l.Left = (negligible + pld.RareShare + 3) / c
	step := 2 * math.Pi / l.Width()
	if !(l.Width() > 0) || math.IsInf(l.Width(), 1) {
		return nil, false
	}
	k := common.Cumulant(c)
	ratio, ok := massOf(part, rare.BeyondOf(common.Pair), c, k) // of r and v at c
	excess := times * math.Log1p(ratio)
	if !ok || !(excess > 0) || excess > 100 {
		return nil, false
	}
	ct := &contour{c: c, k: times * k, step: step}
	share := near.LogDelta - ct.k - math.Log(math.Expm1(excess)) + c*near.Epsilon
	// |(v + r)^n − v^n| is at most n|r|(|v| + |r|)^{n−1}.
	last, ok := decay(small, c, runs, step*mostRarePoints, func(y, decay float64) bool {
		bound := math.Log(times*ratio) + (times-1)*math.Log(math.Exp(-decay/times)+ratio)
		return math.Log(math.Expm1(excess))-bound >= negligible+4-share-math.Log(math.Pi*y)
	})
	if !ok {
		return nil, false
	}
	p, ok := sample(small, c, runs, step, last, 16)
	if !ok {
		return nil, false
	}
	points := len(p.logAbs)
	large, ok := rare.BeyondOf(common.Pair).Nodes(c, math.Inf(-1), phaseOnPanel/(step*float64(points)))
	s.Work.Add(large.Size() * pld.NodeWork)
	if !ok {
		return nil, false
	}
	weight := make([]float64, len(large.Loss))
	for j, l := range large.Loss {
		weight[j] = math.Exp(large.LogMass[j] + c*l - k)
	}
	ct.re, ct.im = nufft.Transform(large.Loss, weight, points, step)
	ct.re, ct.im = ct.re[:p.count], ct.im[:p.count]
	for j := range ct.re {
		log := complex(p.logAbs[j], p.phase[j]) // of v^n
		v := log / complex(times, 0)
		r := complex(ct.re[j], ct.im[j]) * cmplx.Exp(-v) // over v
		var value complex128
		growth := complex(times, 0) * logexp.ComplexLog1p(r)
		if real(growth) < 1 {
			value = cmplx.Exp(log) * logexp.ComplexExpm1(growth)
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
		ofRare := ratio * nufft.Noise(float64(j)/float64(points), points)
		most := math.Exp(real(log) - real(v) + math.Max(0, real(growth)))
		ct.noise += modulus*(p.noise[j]+pointNoise) + times*ofRare*most/cmplx.Abs(t*(t+1))
	}
	return ct, true
}

// massOf returns the contribution of a pair's losses to E[e^{cL}], over e^k.
func massOf(p *pld.Part, pair pld.Pair, c, k float64) (mass float64, ok bool) {
	n, ok := pair.Nodes(c, math.Inf(1), 0)
	p.Work.Add(n.Size() * pld.NodeWork)
	if !ok {
		return 0, false
	}
	for i, l := range n.Loss {
		mass += math.Exp(n.LogMass[i] + c*l - k)
	}
	return mass, true
}
