package accounting

import (
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/expression"
)

// Search returns two cheap stand-ins for ε, for comparing candidates; report the ε of
// Guarantee. They take the values of the environment's variables in their order (a category
// may have any value), and are safe for concurrent use. named names the values for
// expressions, as Guarantee takes them.
//
// Both evaluate one [privacy.Interpolant]: within a few per cent of ε for the same steps
// where ε is at most limit, and +Inf where Guarantee gives an error. They differ in the steps
// of an epoch:
//
//   - rounded has a whole number of them, like Guarantee. It decides what a bound allows.
//   - smooth has DatasetSize/BatchSize, so that a search along the parameters meets no jumps.
//     Its steps differ by up to a relative BatchSize/(2·DatasetSize), a quarter for lots of
//     half the data.
//
// Search returns nil for anything but DP-SGD with lots of a fixed size or Poisson sampled
// ones, and for a limit that is not positive and finite.
func (f *Function) Search(named func([]float64) map[string]any, limit float64) (smooth, rounded func([]float64) float64) {
	d := f.mechanism.dpSGD
	if d == nil {
		return nil, nil
	}
	var interpolant *privacy.Interpolant
	var err error
	switch d.sampling {
	case dparetov1.Sampling_SAMPLING_FIXED_SIZE:
		interpolant, err = privacy.InterpolateFixedSize(f.accountant, f.spec.GetDelta(), limit)
	case dparetov1.Sampling_SAMPLING_POISSON:
		interpolant, err = privacy.InterpolatePoisson(f.accountant, f.spec.GetDelta(), limit, d.adjacency)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, nil
	}
	n, m := native(d.datasetSize, named), native(d.batchSize, named)
	sigma, length := native(d.noiseMultiplier, named), native(d.length, named)
	with := func(stepsPerEpoch func(float64) float64) func([]float64) float64 {
		return func(values []float64) float64 {
			n, m, steps := n(values), m(values), length(values)
			if !(m >= 1 && m <= n && steps >= 1) {
				return math.Inf(1)
			}
			if d.unit == unitEpochs {
				steps *= stepsPerEpoch(n / m)
			}
			return interpolant.Epsilon(m/n, d.multiplier(sigma(values)), steps)
		}
	}
	return with(func(x float64) float64 { return x }), with(math.RoundToEven) // as privacy.StepsPerEpoch
}

// native returns the Go form of an expression, or a detour through CEL.
func native(n *expression.Number, named func([]float64) map[string]any) expression.Native {
	if f := n.Native(); f != nil {
		return f
	}
	return func(values []float64) float64 {
		x, err := n.Float(named(values))
		if err != nil {
			return math.NaN()
		}
		return x
	}
}
