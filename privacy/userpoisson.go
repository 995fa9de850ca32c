package privacy

import (
	"errors"

	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// UserPoissonGaussian is one step of [PoissonGaussian] with a guarantee for users: data sets differ in all records of one
// user, of whom there are at most RecordsPerUser (Charles, Ganesh, McKenna, McMahan, Mitchell, Pillutla and Rush,
// "Fine-tuning large language models with user-level differential privacy", 2024). Records are drawn and clipped one by
// one. Adjacency is add-remove.
type UserPoissonGaussian struct {
	RecordsPerUser      int64   // G, from 1 to 1,000
	SamplingProbability float64 // q, 0 < q <= 1
	// NoiseMultiplier is σ, the noise's standard deviation divided by the clipping norm of a record, > 0 and finite.
	NoiseMultiplier float64
	// PublicSize is as for [PoissonGaussian].
	PublicSize bool
}

// mostRecordsPerUser bounds the number of components of a pair.
const mostRecordsPerUser = 1000

// Name returns "user_poisson_gaussian".
func (m UserPoissonGaussian) Name() string { return "user_poisson_gaussian" }

// Adjacency returns AddRemove.
func (m UserPoissonGaussian) Adjacency() Adjacency { return AddRemove }

// record returns the mechanism of which the guarantee is for a record.
func (m UserPoissonGaussian) record() PoissonGaussian {
	return PoissonGaussian{m.SamplingProbability, m.NoiseMultiplier, AddRemove, m.PublicSize}
}

// Validate reports the fields "records_per_user", "sampling_probability" and "noise_multiplier".
func (m UserPoissonGaussian) Validate() error {
	var errs []error
	if m.RecordsPerUser < 1 || m.RecordsPerUser > mostRecordsPerUser {
		errs = append(errs, FieldErrorf("records_per_user", "must lie in [1, %d], is %d", mostRecordsPerUser, m.RecordsPerUser))
	}
	return errors.Join(append(errs, m.record().Validate())...)
}

// Assumptions returns the conditions that the data and the trainer must meet.
func (m UserPoissonGaussian) Assumptions() []Assumption {
	return append(m.record().Assumptions(),
		PremiseData.Assume("the guarantee is for all records of a user: nobody has more records than stated, by a rule that looks at one user's data only"))
}

// DominatingPairs returns the pairs of [PairMechanism].
func (m UserPoissonGaussian) DominatingPairs() pld.Pairs {
	switch {
	case m.SamplingProbability == 1:
		return pld.Attained(pld.Gaussian(float64(m.RecordsPerUser) / m.NoiseMultiplier))
	case m.RecordsPerUser == 1:
		return m.record().DominatingPairs()
	default:
		return pld.Attained(pld.PoissonGroup(m.SamplingProbability, m.NoiseMultiplier, m.RecordsPerUser)...)
	}
}

// RenyiCurve returns the divergence of the pair for removing a user, by quadrature.
func (m UserPoissonGaussian) RenyiCurve() RenyiCurve {
	return pld.NewRenyi(m.DominatingPairs().Upper[0])
}
