package private

import (
	"math"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/study"
)

// checkpoints returns how many intermediate measurements the study takes of an attempt at a trial, which
// has reserved its final values: the share of one run in what is left beyond the final values of all
// trials, rounded up.
func checkpoints(c *study.Change, trial *dparetov1.Trial) int64 {
	terms, metrics := c.Study.GetPrivateMode(), c.Compiled.ReportedMetrics()
	waiting := waitingTrials(c)
	spare := terms.GetMaxValues() - terms.GetValues() - terms.GetReservedValues() - waiting*metrics
	if spare <= 0 || !c.Compiled.Checkpoints() {
		return 0
	}
	runs := min(waiting, affordableRuns(terms)) + terms.GetReservedValues()/metrics
	perRun := float64(spare) / float64(metrics*max(1, runs))
	return int64(math.Ceil(perRun))
}

// waitingTrials returns how many trials a study may still start.
func waitingTrials(c *study.Change) int64 {
	return max(0, c.Study.GetStudy().GetSpec().GetBudget().GetMaxTrials()-c.Study.GetPrivateMode().GetStartedTrials())
}

// affordableRuns returns for how many runs of a typical configuration the training budget lasts.
func affordableRuns(terms *storev1.PrivateModeRecord) int64 {
	runs := 0.0
	for _, spent := range terms.GetShardCosts() {
		runs += math.Floor((terms.GetTrainBudget() - spent) / terms.GetTypicalCost())
	}
	return int64(math.Min(runs, math.MaxInt32))
}

// isPlanned reports whether an intermediate measurement at a step is one that the study takes: the first
// at or after a planned step. n steps are planned evenly in the logarithm of the step up to the end of the
// run, which is measured in any case.
func isPlanned(step, last int64, paid *storev1.PrivateTrialRecord) bool {
	n := paid.GetCheckpoints()
	if n >= last {
		return step > paid.GetLastCheckpoint()
	}
	for i := range n {
		planned := int64(math.Round(math.Pow(float64(last), float64(i+1)/float64(n+1))))
		if planned > paid.GetLastCheckpoint() && planned <= step {
			return true
		}
	}
	return false
}
