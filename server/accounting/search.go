package accounting

import (
	"math"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
)

// Search returns two cheap stand-ins for ε, for comparing candidates; report the ε of
// Guarantee. They take the values of the environment's variables in their order (a category
// may have any value), and are safe for concurrent use. named names the values for
// expressions, as Guarantee takes them.
//
// Both evaluate one [privacy.Interpolant]: within a few per cent of ε for the same sampling
// and steps where ε is at most limit, and +Inf where Guarantee gives an error. They differ
// where lots do not divide the data:
//
//   - rounded has the probability and the whole number of steps that Guarantee has. It decides
//     what a bound allows.
//   - smooth has the probability BatchSize/DatasetSize and DatasetSize/BatchSize steps an
//     epoch, so that a search along the parameters meets no jumps. Both differ from Guarantee's
//     by up to a relative BatchSize/DatasetSize.
//
// Search returns nil for anything but DP-SGD with lots that are of a fixed size, Poisson sampled or randomly allocated, of
// any size and with guarantees for records, and for a limit that is not positive and finite.
func (f *Function) Search(named func([]float64) map[string]any, limit float64) (smooth, rounded func([]float64) float64) {
	d := f.mechanism.dpSGD
	if d == nil || d.physicalBatch != nil || d.recordsPerUser != nil {
		return nil, nil
	}
	interpolant := f.interpolant(limit)
	if interpolant == nil {
		return nil, nil
	}
	sigma, length := d.accountedNoise(named), d.length.Function(named)
	bands := func([]float64) float64 { return 1 }
	if d.bands != nil {
		bands = d.bands.Function(named)
	}
	if d.probability != nil {
		probability := d.probability.Function(named)
		search := func(values []float64) float64 {
			q, steps, b := probability(values), length(values), bands(values)
			if !(q > 0 && q <= 1 && steps >= 1 && b >= 1) {
				return math.Inf(1)
			}
			return interpolant.Epsilon(q, d.multiplier(sigma(values)), math.Ceil(steps/b))
		}
		return search, search
	}
	if d.stepsPerEpoch != nil {
		perEpoch := d.stepsPerEpoch.Function(named)
		search := func(values []float64) float64 {
			perEpoch, epochs := perEpoch(values), length(values)
			if !(perEpoch >= 1 && epochs >= 1) {
				return math.Inf(1)
			}
			return interpolant.Epsilon(1/perEpoch, d.multiplier(sigma(values)), epochs*perEpoch)
		}
		return search, search
	}
	n, m := d.datasetSize.Function(named), d.batchSize.Function(named)
	with := func(draw func(lots, length float64) (q, steps float64), whole func(rounds float64) float64) func([]float64) float64 {
		return func(values []float64) float64 {
			n, m, length, b := n(values), m(values), length(values), bands(values)
			if !(m >= 1 && m <= n && length >= 1 && b >= 1 && b*m <= n) {
				return math.Inf(1)
			}
			q, steps := draw(n/m, length)
			if d.unit == unitSteps {
				steps = length
			}
			return interpolant.Epsilon(b*q, d.multiplier(sigma(values)), whole(steps/b))
		}
	}
	draw := rounding(d.convention)
	if d.sampling == dparetov1.Sampling_SAMPLING_RANDOM_ALLOCATION {
		draw = func(lots, epochs float64) (q, steps float64) {
			lots = math.RoundToEven(lots)
			return 1 / lots, epochs * lots
		}
	}
	smooth = with(
		func(lots, epochs float64) (q, steps float64) { return 1 / lots, epochs * lots },
		func(rounds float64) float64 { return math.Max(1, rounds) })
	return smooth, with(draw, math.Ceil)
}

// interpolant returns the interpolant of ε up to a limit, or nil if there is none. Functions with the same accountant,
// sampling, adjacency and δ share it, also across studies.
func (f *Function) interpolant(limit float64) *privacy.Interpolant {
	d := f.mechanism.dpSGD
	key := interpolantKey{f.spec.GetAccountant(), f.spec.GetConversion(), d.sampling, d.adjacency, f.spec.GetDelta(), limit}
	return interpolants.get(key, func() *privacy.Interpolant {
		var made *privacy.Interpolant
		var err error
		switch d.sampling {
		case dparetov1.Sampling_SAMPLING_FIXED_SIZE:
			made, err = privacy.InterpolateFixedSize(f.accountant, f.spec.GetDelta(), limit)
		case dparetov1.Sampling_SAMPLING_POISSON:
			made, err = privacy.InterpolatePoisson(f.accountant, f.spec.GetDelta(), limit, d.adjacency)
		case dparetov1.Sampling_SAMPLING_RANDOM_ALLOCATION:
			made, err = privacy.InterpolateAllocation(f.accountant, f.spec.GetDelta(), limit, d.adjacency)
		default:
		}
		if err != nil {
			return nil
		}
		return made
	})
}

// interpolantKey tells interpolants apart.
type interpolantKey struct {
	accountant   dparetov1.Accountant
	conversion   dparetov1.Conversion
	sampling     dparetov1.Sampling
	adjacency    privacy.Adjacency
	delta, limit float64
}

// maxInterpolants bounds the interpolants that are kept. Each takes about a megabyte when it is full.
const maxInterpolants = 32

// interpolants serves all functions of the process. The order of calls does not change what an interpolant answers.
var interpolants = sharedInterpolants{kept: newCache[interpolantKey, *privacy.Interpolant](maxInterpolants)}

// sharedInterpolants keeps the interpolants used last. It is safe for concurrent use.
type sharedInterpolants struct {
	mu   sync.Mutex // held while an interpolant is made
	kept *lru.Cache[interpolantKey, *privacy.Interpolant]
}

// get returns the interpolant of a key, which is made if none is kept.
func (s *sharedInterpolants) get(key interpolantKey, build func() *privacy.Interpolant) *privacy.Interpolant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.kept.Get(key); ok {
		return found
	}
	made := build()
	if made != nil {
		s.kept.Add(key, made)
	}
	return made
}

// rounding returns a [privacy.Convention] as a function of the number of lots in the data and of
// epochs, neither whole. Without a convention it is the function for lots of a fixed size.
func rounding(c privacy.Convention) func(lots, epochs float64) (q, steps float64) {
	return func(lots, epochs float64) (q, steps float64) {
		switch c {
		case privacy.OpacusEpochs:
			return 1 / math.Ceil(lots), epochs * math.Ceil(lots)
		case privacy.TensorFlowEpochs:
			return 1 / lots, math.Ceil(epochs * lots)
		case privacy.RoundedEpochs:
		}
		return 1 / lots, epochs * math.RoundToEven(lots)
	}
}

// accountedNoise returns the noise multiplier of all that a step releases, NaN where it has none.
func (d *dpSGD) accountedNoise(named func([]float64) map[string]any) func([]float64) float64 {
	sigma := d.noiseMultiplier.Function(named)
	if d.countDeviation == nil {
		return sigma
	}
	count := d.countDeviation.Function(named)
	return func(values []float64) float64 {
		joint, err := privacy.JointNoise(sigma(values), count(values), d.adjacency)
		if err != nil {
			return math.NaN()
		}
		return joint
	}
}
