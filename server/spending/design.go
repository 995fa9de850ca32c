package spending

import dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"

// Design says which properties of a study's trials may depend on results: their configurations, and
// their number.
type Design struct {
	Configurations, Number bool
}

// DesignOf returns the design that a study implies, before any of its trials is seen.
func DesignOf(study *dparetov1.Study) Design {
	var d Design
	spec := study.GetSpec()
	budget := spec.GetBudget()
	isFinite := budget.GetMaxTrials() > 0
	switch spec.GetAlgorithm().GetName() {
	case dparetov1.Algorithm_ALGORITHM_RANDOM, dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM:
	case dparetov1.Algorithm_ALGORITHM_GRID:
		isFinite = true
	default:
		d.Configurations = true
	}
	d.Number = !isFinite || budget.GetMaxStagnantTrials() > 0 // someone decides when to stop
	if study.GetDesignChange() != nil {
		d.Configurations, d.Number = true, true
	}
	return d
}

// See notes whether a trial was chosen by a caller, asked for under conditions, or repeated.
func (d *Design) See(trial *dparetov1.Trial) {
	isForeign := trial.GetOrigin() != dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED
	if isForeign || trial.GetProvenance().GetConditioned() {
		d.Configurations = true
	}
	attempts := trial.GetAttempt()
	if isForeign || attempts > 1 || attempts == 1 && trial.GetState() == dparetov1.TrialState_TRIAL_STATE_QUEUED {
		d.Number = true // a run may have failed, and been repeated, because of what it saw
	}
}
