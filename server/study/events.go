package study

import (
	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Events are what happened to the trials of a study within a transaction. Observers are told
// once it is durable.
type Events struct {
	ID     string // of the study
	Study  *dparetov1.Study
	Cached *Cached
	Hidden bool // nothing of it may be counted

	Moves     []Move
	Suggested []*dparetov1.Provenance
	Measured  []*dparetov1.Trial // on the way, and still running
	Completed bool               // a worker completed a trial
	Expired   int                // leases
}

// Move is a change of the state of a trial. A new trial comes from UNSPECIFIED, a deleted one
// goes there.
type Move struct {
	Number   int64
	From, To dparetov1.TrialState
}

// put notes that a trial which was in state before is written.
func (e *Events) put(trial *dparetov1.Trial, before dparetov1.TrialState) {
	if before != trial.GetState() {
		e.Moves = append(e.Moves, Move{trial.GetNumber(), before, trial.GetState()})
	}
	if before == dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED && trial.GetOrigin() == dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED {
		e.Suggested = append(e.Suggested, trial.GetProvenance())
	}
}

// deleted notes that a trial is deleted.
func (e *Events) deleted(trial *dparetov1.Trial) {
	e.Moves = append(e.Moves, Move{trial.GetNumber(), trial.GetState(), dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED})
}

// noteExpiry counts the lease of a trial that is taken from its worker, or renewed, if it
// has run out.
func (c *Change) noteExpiry(record *storev1.TrialRecord) {
	if lease := record.GetTrial().GetLease(); lease != nil && !lease.GetExpireTime().AsTime().After(c.Now) {
		c.events.Expired++
	}
}
