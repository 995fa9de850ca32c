package accounting

import (
	"fmt"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/meter"
)

// Codes of warnings about samplers, and the name of a derived quantity.
const (
	// warnShuffled marks shuffled lots where another sampler would cost less.
	warnShuffled = "SHUFFLED_LOTS"
	// warnTruncated marks lots that are truncated so often that a larger physical batch would cost less.
	warnTruncated = "TRUNCATED_LOTS"
	// smallestPhysicalBatch is [privacy.SmallestPhysicalBatch].
	smallestPhysicalBatch = "smallest_physical_batch"
)

// advise adds to the response of one guarantee the cost of the same training with other samplers, if that is less.
// Where it takes too much work, it adds nothing.
func advise(work *meter.Work, r evaluated, response *dparetov1.ComputeEpsilonResponse) {
	g := response.GetGuarantees()[0]
	a := adviser{privacy.Within(privacy.Exact{UpperOnly: true}, work), g}
	switch m := r.mechanism.(type) {
	case privacy.ShuffledGaussian:
		a.unshuffled(m, r)
	case privacy.TruncatedPoissonGaussian:
		if size, err := privacy.SmallestPhysicalBatch(a.accountant, m, r.runs, g.GetDelta()); err == nil {
			response.Derived[smallestPhysicalBatch] = float64(size)
			a.untruncated(m, r.runs, size)
		}
	}
}

// adviser compares other mechanisms with a guarantee.
type adviser struct {
	accountant privacy.Accountant
	guarantee  *dparetov1.PrivacyGuarantee
}

func (a adviser) epsilon(m privacy.Mechanism, runs int64) (float64, error) {
	g, err := privacy.Epsilon(a.accountant, m, runs, a.guarantee.GetDelta())
	return g.Epsilon, err
}

func (a adviser) warnf(code, format string, args ...any) {
	a.guarantee.Warnings = append(a.guarantee.Warnings, &dparetov1.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
}

// unshuffled states the cost of the samplers that are known to amplify privacy, with the same noise and size of
// lots.
func (a adviser) unshuffled(m privacy.ShuffledGaussian, r evaluated) {
	clipped, steps := m.NoiseMultiplier, int64(0) // noise relative to the clipping norm
	var fixedSize privacy.Mechanism = privacy.FixedSizeAddRemoveGaussian{DatasetSize: r.datasetSize, BatchSize: r.lotSize, NoiseMultiplier: clipped}
	if m.Neighbours == privacy.ReplaceOne {
		clipped *= 2
		fixedSize = privacy.FixedSizeGaussian{DatasetSize: r.datasetSize, BatchSize: r.lotSize, NoiseMultiplier: m.NoiseMultiplier}
	}
	q, err := privacy.RoundedEpochs.SamplingProbability(r.datasetSize, r.lotSize)
	if err == nil {
		steps, err = privacy.RoundedEpochs.Steps(r.datasetSize, r.lotSize, r.runs)
	}
	if err != nil {
		return
	}
	var epsilons [3]float64
	for i, alternative := range []privacy.Part{
		{Mechanism: privacy.RandomAllocation{Steps: m.Steps, Picks: 1, NoiseMultiplier: clipped, Epochs: r.runs, Neighbours: m.Neighbours}, Count: 1},
		{Mechanism: privacy.PoissonGaussian{SamplingProbability: q, NoiseMultiplier: clipped, Neighbours: m.Neighbours, PublicSize: true}, Count: steps},
		{Mechanism: fixedSize, Count: steps},
	} {
		if epsilons[i], err = a.epsilon(alternative.Mechanism, alternative.Count); err != nil {
			return
		}
	}
	if min(epsilons[0], epsilons[1], epsilons[2]) < a.guarantee.GetEpsilon() {
		a.warnf(warnShuffled, "with the same noise and size of lots, epsilon would be %s with random allocation, %s with Poisson lots and %s with fresh "+
			"lots of a fixed size. For the first, let the loader draw a step of every epoch for each record; for the others, let it draw every lot anew",
			show.NumberUp(epsilons[0]), show.NumberUp(epsilons[1]), show.NumberUp(epsilons[2]))
	}
}

// untruncated says from which physical batch on truncation costs nothing, if the one of m is smaller.
func (a adviser) untruncated(m privacy.TruncatedPoissonGaussian, runs, size int64) {
	if m.PhysicalBatch >= size {
		return
	}
	m.PhysicalBatch = size
	epsilon, err := a.epsilon(m, runs)
	if err == nil && epsilon < a.guarantee.GetEpsilon() {
		a.warnf(warnTruncated, "lots are often larger than the physical batch: with room for %d records, which cost nothing, epsilon would be %s",
			size, show.NumberUp(epsilon))
	}
}
