package study

import (
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
)

// A trial shows one attempt: its worker, measurements, start and shard are of the attempt that runs, or that
// completed it. Every other attempt is kept apart, as a past one, from when it ends. Attempts have
// different randomness, and nothing of one may stand beside the result of another.

// endAttempt ends the attempt that holds the trial, and makes it a past one.
func (c *trialChange) endAttempt(outcome dparetov1.AttemptOutcome, reason string) error {
	record := c.record
	trial := record.GetTrial()
	attempt := &dparetov1.Attempt{
		Number:        trial.GetAttempt(),
		WorkerId:      trial.GetLease().GetWorkerId(),
		StartTime:     trial.GetStartTime(),
		EndTime:       timestamppb.New(c.Now),
		Outcome:       outcome,
		Reason:        reason,
		TrainingShard: trial.GetTrainingShard(),
	}
	trial.Lease = nil
	trial.Warnings = slices.DeleteFunc(trial.GetWarnings(), func(w *dparetov1.Warning) bool {
		isReport := w.GetCode() == spec.WarnReportDiffers
		if isReport {
			attempt.Warnings = append(attempt.Warnings, w)
		}
		return isReport
	})
	return c.Tx.EndAttempt(c.ID, record, attempt)
}

// loseAttempt ends the attempt that holds the trial, if any, because a worker gets the trial.
func (c *trialChange) loseAttempt(worker string) error {
	switch lease := c.record.GetTrial().GetLease(); {
	case lease == nil:
		return nil
	case lease.GetWorkerId() == worker:
		return c.endAttempt(dparetov1.AttemptOutcome_ATTEMPT_OUTCOME_RESUMED, "")
	default:
		return c.endAttempt(dparetov1.AttemptOutcome_ATTEMPT_OUTCOME_LOST, "")
	}
}

// requeue ends the attempt that holds the trial, and gives the trial back to the queue. It then shows no
// attempt.
func (c *trialChange) requeue(outcome dparetov1.AttemptOutcome, reason string) error {
	trial := c.record.GetTrial()
	trial.State = dparetov1.TrialState_TRIAL_STATE_QUEUED
	trial.StateReason = reason
	err := c.endAttempt(outcome, reason)
	trial.WorkerId, trial.StartTime, trial.TrainingShard = "", nil, 0
	return err
}

// showAttempt has the trial, which is about to complete, show the attempt under a token that was handed
// out for it. An attempt that holds the trial under another token ends.
func (c *trialChange) showAttempt(token string) error {
	record := c.record
	if IsHeld(record, token) {
		return nil
	}
	trial := record.GetTrial()
	if trial.GetLease() != nil {
		if err := c.endAttempt(dparetov1.AttemptOutcome_ATTEMPT_OUTCOME_OVERTAKEN, ""); err != nil {
			return err
		}
	}
	number := 1 + slices.Index(record.GetLeaseTokens(), token)
	attempt, err := c.Tx.TakeAttempt(c.ID, record, int32(number))
	if err != nil {
		return err
	}
	trial.Measurements = attempt.GetMeasurements()
	trial.WorkerId = attempt.GetWorkerId()
	trial.StartTime = attempt.GetStartTime()
	trial.TrainingShard = attempt.GetTrainingShard()
	trial.Warnings = spec.AddWarnings(trial.GetWarnings(), attempt.GetWarnings()...)
	return nil
}
