package server

import dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"

// design says what of a study's trials results may have decided.
type design struct {
	configurations, number bool
}

// designOf returns what the spec of a study lets results decide.
func designOf(spec *dparetov1.StudySpec) design {
	var d design
	budget := spec.GetBudget()
	isFinite := budget.GetMaxTrials() > 0
	switch spec.GetAlgorithm().GetName() {
	case dparetov1.Algorithm_ALGORITHM_RANDOM, dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM:
	case dparetov1.Algorithm_ALGORITHM_GRID:
		isFinite = true
	default:
		d.configurations = true
	}
	d.number = !isFinite || budget.GetMaxStagnantTrials() > 0 // somebody decides when it is enough
	return d
}

// see adds what results may have decided of a trial.
func (d *design) see(trial *dparetov1.Trial) {
	isForeign := trial.GetOrigin() != dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED
	if isForeign || trial.GetProvenance().GetConditioned() {
		d.configurations = true
	}
	attempts := trial.GetAttempt()
	if isForeign || attempts > 1 || attempts == 1 && trial.GetState() == dparetov1.TrialState_TRIAL_STATE_QUEUED {
		d.number = true // a run may have failed, and been repeated, because of what it saw
	}
}
