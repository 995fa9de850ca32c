package privacy

import (
	"errors"

	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// BandMF is one round of DP-SGD with banded correlated noise (DP-BandMF). The records are split into Bands groups, and
// a round has Bands steps: step j draws each record of group j with probability SamplingProbability, independently,
// sums a clipped vector per drawn record, and adds a row of C⁻¹Z. C is a lower triangular matrix with at most Bands
// bands and columns of norm at most 1, over all steps of the run, and Z is Gaussian noise. A run is a [Composition] of
// ⌈steps/Bands⌉ rounds. With one band it is [PoissonGaussian].
//
// A round is as private as one step of Poisson sampling with its probability and its noise (Choquette-Choo, Ganesh,
// McKenna, McMahan, Rush, Thakurta and Xu, "(Amplified) banded matrix factorization", 2023, Theorem 4). The releases
// follow from C·G + Z, for gradients G. A record of group j changes G at the steps j, j + b, j + 2b, … alone, and there
// the rows t to t + b − 1 of C·G, which do not meet the rows of its other steps. Given all rows before t, the record
// takes part at t with probability q and then moves these rows by the column of C times one known vector of norm at
// most 1; what other records add to them depends on the record through released rows alone. So these rows are a
// Gaussian mechanism of sensitivity 1 on a Poisson sample, and the groups of rows compose.
//
// The split must not let a record move others to another group: each record's group depends on nothing but itself, or
// the number of records is public and a missing record leaves its place empty. Then groups may have equal sizes.
type BandMF struct {
	// Bands is b, the number of groups and a bound on the number of bands of C, >= 1.
	Bands int64
	// SamplingProbability is q in (0, 1], with which a step draws each record of its group. For lots of expected size m
	// from n records it is m·b/n.
	SamplingProbability float64
	// NoiseMultiplier is σ, the standard deviation of Z divided by the clipping norm, > 0 and finite, under either
	// adjacency.
	NoiseMultiplier float64
	Neighbours      Adjacency
	// PublicSize says that SamplingProbability, the number of steps or the groups were computed from the number of
	// records, as in [PoissonGaussian].
	PublicSize bool
}

// Name returns "band_mf".
func (m BandMF) Name() string { return "band_mf" }

// Adjacency returns m.Neighbours.
func (m BandMF) Adjacency() Adjacency { return m.Neighbours }

// Validate reports the fields "bands", "sampling_probability", "noise_multiplier" and "adjacency".
func (m BandMF) Validate() error {
	var bands error
	if m.Bands < 1 {
		bands = FieldErrorf("bands", "must be at least 1, is %d", m.Bands)
	}
	return errors.Join(bands, m.round().Validate())
}

// round returns a step of Poisson sampling that is as private as a round.
func (m BandMF) round() PoissonGaussian {
	return PoissonGaussian{
		SamplingProbability: m.SamplingProbability, NoiseMultiplier: m.NoiseMultiplier, Neighbours: m.Neighbours, PublicSize: m.PublicSize,
	}
}

// Assumptions returns the conditions that the loader and the trainer must meet.
func (m BandMF) Assumptions() []Assumption {
	split := PremiseData.Assume("each record's group depends on no other record")
	if m.PublicSize || m.Neighbours == ReplaceOne {
		split = PremiseData.Assume("the groups depend on the number of records and on no record, and a missing record leaves its place empty")
	}
	return []Assumption{
		PremiseSampler.Assume("step i draws each record of group i modulo bands independently with the stated probability, and no record of other groups; " +
			"batches of fixed size, shuffling and minimum separation are other samplers"),
		PremiseSampler.Assume("nothing that is released depends on the size of a batch"),
		assumeClipped,
		assumeSecretNoise,
		split,
		m.round().sizeAssumption(),
		PremiseTheorem.Assume("the matrix has at most as many bands as there are groups, columns of norm at most 1 after rounding, and entries that do not depend on the data"),
	}
}

// DominatingPairs returns the pairs of [PairMechanism]. They are attained if the columns have norm 1.
func (m BandMF) DominatingPairs() pld.Pairs { return m.round().DominatingPairs() }

// RenyiCurve returns the divergence of [PoissonGaussian].
func (m BandMF) RenyiCurve() RenyiCurve { return m.round().RenyiCurve() }
