package transcript

import (
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
)

// Noise returns the standard deviation σ = √N/(m·μ) of Gaussian noise with which N =
// values averages of numbers in [0, 1] over m = records are (epsilon, delta)-DP together
// when one record is replaced. Both numbers must be at least 1. The errors are those of
// [privacy.GaussianMu].
func Noise(records, values int64, epsilon, delta float64) (float64, error) {
	mu, err := privacy.GaussianMu(epsilon, delta)
	return math.Sqrt(float64(values)) / (float64(records) * mu), err
}

// ReleaseNoise is Noise for values that are released by [noise.Source.Gaussian]: with what
// its grid costs, less than 1e-7 of it up to 10⁹ values.
func ReleaseNoise(records, values int64, epsilon, delta float64) (float64, error) {
	root := math.Sqrt(float64(values))
	sigma, err := Noise(records, values, epsilon, delta)
	if err != nil {
		return 0, err
	}
	mu, err := privacy.GaussianMu(epsilon, delta-float64(values)*noise.GaussianDelta(1/float64(records), sigma))
	if err != nil {
		return 0, err
	}
	// A grid is at most 2⁻⁴⁰σ, and σ may grow over a power of two by what it adds.
	sigma = root / (float64(records) * (mu - root*0x1p-39))
	if !(sigma > 0) {
		return 0, privacy.FieldErrorf("epsilon", "is too small for so many values")
	}
	return sigma, nil
}

// TestEpsilon returns ε of values averages over records with noise of standard deviation
// sigma by [noise.Source.Gaussian], at delta. It is 0 for no values.
func TestEpsilon(records, values int64, sigma, delta float64) (float64, error) {
	if values == 0 {
		return 0, nil
	}
	sensitivity := 1 / float64(records)
	delta -= float64(values) * noise.GaussianDelta(sensitivity, sigma)
	g, err := privacy.Epsilon(privacy.GDP{}, privacy.Gaussian{
		Sensitivity: noise.Sensitivity(sensitivity, sigma), Sigma: sigma, Neighbours: privacy.ReplaceOne,
	}, values, delta)
	return g.Epsilon, err
}
