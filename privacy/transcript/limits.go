package transcript

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// EffectiveMu returns the μ of a mechanism that is μ-Gaussian DP and of which only an
// accuracy is published, over m = records test records and with noise of standard
// deviation sigma, in the worst case: the model is one number w = q + N(0, 1/μ²), and the
// test records are thresholds spread over the interval of width 2K + μ, in units of 1/μ,
// in which w falls, so that the accuracy is w itself up to scale and rounding to 1/m,
//
//	μ/√(1 + ((2K+μ)σ)² + ((2K+μ)/m)²/12).
//
// With the noise of a test set it is hardly less than μ: no analysis that knows only the
// guarantee of the mechanism can do better.
func EffectiveMu(mu, sigma float64, records int64, k float64) float64 {
	width := 2*k + mu
	rounding := width / float64(records)
	return mu / math.Sqrt(1+width*width*sigma*sigma+rounding*rounding/12)
}

// Contraction returns the Dobrushin coefficient 2Φ(W/2σ) − 1 of Gaussian noise of standard
// deviation sigma on numbers in an interval of the given width: the factor by which the
// noise shrinks total variation.
func Contraction(width, sigma float64) float64 {
	return 2*distuv.UnitNormal.CDF(width/(2*sigma)) - 1
}
