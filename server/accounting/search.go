package accounting

import (
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/expression"
)

// Search returns a cheap stand-in for ε at values of the environment's variables, in
// their order (that of a category does not matter). It is for the comparison of
// candidates; what is reported comes from Guarantee. named names the values for
// expressions, as Guarantee takes them.
//
// The stand-in is the [privacy.Interpolant] for the limit, so it is within 2 % of ε for
// the same steps where ε is at most limit. It is smooth in all numbers of the mechanism,
// since an epoch has DatasetSize/BatchSize steps: Guarantee rounds that to a whole
// number, which alone makes up to a relative BatchSize/(2·DatasetSize) of the steps. It
// is +Inf where Guarantee gives an error, and safe for concurrent use.
//
// Search returns nil where there is no stand-in: for anything but DP-SGD with lots of a
// fixed size or Poisson sampled ones, and for a limit that is not positive and finite.
func (f *Function) Search(named func([]float64) map[string]any, limit float64) func([]float64) float64 {
	d := f.mechanism.dpSGD
	if d == nil {
		return nil
	}
	var interpolant *privacy.Interpolant
	var err error
	switch d.sampling {
	case dparetov1.Sampling_SAMPLING_FIXED_SIZE:
		interpolant, err = privacy.InterpolateFixedSize(f.accountant, f.spec.GetDelta(), limit)
	case dparetov1.Sampling_SAMPLING_POISSON:
		interpolant, err = privacy.InterpolatePoisson(f.accountant, f.spec.GetDelta(), limit, d.adjacency)
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	n, m := native(d.datasetSize, named), native(d.batchSize, named)
	sigma, length := native(d.noiseMultiplier, named), native(d.length, named)
	return func(values []float64) float64 {
		n, m, steps := n(values), m(values), length(values)
		if !(m >= 1 && m <= n && steps >= 1) {
			return math.Inf(1)
		}
		if d.unit == unitEpochs {
			steps *= n / m
		}
		return interpolant.Epsilon(m/n, d.multiplier(sigma(values)), steps)
	}
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
