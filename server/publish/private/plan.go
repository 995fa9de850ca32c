package private

import (
	"math"
	"slices"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	"github.com/dpareto/dpareto/server/spec"
)

// checkpoints returns how many intermediate measurements each of the runs that are left may have, those
// that are open included: their share in the values beyond the final ones of all trials.
func checkpoints(record *storev1.StudyRecord, compiled *spec.Study) float64 {
	terms, metrics, waiting := record.GetPrivateMode(), reportedMetrics(compiled.Spec), waitingTrials(record)
	spare := terms.GetMaxValues() - terms.GetValues() - terms.GetReservedValues() - waiting*metrics
	if spare <= 0 || !compiled.Points.Checkpoints() {
		return 0
	}
	runs := min(waiting, affordableRuns(terms)) + terms.GetReservedValues()/metrics
	return float64(spare) / float64(metrics*max(1, runs))
}

// waitingTrials returns how many trials a study may still start.
func waitingTrials(record *storev1.StudyRecord) int64 {
	return max(0, record.GetStudy().GetSpec().GetBudget().GetMaxTrials()-record.GetPrivateMode().GetStartedTrials())
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
	planned := evenSteps(last, n, func(i int64) float64 { return float64(i+1) / float64(n+1) })
	return slices.ContainsFunc(planned, func(p int64) bool { return p > paid.GetLastCheckpoint() && p <= step })
}
