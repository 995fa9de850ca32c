package transfer

import (
	"fmt"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/study"
)

// attemptsPath is the path of the past attempts of an imported trial.
const attemptsPath = "record.trial.trial.past_attempts"

// checkAttempts checks the past attempts of a trial except their measurements: every attempt is
// there, unless the trial shows it.
func checkAttempts(exported *dparetov1.ExportedTrial) error {
	trial := exported.GetTrial()
	past, attempts := trial.GetPastAttempts(), trial.GetAttempt()
	isQueued := trial.GetState() == dparetov1.TrialState_TRIAL_STATE_QUEUED
	isHeld := !isQueued && !study.IsTerminal(trial.GetState())
	var fields invalid.Fields
	switch n := int32(len(past)); {
	case n > attempts || n < attempts-1:
		fields.Addf(attemptsPath, "must hold all of %d attempts, or all but the one that the trial shows, holds %d", attempts, n)
	case isHeld && n == attempts, isQueued && n < attempts:
		fields.Addf(attemptsPath, "must hold all of %d attempts but the one that holds the trial, holds %d; the trial is %v", attempts, n, trial.GetState())
	case n == attempts && len(trial.GetMeasurements()) > 0:
		fields.Addf("record.trial.trial.measurements", "must be empty: all attempts are in past_attempts")
	case n == attempts && trial.GetWorkerId() != "":
		fields.Addf("record.trial.trial.worker_id", "must be empty: all attempts are in past_attempts")
	case isHeld && n > 0 && past[n-1].GetNumber() == attempts:
		fields.Addf(attemptsPath, "must not hold attempt %d, which holds the trial", attempts)
	}
	before, measurements := int32(0), 0
	for j, a := range past {
		path := fmt.Sprintf("%s[%d]", attemptsPath, j)
		if n := a.GetNumber(); n <= before || n > attempts {
			fields.Addf(path+".number", "must be in [%d, %d], is %d", before+1, attempts, n)
		}
		before = a.GetNumber()
		measurements += len(a.GetMeasurements())
		if a.GetTrainingShard() != 0 {
			fields.Addf(path+".training_shard", "must not be set")
		}
		if n := len(a.GetWorkerId()); n < 1 || n > study.MaxWorkerID {
			fields.Addf(path+".worker_id", "must have 1 to %d bytes, has %d", study.MaxWorkerID, n)
		}
		if o := a.GetOutcome(); o == dparetov1.AttemptOutcome_ATTEMPT_OUTCOME_UNSPECIFIED || dparetov1.AttemptOutcome_name[int32(o)] == "" {
			fields.Addf(path+".outcome", "is %v", o)
		}
		study.CheckReason(path+".reason", a.GetReason(), false, &fields)
		checkTime(path+".start_time", a.GetStartTime(), true, &fields)
		checkTime(path+".end_time", a.GetEndTime(), true, &fields)
		checkWarnings(path+".warnings", a.GetWarnings(), &fields)
	}
	if measurements > study.MaxTrialMeasurements {
		fields.Addf(attemptsPath, "must hold at most %d measurements, holds %d", study.MaxTrialMeasurements, measurements)
	}
	return fields.Err()
}
