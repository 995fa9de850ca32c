package privacy

import "errors"

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
}

// Name returns "poisson_gaussian".
func (m PoissonGaussian) Name() string { return "poisson_gaussian" }

// Adjacency returns m.Neighbours.
func (m PoissonGaussian) Adjacency() Adjacency { return m.Neighbours }

// Validate reports the fields "sampling_probability", "noise_multiplier" and
// "adjacency".
func (m PoissonGaussian) Validate() error {
	var errs []error
	if !(m.SamplingProbability > 0 && m.SamplingProbability <= 1) {
		errs = append(errs, fieldErrorf("sampling_probability", "must lie in (0, 1], is %g", m.SamplingProbability))
	}
	errs = append(errs, checkPositive("noise_multiplier", m.NoiseMultiplier), checkAdjacency(m.Neighbours))
	return errors.Join(errs...)
}

// Assumptions returns what the trainer has to do.
func (m PoissonGaussian) Assumptions() []string {
	return []string{
		"every step draws each record independently with the stated probability; batches of fixed size and shuffling are other samplers",
		"nothing that is released depends on the size of a batch",
	}
}

func (m PoissonGaussian) lossPairs() []lossPair {
	if m.Neighbours == ReplaceOne {
		return []lossPair{fixedSizePair(m.SamplingProbability, m.NoiseMultiplier/2)}
	}
	return poissonPairs(m.SamplingProbability, m.NoiseMultiplier)
}

// RenyiCurve returns the divergence of the dominating pairs, for real orders
// α > 1 by quadrature of
//
//	e^{(α−1)·ρ(α)} = E_Q[(1 + q(P/Q − 1))^α]
//
// (Mironov, Talwar and Zhang, "Rényi differential privacy of the sampled Gaussian
// mechanism", 2019; that direction is the larger one, Theorem 5).
func (m PoissonGaussian) RenyiCurve() RenyiCurve {
	return &pairRenyi{lossPart{pair: m.lossPairs()[0]}}
}
