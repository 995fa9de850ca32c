package study

import (
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Events collects what happens to the trials of a study in a transaction. Observers get it once the
// transaction is durable.
type Events struct {
	ID     string // of the study
	Study  *dparetov1.Study
	Cached *Cached
	Hidden bool // metrics must not count its trials

	Moves     []Move
	Suggested []*dparetov1.Provenance // of trials created from suggestions
	Measured  []Progress              // of running trials with a new intermediate measurement
	Completed bool                    // a worker has completed a trial
	Expired   int                     // number of leases that ran out
}

// Progress says how far the run of a trial has come.
type Progress struct {
	Trial *dparetov1.Trial // without measurements
	Step  int64            // of the new one
}

// Move is a state transition of a trial. New trials move from UNSPECIFIED, deleted ones to it.
type Move struct {
	Number   int64
	From, To dparetov1.TrialState
}

// put records that a trial is written whose previous state was before.
func (e *Events) put(trial *dparetov1.Trial, before dparetov1.TrialState) {
	if before != trial.GetState() {
		e.Moves = append(e.Moves, Move{trial.GetNumber(), before, trial.GetState()})
	}
	if before == dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED && trial.GetOrigin() == dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED {
		e.Suggested = append(e.Suggested, trial.GetProvenance())
	}
}

// deleted records that a trial is deleted.
func (e *Events) deleted(trial *dparetov1.Trial) {
	e.Moves = append(e.Moves, Move{trial.GetNumber(), trial.GetState(), dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED})
}
