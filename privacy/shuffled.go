package privacy

import (
	"errors"

	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// ShuffledGaussian is one epoch of DP-SGD on shuffled batches: the records are put
// in a random order, cut into batches, and every batch sums a clipped vector per
// record and adds Gaussian noise.
//
// One epoch is as private as one step with the same noise on all records: in
// whatever order, the record that differs is in one batch only, and everything
// before and after that batch depends on it through its noisy sum alone (parallel
// composition). The secrecy of the order is known to amplify privacy only with much
// noise and many batches, as for a noise multiplier of 4 and 10⁴ batches: see [pld.ShuffledReplaceOne]. Shuffling
// can be far worse than Poisson sampling (Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha and
// Zhang, "How private are DP-SGD implementations?", 2024), and no tight bound of it
// is known. Bounds from below are for trainers that use every record once an epoch.
type ShuffledGaussian struct {
	// NoiseMultiplier is σ, the noise's standard deviation divided by the
	// sensitivity under Neighbours, > 0 and finite. For a sum of vectors that are
	// clipped to norm L that sensitivity is 2L under ReplaceOne and L under AddRemove.
	NoiseMultiplier float64
	// Steps is t, the number of batches in an epoch, a smaller last one included; 0 if unknown. Only
	// bounds from below and the amplified one depend on it.
	Steps int64
	// EvenSteps says that all batches have the same size, which the amplified bound needs.
	EvenSteps bool
	// Neighbours is ReplaceOne, or AddRemove for zero-out adjacency: the number of records is public, and a
	// record's vector is 0 in its place.
	Neighbours Adjacency
}

// Name returns "shuffled_gaussian".
func (m ShuffledGaussian) Name() string { return "shuffled_gaussian" }

// Adjacency returns m.Neighbours.
func (m ShuffledGaussian) Adjacency() Adjacency { return m.Neighbours }

// Validate reports the fields "noise_multiplier", "steps" and "adjacency".
func (m ShuffledGaussian) Validate() error {
	var errs []error
	if m.Steps < 0 {
		errs = append(errs, FieldErrorf("steps", "must not be negative, is %d", m.Steps))
	}
	return errors.Join(append(errs, CheckPositive("noise_multiplier", m.NoiseMultiplier), CheckAdjacency(m.Neighbours))...)
}

// Assumptions returns the conditions that the trainer must meet.
func (m ShuffledGaussian) Assumptions() []Assumption {
	size := assumePublicSize
	if m.Neighbours == AddRemove {
		size = PremiseData.Assume(publicSize + ": a record is zeroed out in its place instead of removed (zero-out adjacency)")
	}
	all := []Assumption{
		PremiseSampler.Assume("an epoch uses every record at most once"), assumeClipped,
		PremiseNoise.Assume("a smaller last batch gets the same noise on its sum as the others"), assumeSecretNoise, size,
	}
	if _, isNormal := m.DominatingPairs().Upper[0].Normal(); !isNormal {
		all = append([]Assumption{PremiseSampler.Assume("every epoch visits the records in a fresh, uniform and secret order, cut into batches of the same size")}, all...)
	}
	return all
}

// GaussianMu returns μ = 1/NoiseMultiplier.
func (m ShuffledGaussian) GaussianMu() float64 { return 1 / m.NoiseMultiplier }

// RenyiCurve returns ρ(α) = α·μ²/2.
func (m ShuffledGaussian) RenyiCurve() RenyiCurve {
	mu := m.GaussianMu()
	return linearRenyi(0.5 * mu * mu)
}

// DominatingPairs returns the pairs of [PairMechanism]. That those from below dominate is not known.
func (m ShuffledGaussian) DominatingPairs() pld.Pairs {
	lots := pld.Lots{Count: m.Steps, AreEven: m.EvenSteps}
	if m.Neighbours == ReplaceOne {
		return pld.ShuffledReplaceOne(lots, m.NoiseMultiplier, dominating)
	}
	return pld.ShuffledZeroOut(lots, m.NoiseMultiplier, dominating)
}
