package privacy

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// TruncatedPoissonGaussian is one step of DP-SGD on Poisson samples that must fit into a physical batch: as
// [PoissonGaussian], but of a sample with more than PhysicalBatch records a uniform subset of that size is kept. Smaller
// samples may be padded with zeros. The sum must not be divided by the size of the sample.
//
// The number of records is public, under either adjacency. Under AddRemove the guarantee compares data sets of
// DatasetSize records with what remains without one of them: a missing record is in no sample and takes no one's place.
type TruncatedPoissonGaussian struct {
	DatasetSize         int64   // n, from 1 to 10¹²
	PhysicalBatch       int64   // B, the largest number of records in a batch, >= 1; nothing is truncated from n on
	SamplingProbability float64 // q, 0 < q <= 1
	// NoiseMultiplier is σ, the noise's standard deviation divided by the clipping norm, > 0 and finite, under either
	// adjacency.
	NoiseMultiplier float64
	Neighbours      Adjacency
}

// mostRecords bounds DatasetSize of a TruncatedPoissonGaussian: the tails of binomial distributions are sums.
const mostRecords = 1_000_000_000_000

// mostTruncatedNoise is the largest noise multiplier: beyond, losses of a mixture are lost in rounding errors.
const mostTruncatedNoise = 1e9

// Name returns "truncated_poisson_gaussian".
func (m TruncatedPoissonGaussian) Name() string { return "truncated_poisson_gaussian" }

// Adjacency returns m.Neighbours.
func (m TruncatedPoissonGaussian) Adjacency() Adjacency { return m.Neighbours }

// Records returns DatasetSize.
func (m TruncatedPoissonGaussian) Records() int64 { return m.DatasetSize }

// Validate reports the fields "dataset_size", "physical_batch", "sampling_probability", "noise_multiplier" and
// "adjacency".
func (m TruncatedPoissonGaussian) Validate() error {
	var errs []error
	if m.DatasetSize < 1 || m.DatasetSize > mostRecords {
		errs = append(errs, FieldErrorf("dataset_size", "must lie in [1, %d], is %d", int64(mostRecords), m.DatasetSize))
	}
	if m.PhysicalBatch < 1 {
		errs = append(errs, FieldErrorf("physical_batch", "must be at least 1, is %d", m.PhysicalBatch))
	}
	if m.NoiseMultiplier > mostTruncatedNoise {
		errs = append(errs, FieldErrorf("noise_multiplier", "must be at most %g, is %g", mostTruncatedNoise, m.NoiseMultiplier))
	}
	return errors.Join(append(errs, m.poisson().Validate())...)
}

// poisson returns the mechanism with batches of any size.
func (m TruncatedPoissonGaussian) poisson() PoissonGaussian {
	return PoissonGaussian{m.SamplingProbability, m.NoiseMultiplier, m.Neighbours, true}
}

// Assumptions returns the conditions that the trainer must meet.
func (m TruncatedPoissonGaussian) Assumptions() []Assumption {
	size := assumePublicSize
	if m.Neighbours == AddRemove {
		size = assumeAbsentRecord
	}
	return []Assumption{
		PremiseSampler.Assume("every step draws each record independently with the stated probability; if more records are drawn than fit in the " +
			"physical batch, a uniform subset that fills it is kept"),
		PremiseSampler.Assume("nothing that is released depends on the size of a batch, or on whether records were left out"),
		assumeClipped, assumeSecretNoise, size,
	}
}

// DominatingPairs returns the pairs of [PairMechanism]: with the probability that the other records fill the batch,
// Poisson sampling with half the noise, and otherwise Poisson sampling. Bounds from below are for data sets whose
// other records add nothing.
func (m TruncatedPoissonGaussian) DominatingPairs() pld.Pairs {
	switch {
	case m.PhysicalBatch >= m.DatasetSize:
		return m.poisson().DominatingPairs()
	case m.Neighbours == ReplaceOne:
		return pld.TruncatedReplaceOne(m.DatasetSize, m.PhysicalBatch, m.SamplingProbability, m.NoiseMultiplier)
	default:
		return pld.TruncatedPoisson(m.DatasetSize, m.PhysicalBatch, m.SamplingProbability, m.NoiseMultiplier)
	}
}

// RenyiCurve returns the divergence of the dominating pairs by quadrature. The one for removing a record is the larger
// one, as it is of both parts.
func (m TruncatedPoissonGaussian) RenyiCurve() RenyiCurve {
	return pld.NewRenyi(m.DominatingPairs().Upper[0])
}

// FreeBatch is by how much, relative to it, ε of a batch of [SmallestPhysicalBatch] may exceed the one without truncation.
const FreeBatch = 1e-3

// SmallestPhysicalBatch returns the PhysicalBatch, of at least the mean size of a sample, from which on truncation
// costs nothing: ε of steps runs of m exceeds the one without truncation by a share of [FreeBatch] at most, and by more
// with one record less. Of few records a much smaller batch can cost less again, since it leaves out so many. PhysicalBatch
// of m is ignored. The errors are the accountant's.
func SmallestPhysicalBatch(a Accountant, m TruncatedPoissonGaussian, steps int64, delta float64) (int64, error) {
	m.PhysicalBatch = m.DatasetSize
	whole, err := Epsilon(a, m, steps, delta)
	if err != nil {
		return 0, err
	}
	tooSmall, enough := int64(math.Ceil(m.SamplingProbability*float64(m.DatasetSize)))-1, m.DatasetSize
	for enough-tooSmall > 1 {
		m.PhysicalBatch = tooSmall + (enough-tooSmall)/2
		g, err := Epsilon(a, m, steps, delta)
		if err != nil {
			return 0, err
		}
		if g.Epsilon <= whole.Epsilon*(1+FreeBatch) {
			enough = m.PhysicalBatch
		} else {
			tooSmall = m.PhysicalBatch
		}
	}
	return enough, nil
}
