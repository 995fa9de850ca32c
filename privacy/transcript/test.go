package transcript

import (
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
)

// maxEpsilon bounds the ε of noise.
const maxEpsilon = 1e6

// Noise returns the standard deviation σ = √N/(m·μ) of Gaussian noise with which N = values
// averages of numbers in [0, 1] over m = records are (epsilon, delta)-DP together when one
// record is replaced. Both numbers must be at least 1. It returns the errors of
// [privacy.GaussianMu], and a privacy.FieldError for an epsilon above 10⁶: it protects nothing,
// and the noise would vanish.
func Noise(records, values int64, epsilon, delta float64) (float64, error) {
	if epsilon > maxEpsilon {
		return 0, privacy.FieldErrorf("epsilon", "must be at most %g, is %g", float64(maxEpsilon), epsilon)
	}
	mu, err := privacy.GaussianMu(epsilon, delta)
	return math.Sqrt(float64(values)) / (float64(records) * mu), err
}

// rounding bounds what arithmetic in float64 adds to the difference of two averages of
// numbers in [0, 1], the trainer's own included.
const rounding = 1e-12

// Sensitivity returns how far replacing one of the given number of records moves an average
// over them of numbers in [0, 1] that was computed in float64: 1/records + 1e-12.
func Sensitivity(records int64) float64 { return 1/float64(records) + rounding }

// ReleaseNoise is Noise for values that are averages in float64, as [Sensitivity] has it, and
// released by [noise.Source.Gaussian]: including the cost of rounding and grid, less than 1e-7
// of it up to 10⁵ records and 10⁹ values. It returns the errors of Noise, and
// privacy.FieldErrors for an "epsilon" or a "delta" that the grid alone exceeds.
func ReleaseNoise(records, values int64, epsilon, delta float64) (float64, error) {
	root, sensitivity := math.Sqrt(float64(values)), Sensitivity(records)
	sigma, err := Noise(records, values, epsilon, delta)
	if err != nil {
		return 0, err
	}
	// Twice the δ that the grid adds, to cover the δ that it adds at the larger noise.
	surcharge := 2 * float64(values) * noise.GaussianDelta(sensitivity, sigma)
	if !(surcharge < delta/2) {
		return 0, privacy.FieldErrorf("delta", "must exceed %g, which the grid of the noise takes", 2*surcharge)
	}
	mu, err := privacy.GaussianMu(epsilon, delta-surcharge)
	if err != nil {
		return 0, err
	}
	for range 100 { // a larger σ may have a larger grid
		enough := root * noise.Sensitivity(sensitivity, sigma) / mu
		if sigma >= enough {
			return sigma, nil
		}
		sigma = enough * (1 + 1e-12)
	}
	return 0, privacy.FieldErrorf("epsilon", "is too small for %d values", values)
}

// TestEpsilon returns ε of values averages, as [Sensitivity] has them, with noise of standard
// deviation sigma by [noise.Source.Gaussian], at delta. It is 0 for no values.
func TestEpsilon(records, values int64, sigma, delta float64) (float64, error) {
	if values == 0 {
		return 0, nil
	}
	sensitivity := Sensitivity(records)
	delta -= float64(values) * noise.GaussianDelta(sensitivity, sigma)
	g, err := privacy.Epsilon(privacy.GDP{}, privacy.Gaussian{
		Sensitivity: noise.Sensitivity(sensitivity, sigma), StandardDeviation: sigma, Neighbours: privacy.ReplaceOne,
	}, values, delta)
	return g.Epsilon, err
}
