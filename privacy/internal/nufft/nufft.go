package nufft

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
)

const (
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

// Transform returns Σ weight·e^{iy·loss} at y = 0, step, 2·step, ... for a number of points that is a power of two.
func Transform(loss, weight []float64, points int, step float64) (re, im []float64) {
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

// Noise bounds the rounding errors of transform at a share x of its points, over the sum of its weights.
func Noise(x float64, points int) float64 {
	return 16 * 0x1p-53 * math.Log2(float64(4*points)) * undoSpread(x) / undoSpread(0)
}

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
