package privacy

import (
	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// ShuffledGaussian is one epoch of DP-SGD on shuffled batches: the records are put
// in a random order, cut into batches, and every batch sums a clipped vector per
// record and adds Gaussian noise. Adjacency is replace-one.
//
// One epoch is as private as one step with the same noise on all records: in
// whatever order, the record that differs is in one batch only, and everything
// before and after that batch depends on it through its noisy sum alone (parallel
// composition). Nothing is claimed from the secrecy of the order: shuffling can be
// far worse than Poisson sampling (Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha and
// Zhang, "How private are DP-SGD implementations?", 2024), and no tight bound of it
// is known.
type ShuffledGaussian struct {
	// NoiseMultiplier is σ, the noise's standard deviation divided by the
	// replace-one sensitivity, > 0 and finite: 2L for a sum of vectors that are
	// clipped to norm L.
	NoiseMultiplier float64
}

// Name returns "shuffled_gaussian".
func (m ShuffledGaussian) Name() string { return "shuffled_gaussian" }

// Adjacency returns ReplaceOne.
func (m ShuffledGaussian) Adjacency() Adjacency { return ReplaceOne }

// Validate reports the field "noise_multiplier".
func (m ShuffledGaussian) Validate() error {
	return CheckPositive("noise_multiplier", m.NoiseMultiplier)
}

// Assumptions returns what the trainer must do.
func (m ShuffledGaussian) Assumptions() []string {
	return []string{
		"an epoch uses every record at most once, and the number of records is public",
		"a smaller last batch gets the same noise on its sum as the others",
		assumeSecretNoise,
	}
}

// GaussianMu returns μ = 1/NoiseMultiplier.
func (m ShuffledGaussian) GaussianMu() float64 { return 1 / m.NoiseMultiplier }

// RenyiCurve returns ρ(α) = α·μ²/2.
func (m ShuffledGaussian) RenyiCurve() RenyiCurve {
	mu := m.GaussianMu()
	return linearRenyi(0.5 * mu * mu)
}

// DominatingPairs returns the pair of [PairMechanism]. The order is secret, so that no pair is known to
// be attained.
func (m ShuffledGaussian) DominatingPairs() pld.Pairs {
	return pld.Pairs{Upper: []pld.Pair{pld.Gaussian(m.GaussianMu())}}
}
