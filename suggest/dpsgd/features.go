package dpsgd

import (
	"math"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Run is what a run of DP-SGD depends on besides its data and model. All numbers are positive.
type Run struct {
	LearningRate float64 // η
	ClippingNorm float64 // C
	Noise        float64 // κσ, the standard deviation of the noise in the sum of a lot's gradients, over C
	LotSize      float64 // m, expected for Poisson sampled lots
	Steps        float64 // T
}

// The coordinates of a run, in the order of [Run.Coordinates].
const (
	LogPath     = iota // ln R
	LogRatio           // ln ν
	LogNorm            // ln C
	LogSteps           // ln T
	LogLotSize         // ln m
	Coordinates        // their number
)

// Coordinates returns the logarithms of R, ν, C, T and m. A normalised optimizer, which divides a
// gradient by its size as Adam does, goes R = ηT far.
func (r Run) Coordinates(normalized bool) [Coordinates]float64 {
	path := r.LearningRate * r.Steps
	if !normalized {
		path *= r.ClippingNorm
	}
	return [Coordinates]float64{
		math.Log(path), math.Log(r.Noise / (r.LotSize * math.Sqrt(r.Steps))),
		math.Log(r.ClippingNorm), math.Log(r.Steps), math.Log(r.LotSize),
	}
}

// lengths are typical length scales of the logit of an error in the coordinates. They come from
// a Gaussian process fitted to runs of linear models on Adult, MNIST and breast cancer, rounded.
var lengths = [Coordinates]float64{3, 7, 5, 20, 15}

// centres are typical coordinates, in the middle of those runs, rounded.
var centres = [Coordinates]float64{2.5, -6, -0.5, 7, 4.5}

// Scale returns coordinates as inputs of surrogates: about 1/2 in the middle, and a typical length
// scale is 1/2. Coordinates that are not finite, of runs that cannot be, are taken to be typical.
func Scale(c [Coordinates]float64) [Coordinates]float64 {
	for k, v := range c {
		c[k] = 0.5
		if x := 0.5 + (v-centres[k])/(2*lengths[k]); !math.IsNaN(x) && !math.IsInf(x, 0) {
			c[k] = x
		}
	}
	return c
}

// Features returns the scaled coordinates as features. run returns the run of a configuration, whose
// numerical parameters may have any values between their bounds. It depends on the given parameters, of
// which the coordinates determine those in replaced; see [suggest.Features].
func Features(run func(space.Point) Run, normalized bool, parameters, replaced []int) *suggest.Features {
	return &suggest.Features{
		Count: Coordinates,
		Evaluate: func(dst []float64, q space.Point) {
			scaled := Scale(run(q).Coordinates(normalized))
			copy(dst, scaled[:])
		},
		Parameters: parameters,
		Replaced:   replaced,
		Spread:     []int{LogPath, LogRatio},
	}
}
