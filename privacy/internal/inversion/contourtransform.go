package inversion

import (
	"math"

	"github.com/dpareto/dpareto/privacy/internal/nufft"
	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// contourTransform evaluates E[e^{tL}]/E[e^{cL}] of one part at all points t = c + iy of a
// contour, y = 0, step, 2·step, ...
//
// The small losses, which turn by less than two radians up to the last point,
// enter by their moments, without cancellation of the terms of first order. The
// other ones, which are rare if there are many runs, are spread onto a grid by a
// Gaussian and transformed at once (Dutt and Rokhlin, "Fast Fourier transforms for
// nonequispaced data", 1993; Greengard and Lee, "Accelerating the nonuniform fast
// Fourier transform", 2004). The errors are 1e-16 of their mass.
type contourTransform struct {
	normal, tilt float64 // of a pair that has a closed form
	count        float64
	loss, weight []float64
	drift        []float64 // mass·(e^{−l} − 1)
	rest         float64   // the same of the losses that are left out
}

// phaseOnPanel is by how much e^{iyL} may turn on a panel of 16 points.
const phaseOnPanel = 16

// cover prepares the contourTransform of p for |y| <= yMax. It reports false if that takes
// too many nodes.
func (r *contourTransform) cover(p *pld.Part, c, runs, yMax float64) bool {
	*r = contourTransform{count: p.Count, tilt: c}
	if rate, ok := p.Pair.Normal(); ok {
		r.normal = rate
		return true
	}
	k := p.Cumulants(c).K
	n, ok := p.Pair.Nodes(c, k-25-math.Log(runs*p.Count), phaseOnPanel/yMax)
	p.Work.Add(2 * n.Size() * pld.NodeWork)
	if !ok {
		return false
	}
	size := len(n.Loss)
	buffer := make([]float64, 3*size)
	r.loss, r.weight, r.drift = buffer[:0:size], buffer[size:size:2*size], buffer[2*size:2*size]
	total := math.Exp(k)
	r.rest = -n.Drift / total
	for j, l := range n.Loss {
		weight := math.Exp(n.LogMass[j] + c*l - k)
		drift := (n.Lower[j] - n.Mass[j]) / total
		if math.Abs(l) < pld.SmallLoss {
			drift = n.Mass[j] * math.Expm1(-l) / total
		}
		if runs*p.Count*weight*math.Min(1, math.Abs(l)) < 1e-16 {
			r.rest += drift
			continue
		}
		r.loss, r.weight, r.drift = append(r.loss, l), append(r.weight, weight), append(r.drift, drift)
	}
	return true
}

// turnMoments is the number of moments: 2²⁵/25! is below 1e-17.
const turnMoments = 24

// add adds runs·count times the logarithm of the modulus and the phase of the
// quotient at each point, and a bound of their rounding errors to the noise.
func (r *contourTransform) add(p contourPoints, runs, step float64) {
	logAbs, phase, noise := p.logAbs, p.phase, p.noise
	times, points := runs*r.count, len(logAbs)
	if r.normal > 0 { // rate·(t(t+1) − c(c+1))
		for i := range logAbs {
			y := float64(i) * step
			abs, turn := times*r.normal*y*y, times*r.normal*(2*r.tilt+1)*y
			logAbs[i] -= abs
			phase[i] += turn
			noise[i] += 16 * roundoff * (abs + math.Abs(turn))
		}
		return
	}
	yMax := step * float64(points)
	var moments [turnMoments + 1]float64 // Σ weight·(l·yMax)^p/p!
	moments[1] = r.rest * yMax
	var large, largeWeight []float64
	gridded := 0.0
	for j, l := range r.loss {
		w, v := r.weight[j], l*yMax
		moments[1] += r.drift[j] * yMax
		if math.Abs(v) > 2 {
			gridded += w
			large, largeWeight = append(large, l), append(largeWeight, w)
			continue
		}
		moments[1] += w * v
		w *= v
		for p := 2; p <= turnMoments; p++ {
			w *= v * inverse[p]
			moments[p] += w
		}
	}
	var largeRe, largeIm []float64
	if gridded > 0 {
		largeRe, largeIm = nufft.Transform(large, largeWeight, points, step)
	}
	for i := range logAbs {
		x := float64(i) / float64(points)
		var re, im float64
		for p := turnMoments; p > 0; p -= 2 { // Σ moment·(ix)^p
			re = moments[p] - x*x*re
			im = moments[p-1] - x*x*im
		}
		re, im = -x*x*re, x*im
		if gridded > 0 {
			re += largeRe[i] - gridded
			im += largeIm[i]
		}
		abs, turn := times*0.5*math.Log1p(2*re+re*re+im*im), times*math.Atan2(im, 1+re)
		logAbs[i] += abs
		phase[i] += turn
		wrong := 16*roundoff*(math.Abs(re)+math.Abs(im)) + gridded*nufft.Noise(x, points)
		noise[i] += 4*roundoff*(math.Abs(abs)+math.Abs(turn)) + times*wrong/math.Hypot(1+re, im)
	}
}

// roundoff is the largest relative error of one rounding.
const roundoff = 0x1p-53

// inverse holds 1/p.
var inverse = func() (table [turnMoments + 1]float64) {
	for p := range table {
		table[p] = 1 / float64(p)
	}
	return table
}()
