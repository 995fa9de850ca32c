package privacy

import (
	"errors"

	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// PoissonGaussian is one step of DP-SGD on Poisson samples: each record is drawn
// with probability SamplingProbability, independently, a clipped vector per
// drawn record is summed, and Gaussian noise added. The size of the batch is
// random and secret, and the sum must not be divided by it.
type PoissonGaussian struct {
	SamplingProbability float64 // q, 0 < q <= 1
	// NoiseMultiplier is σ, the noise's standard deviation divided by the clipping
	// norm, > 0 and finite, under either adjacency.
	NoiseMultiplier float64
	Neighbours      Adjacency
	// PublicSize says that SamplingProbability or the number of steps was computed from the
	// number of records. Under AddRemove that number is then public: where a record is missing,
	// another one without influence counts in its place (zero-out adjacency), for which the
	// guarantee is the same number.
	PublicSize bool
}

// PublicSizeAssumption is the assumption of a PoissonGaussian or RandomAllocation with PublicSize under
// AddRemove.
var PublicSizeAssumption = PremiseData.Assume("the number of records is public, since the sampling probability and the number of steps follow from it: " +
	"a record is zeroed out instead of removed (zero-out adjacency)")

// Name returns "poisson_gaussian".
func (m PoissonGaussian) Name() string { return "poisson_gaussian" }

// Adjacency returns m.Neighbours.
func (m PoissonGaussian) Adjacency() Adjacency { return m.Neighbours }

// Validate reports the fields "sampling_probability", "noise_multiplier" and
// "adjacency".
func (m PoissonGaussian) Validate() error {
	var errs []error
	if !(m.SamplingProbability > 0 && m.SamplingProbability <= 1) {
		errs = append(errs, FieldErrorf("sampling_probability", "must lie in (0, 1], is %g", m.SamplingProbability))
	}
	errs = append(errs, CheckPositive("noise_multiplier", m.NoiseMultiplier), CheckAdjacency(m.Neighbours))
	return errors.Join(errs...)
}

// Assumptions returns the conditions that the trainer must meet.
func (m PoissonGaussian) Assumptions() []Assumption {
	return []Assumption{
		PremiseSampler.Assume("every step draws each record independently with the stated probability; batches of fixed size and shuffling are other samplers"),
		PremiseSampler.Assume("nothing that is released depends on the size of a batch"),
		assumeClipped,
		assumeSecretNoise,
		m.sizeAssumption(),
	}
}

// sizeAssumption says whether the number of records is public.
func (m PoissonGaussian) sizeAssumption() Assumption {
	switch {
	case m.Neighbours == ReplaceOne:
		return assumePublicSize
	case m.PublicSize:
		return PublicSizeAssumption
	default:
		return PremiseData.Assume("the sampling probability and the number of steps are settings, which do not depend on the number of records")
	}
}

// DominatingPairs returns the pairs of [PairMechanism].
func (m PoissonGaussian) DominatingPairs() pld.Pairs {
	if m.Neighbours == ReplaceOne {
		return pld.Attained(pld.ReplaceOne(m.SamplingProbability, m.NoiseMultiplier))
	}
	return pld.Attained(pld.Poisson(m.SamplingProbability, m.NoiseMultiplier)...)
}

// RenyiCurve returns the divergence of the dominating pairs, for real orders
// α > 1 by quadrature of
//
//	e^{(α−1)·ρ(α)} = E_Q[(1 + q(P/Q − 1))^α]
//
// (Mironov, Talwar and Zhang, "Rényi differential privacy of the sampled Gaussian mechanism",
// 2019; that direction is the larger one, Theorem 5), for integers by the binomial theorem. If
// a record is replaced it is the divergence of the pair (1−q)N(0, σ²) + qN(±1, σ²), by
// quadrature.
func (m PoissonGaussian) RenyiCurve() RenyiCurve {
	return pld.NewRenyi(m.DominatingPairs().Upper[0])
}
