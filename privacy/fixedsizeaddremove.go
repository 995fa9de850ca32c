package privacy

import (
	"errors"

	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// FixedSizeAddRemoveGaussian is one step of DP-SGD on the batches of [FixedSizeGaussian] when a record is added or removed:
// it compares data sets of DatasetSize records with what remains without one of them, from which batches of the same size
// are drawn.
//
// Proof of its pair. A batch has the record x with probability q = BatchSize/DatasetSize, and else is a batch of the
// others. With x it is a uniform batch of the others in which x takes the place of a uniform member y. Given the batch and
// y, the outputs are (1−q)·N(y) + q·N(x) and N(y), which are easiest to tell apart if y = −x. By joint convexity that
// dominates; and it is attained if all others are −x. It is Poisson sampling with half the noise.
type FixedSizeAddRemoveGaussian struct {
	DatasetSize int64 // n >= 1, which is public
	BatchSize   int64 // the number of records in each batch, 1 <= BatchSize <= n; all that there are if it is n
	// NoiseMultiplier is σ, the noise's standard deviation divided by the clipping norm, > 0 and finite.
	NoiseMultiplier float64
}

// Name returns "fixed_size_add_remove_gaussian".
func (m FixedSizeAddRemoveGaussian) Name() string { return "fixed_size_add_remove_gaussian" }

// Adjacency returns AddRemove.
func (m FixedSizeAddRemoveGaussian) Adjacency() Adjacency { return AddRemove }

// Records returns DatasetSize.
func (m FixedSizeAddRemoveGaussian) Records() int64 { return m.DatasetSize }

// Validate reports the fields "dataset_size", "batch_size" and "noise_multiplier".
func (m FixedSizeAddRemoveGaussian) Validate() error {
	return errors.Join(checkBatch(m.DatasetSize, m.BatchSize), CheckPositive("noise_multiplier", m.NoiseMultiplier))
}

// Assumptions returns the conditions that the trainer must meet.
func (m FixedSizeAddRemoveGaussian) Assumptions() []Assumption {
	return []Assumption{
		PremiseSampler.Assume("every step draws a fresh batch of exactly the stated size, uniformly without replacement; shuffling once per epoch is another sampler"),
		assumeClipped,
		assumeSecretNoise,
		assumeAbsentRecord,
	}
}

// DominatingPairs returns the pairs of [PairMechanism], which are attained.
func (m FixedSizeAddRemoveGaussian) DominatingPairs() pld.Pairs {
	if m.BatchSize == m.DatasetSize {
		return pld.Attained(pld.Gaussian(1 / m.NoiseMultiplier))
	}
	return pld.Attained(pld.Poisson(float64(m.BatchSize)/float64(m.DatasetSize), 0.5*m.NoiseMultiplier)...)
}

// RenyiCurve returns the divergence of the pair for removing a record, as of [PoissonGaussian].
func (m FixedSizeAddRemoveGaussian) RenyiCurve() RenyiCurve {
	return pld.NewRenyi(m.DominatingPairs().Upper[0])
}
