package price

import (
	"fmt"

	"github.com/dpareto/dpareto/privacy"
)

// trialNoise is the ratio of the noise of a trial to the noise of the run.
const trialNoise = 10

// trialAssumption lists the decisions that precede the first trial.
var trialAssumption = privacy.PremiseFixedInAdvance.Assume(
	"the largest number of trials, and the sampler, the noise and the steps of the trials and of the run, were fixed before the first trial; results choose only what these mechanisms do not depend on")

// noisyTrial returns one run with trialNoise times the noise, for DP-SGD alone.
func noisyTrial(run privacy.Part) (privacy.Part, bool) {
	switch m := run.Mechanism.(type) {
	case privacy.FixedSizeGaussian:
		m.NoiseMultiplier *= trialNoise
		run.Mechanism = m
	case privacy.PoissonGaussian:
		m.NoiseMultiplier *= trialNoise
		run.Mechanism = m
	default:
		return privacy.Part{}, false
	}
	return run, run.Mechanism.Validate() == nil // so much noise may be beyond the range of floats
}

// noisyTrials searches with trials that have more noise than the run which follows them, and releases all of them. Each
// trial and the run are post-processings of outputs of their own dominating pairs, which are fixed, so that together they
// cost what these cost (see slots.Slots), however configurations depend on earlier results. What was best with
// more noise need not be best for the run (Panda et al., "A new linear scaling rule for private adaptive hyperparameter
// optimization", 2022, scale up what was best): the guarantee does not depend on it.
func (s *Search) noisyTrials(trial privacy.Part) way {
	w := s.way(fmt.Sprintf("trials with %d times the noise, one run", trialNoise), releasesAll, nil)
	w.adaptive, w.curves = true, true
	w.count = func(runs int64) (float64, int64) { return float64(runs + 1), runs + 1 }
	w.test = func(runs int64) (func(privacy.Part) privacy.Mechanism, error) { return all(runs + 1) }
	w.training = func(accountant privacy.Accountant, runs int64) (privacy.Guarantee, error) {
		trials := privacy.Part{Mechanism: privacy.Composition{trial}, Count: runs}
		g, err := privacy.Epsilon(accountant, privacy.Composition{trials, s.Run}, 1, s.Delta)
		g.Assumptions = privacy.JoinAssumptions(g.Assumptions, []privacy.Assumption{trialAssumption})
		return g, err
	}
	return w
}
