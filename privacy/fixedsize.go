package privacy

import (
	"errors"

	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// FixedSizeGaussian is one step of DP-SGD on fixed-size batches: draw exactly
// BatchSize of DatasetSize records uniformly without replacement, sum a clipped
// vector per record, add Gaussian noise. Adjacency is replace-one.
type FixedSizeGaussian struct {
	// DatasetSize is n >= 1, which is public.
	DatasetSize int64
	// BatchSize is the number of records in each batch, 1 <= BatchSize <= n.
	BatchSize int64
	// NoiseMultiplier is σ, the noise's standard deviation divided by the
	// replace-one sensitivity, > 0 and finite. For vectors clipped to norm L that
	// sensitivity is 2L for their sum and 2L/BatchSize for their mean.
	NoiseMultiplier float64
}

// Name returns "fixed_size_gaussian".
func (m FixedSizeGaussian) Name() string { return "fixed_size_gaussian" }

// Adjacency returns ReplaceOne.
func (m FixedSizeGaussian) Adjacency() Adjacency { return ReplaceOne }

// Records returns DatasetSize.
func (m FixedSizeGaussian) Records() int64 { return m.DatasetSize }

// Validate reports the fields "dataset_size", "batch_size" and
// "noise_multiplier".
func (m FixedSizeGaussian) Validate() error {
	return errors.Join(
		checkBatch(m.DatasetSize, m.BatchSize),
		CheckPositive("noise_multiplier", m.NoiseMultiplier))
}

// Assumptions returns the conditions that the trainer must meet.
func (m FixedSizeGaussian) Assumptions() []Assumption {
	return []Assumption{
		PremiseSampler.Assume("every step draws a fresh batch of exactly the stated size, uniformly without replacement; shuffling once per epoch is another sampler"),
		assumeClipped,
		assumeSecretNoise,
		assumePublicSize,
	}
}

// RenyiCurve returns the divergence of the dominating pair by quadrature, with a bound of its error
// (some 1e-10 of it): Rényi divergences are functions of an f-divergence, so that no adjacent data
// sets have a larger one. It is at
// most α/2σ², the bound without sampling, and at most the published bound that [RDP] with
// [Classic] uses, of Wang, Balle and Kasiviswanathan (2019): with u = P/Q − 1 and w = q·u,
//
//	e^{(α−1)·ρ(α)} = 1 + E_Q[((1+w)^α + (1+w)^{1−α} − 2 − w)·1{u > 0}],
//
// where (1+w)^{1−α} <= 1 − (α−1)w + C(α,2)w², so that for integers α the second term is at
// most Σ_{j>=2} C(α,j)q^j·E[u₊^j] + C(α,2)q²·E[u₊²], and each of these moments is at most the
// one that their ζ_j bounds.
func (m FixedSizeGaussian) RenyiCurve() RenyiCurve {
	return pld.NewFixedSizeRenyi(m.Rate(), m.NoiseMultiplier)
}

// DominatingPairs returns the pair of [PairMechanism]. Where all vectors but one are equal and of full
// norm, and that one is their opposite, the outputs are (1−q)Q + qP and Q, which bounds ε from below.
func (m FixedSizeGaussian) DominatingPairs() pld.Pairs {
	return pld.Pairs{
		Upper: []pld.Pair{pld.FixedSize(m.Rate(), m.NoiseMultiplier)},
		Lower: pld.Poisson(m.Rate(), m.NoiseMultiplier),
	}
}

// Rate returns the sampling rate BatchSize/DatasetSize.
func (m FixedSizeGaussian) Rate() float64 { return float64(m.BatchSize) / float64(m.DatasetSize) }
