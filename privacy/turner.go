package privacy

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
)

// turner evaluates E[e^{tL}]/E[e^{cL}] of one part at all points t = c + iy of a
// contour, y = 0, step, 2·step, ...
//
// The small losses, which turn by less than two radians up to the last point,
// enter by their moments, without cancellation of the terms of first order. The
// other ones, which are rare if there are many runs, are spread onto a grid by a
// Gaussian and transformed at once (Dutt and Rokhlin, "Fast Fourier transforms for
// nonequispaced data", 1993; Greengard and Lee, "Accelerating the nonuniform fast
// Fourier transform", 2004). The errors are 1e-16 of their mass.
type turner struct {
	normal, tilt float64 // of a pair that has a closed form
	count        float64
	widest       float64 // range of losses on a panel
	loss, weight []float64
	drift        []float64 // mass·(e^{−l} − 1)
	rest         float64   // the same of the losses that are left out
}

// phaseOnPanel is by how much e^{iyL} may turn on a panel of 16 points.
const phaseOnPanel = 16

// cover prepares the turner of p for |y| <= yMax. It reports false if that takes
// too many nodes.
func (r *turner) cover(p *lossPart, c, runs, yMax float64) bool {
	if r.count > 0 && r.widest*yMax <= phaseOnPanel {
		return true
	}
	*r = turner{count: p.count, tilt: c}
	if rate, ok := p.pair.normal(); ok {
		r.normal = rate
		return true
	}
	k := p.cumulants(c).k
	n, ok := p.pair.nodes(c, k-25-math.Log(runs*p.count), phaseOnPanel/yMax)
	p.work.add(2 * n.size() * nodeWork)
	if !ok {
		return false
	}
	r.widest = n.widest
	size := len(n.loss)
	buffer := make([]float64, 3*size)
	r.loss, r.weight, r.drift = buffer[:0:size], buffer[size:size:2*size], buffer[2*size:2*size]
	total := math.Exp(k)
	r.rest = -n.drift / total
	for j, l := range n.loss {
		weight := math.Exp(n.logMass[j] + c*l - k)
		drift := (n.lower[j] - n.mass[j]) / total
		if math.Abs(l) < smallLoss {
			drift = n.mass[j] * math.Expm1(-l) / total
		}
		if runs*p.count*weight*math.Min(1, math.Abs(l)) < 1e-16 {
			r.rest += drift
			continue
		}
		r.loss, r.weight, r.drift = append(r.loss, l), append(r.weight, weight), append(r.drift, drift)
	}
	return true
}

const (
	turnMoments = 24 // 2²⁵/25! is below 1e-17
	spreadReach = 16 // grid points on each side of a loss
	// spreadRate is a of the Gaussian e^{−a·d²} for the distance d in grid points: both
	// its tail and the images of its transform are negligible.
	spreadRate = 0.75 * math.Pi / spreadReach
)

// spreadTable holds e^{−a·d²} at the integers.
var spreadTable = func() (table [spreadReach + 1]float64) {
	for d := range table {
		table[d] = math.Exp(-spreadRate * float64(d*d))
	}
	return table
}()

// add adds runs·count times the logarithm of the modulus and the phase of the
// quotient at each point, and a bound of their rounding errors to noise.
func (r *turner) add(logAbs, phase, noise []float64, runs, step float64) {
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
		largeRe, largeIm = transform(large, largeWeight, points, step)
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
		wrong := 16*roundoff*(math.Abs(re)+math.Abs(im)) + gridded*transformNoise(x, points)
		noise[i] += 4*roundoff*(math.Abs(abs)+math.Abs(turn)) + times*wrong/math.Hypot(1+re, im)
	}
}

// roundoff is the largest relative error of one rounding.
const roundoff = 0x1p-53

// transform returns Σ weight·e^{iy·loss} at y = 0, step, 2·step, ... for a number of points that is a power of two.
func transform(loss, weight []float64, points int, step float64) (re, im []float64) {
	grid := make([]float64, 4*points)
	perLoss := float64(len(grid)) * step / (2 * math.Pi)
	for j, l := range loss {
		spread(grid, l*perLoss, weight[j])
	}
	spectrum := fourier.NewFFT(len(grid)).Coefficients(nil, grid)
	re, im = make([]float64, points), make([]float64, points)
	for i := range re {
		undo := undoSpread(float64(i) / float64(points))
		re[i], im[i] = undo*real(spectrum[i]), -undo*imag(spectrum[i])
	}
	return re, im
}

// undoSpread returns what undoes that losses are spread, at a share x of all points.
func undoSpread(x float64) float64 {
	return math.Sqrt(spreadRate/math.Pi) * math.Exp(x*x*math.Pi*math.Pi/(16*spreadRate))
}

// transformNoise bounds the rounding errors of transform at a share x of its points, over the sum of its weights.
func transformNoise(x float64, points int) float64 {
	return 16 * roundoff * math.Log2(float64(4*points)) * undoSpread(x) / undoSpread(0)
}

// inverse holds 1/p.
var inverse = func() (table [turnMoments + 1]float64) {
	for p := range table {
		table[p] = 1 / float64(p)
	}
	return table
}()

// spread adds weight times a Gaussian around the position at, on a periodic grid
// whose length is a power of two.
func spread(grid []float64, at, weight float64) {
	below := math.Floor(at)
	d := at - below // e^{−a(d−m)²} = e^{−ad²}·(e^{2ad})^m·e^{−am²}
	up := math.Exp(2 * spreadRate * d)
	weight *= math.Exp(-spreadRate * d * d)
	mask := len(grid) - 1
	i := int(below)
	grid[i&mask] += weight
	left, right, down := weight, weight, 1/up
	for m := 1; m <= spreadReach; m++ {
		right *= up
		left *= down
		grid[(i+m)&mask] += right * spreadTable[m]
		grid[(i-m)&mask] += left * spreadTable[m]
	}
}
