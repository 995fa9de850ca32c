package privacy

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy/internal/pld"
	"github.com/dpareto/dpareto/privacy/internal/profile"
)

// RandomAllocation is DP-SGD on randomly allocated records ("balls in bins"): in every epoch each record takes part
// in Picks of Steps steps, drawn uniformly and independently of the other records. Every step sums a clipped vector
// per record and adds Gaussian noise. The sizes of batches are random and secret, and sums must not be divided by
// them. One run is Epochs epochs.
//
// It is not shuffling, which fixes the sizes of batches, so that a record depends on others: nothing here holds for
// it ([ShuffledGaussian]).
//
// The pair of one pick is the mean of N(e_i, σ²I) over the steps i against N(0, σ²I) (Chua, Ghazi, Harrison, Leeman,
// Kamath, Kumar, Manurangsi, Sinha and Zhang, "Balls-and-bins sampling for DP-SGD", 2024; Feldman and Shenfeld,
// "Privacy amplification by random allocation", 2025). More picks are accounted as one pick from each of as many
// blocks of steps.
type RandomAllocation struct {
	// Steps is t, the number of steps in an epoch, from 1 to 10⁶. It is a setting that does not depend on the data.
	Steps int64
	// Picks is k, in how many steps of an epoch a record takes part, 1 <= k <= t.
	Picks int64
	// NoiseMultiplier is σ, the noise's standard deviation divided by the clipping norm, > 0 and finite, under either
	// adjacency.
	NoiseMultiplier float64
	// Epochs is the number of epochs of one run, from 1 to 10⁶.
	Epochs int64
	// SameSteps says that every epoch uses the allocation of the first one. As private is one epoch with noise
	// NoiseMultiplier/√Epochs: a record adds to its step in E epochs a vector of norm √E at most.
	SameSteps  bool
	Neighbours Adjacency
	// PublicSize says that Steps was computed from the number of records, as in [PoissonGaussian]: under AddRemove that
	// number is public, and a record is zeroed out instead of removed. The guarantee is the same number.
	PublicSize bool
}

// mostAllocated bounds the numbers of steps and of epochs.
const mostAllocated = 1_000_000

// Name returns "random_allocation".
func (m RandomAllocation) Name() string { return "random_allocation" }

// Adjacency returns m.Neighbours.
func (m RandomAllocation) Adjacency() Adjacency { return m.Neighbours }

// Validate reports the fields "steps", "picks", "epochs", "noise_multiplier" and "adjacency".
func (m RandomAllocation) Validate() error {
	var errs []error
	if m.Steps < 1 || m.Steps > mostAllocated {
		errs = append(errs, FieldErrorf("steps", "must lie in [1, %d], is %d", mostAllocated, m.Steps))
	}
	if m.Picks < 1 || m.Picks > m.Steps {
		errs = append(errs, FieldErrorf("picks", "must lie in [1, steps], is %d of %d", m.Picks, m.Steps))
	}
	if m.Epochs < 1 || m.Epochs > mostAllocated {
		errs = append(errs, FieldErrorf("epochs", "must lie in [1, %d], is %d", mostAllocated, m.Epochs))
	}
	errs = append(errs, CheckPositive("noise_multiplier", m.NoiseMultiplier), CheckAdjacency(m.Neighbours))
	return errors.Join(errs...)
}

// Assumptions returns the conditions that the loader and the trainer must meet.
func (m RandomAllocation) Assumptions() []Assumption {
	draw := PremiseSampler.Assume("every epoch allocates each record to its steps by a new uniform draw, independent of the other records and of all data; " +
		"shuffling and batches of fixed size are other samplers")
	if m.SameSteps {
		draw = PremiseSampler.Assume("each record is allocated to its steps once, by a uniform draw independent of the other records and of all data, " +
			"and every epoch uses that allocation; shuffling and batches of fixed size are other samplers")
	}
	size := PremiseData.Assume("the numbers of steps and epochs are settings, which do not depend on the number of records")
	switch {
	case m.Neighbours == ReplaceOne:
		size = assumePublicSize
	case m.PublicSize:
		size = PublicSizeAssumption
	}
	return []Assumption{draw, PremiseSampler.Assume("the allocation is secret, and nothing that is released depends on the size of a batch"), assumeClipped, assumeSecretNoise, size}
}

// epochs returns the number of independent epochs, and their noise.
func (m RandomAllocation) epochs() (count int64, sigma float64) {
	if m.SameSteps {
		return 1, m.NoiseMultiplier / math.Sqrt(float64(m.Epochs))
	}
	return m.Epochs, m.NoiseMultiplier
}

// DominatingPairs returns the pairs of [PairMechanism]. Bounds from below are for one pick. ε of one run falls as δ rises;
// in the noise and the number of epochs it is monotone but for the excess of the bound.
//
// No tight pair is known if a record is replaced. Through the data set without it, for all ε₁ in [0, ε],
//
//	δ(ε) <= δ_remove(ε₁) + e^{ε₁}·δ_add(ε − ε₁),
//
// and all epochs together are at most as easy to tell apart as N(0, 1) and N(2√(kE)/σ, 1). The pair has the convex
// hull of both as its profile. If the other record adds nothing, the pairs of removing and adding are attained.
func (m RandomAllocation) DominatingPairs() pld.Pairs {
	epochs, sigma := m.epochs()
	if m.Neighbours == ReplaceOne {
		return pld.AllocationReplace(m.Steps, m.Picks, epochs, sigma, dominating)
	}
	return pld.Allocation(m.Steps, m.Picks, epochs, sigma)
}

// dominating returns a pair that dominates a symmetric profile.
func dominating(epsilon func(logDelta float64) float64) pld.Pair {
	const nodes = 80
	points, err := profile.Points(func(logDelta float64) (float64, error) { return epsilon(logDelta), nil }, profile.LeastDelta, nodes)
	if err != nil {
		panic(err) // points fail only if ε does
	}
	return profile.NewDiscretePair(points, points).Pair()
}

// RenyiCurve returns the divergence of the larger direction, for each block of steps of one pick and all epochs. For
// integer orders up to 256 it is exact for removing a record, and between them an upper bound; for adding one it is
// exact at all orders. Beyond, with very little or very much noise, and if a record is replaced, it is the bound without amplification.
func (m RandomAllocation) RenyiCurve() RenyiCurve {
	epochs, sigma := m.epochs()
	picks := float64(m.Picks) * float64(epochs)
	switch {
	case m.Neighbours == ReplaceOne:
		return linearRenyi(2 * picks / sigma / sigma)
	case !pld.HasAllocationRatios(sigma):
		return linearRenyi(0.5 * picks / sigma / sigma)
	}
	larger := m.Steps % m.Picks
	var sum renyiSum
	for _, block := range []struct{ steps, count int64 }{{m.Steps / m.Picks, m.Picks - larger}, {m.Steps/m.Picks + 1, larger}} {
		switch {
		case block.count == 0:
		case block.steps == 1:
			sum.parts = append(sum.parts, rdpPart{linearRenyi(0.5 / (sigma * sigma)), float64(block.count * epochs)})
		default:
			sum.parts = append(sum.parts, rdpPart{pld.NewAllocationRenyi(block.steps, sigma), float64(block.count * epochs)})
		}
	}
	return &sum
}
