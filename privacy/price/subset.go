package price

import (
	"fmt"
	"math"
	"strconv"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/tuning"
)

// size returns the number of records of the subset.
func (s *Subset) size(all privacy.FixedSizeGaussian) int64 {
	return max(1, int64(math.Round(s.Share*float64(all.DatasetSize))))
}

// run returns one run on the subset, given a run on all records.
func (s *Subset) run(all privacy.FixedSizeGaussian, steps int64) (privacy.Part, error) {
	one := privacy.FixedSizeGaussian{DatasetSize: s.size(all), BatchSize: s.BatchSize, NoiseMultiplier: all.NoiseMultiplier}
	if one.BatchSize == 0 {
		one.BatchSize = max(1, int64(math.Round(s.Share*float64(all.BatchSize))))
		one.BatchSize = min(one.BatchSize, one.DatasetSize)
	}
	var err error
	if s.Epochs > 0 {
		steps, err = privacy.Steps(one.DatasetSize, one.BatchSize, s.Epochs)
	}
	return privacy.Part{Mechanism: one, Count: steps}, err
}

// finalAssumption lists the decisions that precede the tuning.
var finalAssumption = privacy.PremiseFixedInAdvance.Assume(
	"the noise, the lots and the steps of the run on all were fixed before the tuning, which chooses only what its guarantee does not depend on")

// onSubset searches on a subset and then runs once on all records. Of the test records only the
// search on the subset makes use: the score of the run on all is not released.
func (s *Search) onSubset(f family) way {
	records := s.Run.Mechanism.(privacy.FixedSizeGaussian) // as Validate says
	share := strconv.FormatFloat(100*float64(s.Subset.size(records))/float64(records.DatasetSize), 'g', 3, 64)
	w := s.bestOf(fmt.Sprintf("best of K on %s %%, %s; one run on all", share, f.name), "the model of the run on all", 1, f)
	w.count = func(runs int64) (float64, int64) { return float64(runs + 1), 0 }
	w.training = func(accountant privacy.Accountant, runs int64) (privacy.Guarantee, error) {
		one, err := s.Subset.run(records, s.Run.Count)
		if err != nil {
			return privacy.Guarantee{}, err
		}
		d, err := f.at(float64(runs))
		if err != nil {
			return privacy.Guarantee{}, err
		}
		best := d.Mechanism(privacy.Composition{one}, 1)
		if _, err := privacy.Epsilon(accountant, best, 1, s.Delta); err != nil { // SubsetSampled does not count its work
			return privacy.Guarantee{}, err
		}
		tuning := tuning.SubsetSampled{Base: best, SubsetSize: s.Subset.size(records), DatasetSize: records.DatasetSize}
		g, err := privacy.Epsilon(accountant, privacy.Composition{{Mechanism: tuning, Count: 1}, s.Subset.Final}, 1, s.Delta)
		g.Assumptions = privacy.JoinAssumptions(g.Assumptions, []privacy.Assumption{finalAssumption})
		return g, err
	}
	return w
}
