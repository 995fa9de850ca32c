package study

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/resource"
)

// MaxMeasurements bounds the intermediate measurements of one trial.
const MaxMeasurements = 2000

// AddMeasurement implements StudyService. The response says whether the run should stop.
func (t Trials) AddMeasurement(ctx context.Context, req *dparetov1.AddMeasurementRequest) (*dparetov1.AddMeasurementResponse, error) {
	id, number, err := resource.ParseTrialName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.AddMeasurementResponse)
	r, err := NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	err = t.Change(ctx, id, r, func(c *Change) error {
		record, err := c.heldTrial(number, req.GetLeaseToken())
		if err != nil {
			return err
		}
		trial := record.GetTrial()
		if err := checkHeld(record, req.GetLeaseToken()); err != nil {
			return err
		}
		_, later := c.verdict(trial, req.GetMeasurement().GetStep())
		kept, err := c.keep(record, Report{Path: "measurement", Token: req.GetLeaseToken(), Measurement: req.GetMeasurement()}, later)
		if err != nil {
			return err
		}
		if kept.Fresh {
			if err := addMeasurement(trial, kept.Measurement, c.Now); err != nil {
				return err
			}
		}
		addWarnings(trial, kept.Warnings)
		c.renew(record)
		before := trial.GetState()
		c.stopEarly(trial, kept.Measurement.GetStep())
		if resp.ShouldStop = trial.GetState() == dparetov1.TrialState_TRIAL_STATE_STOPPING; resp.GetShouldStop() {
			resp.StopReason = trial.GetStateReason()
		} else {
			c.events.Measured = append(c.events.Measured, trial)
		}
		resp.LeaseExpireTime = trial.GetLease().GetExpireTime()
		return c.put(record, before)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// addMeasurement inserts a measurement in step order. A repeated measurement changes nothing; a
// different one at the same step is refused.
func addMeasurement(trial *dparetov1.Trial, m *dparetov1.Measurement, now time.Time) error {
	i, found := slices.BinarySearchFunc(trial.GetMeasurements(), m.GetStep(), compareStep)
	if found {
		existing := proto.CloneOf(trial.GetMeasurements()[i])
		existing.ReportTime = nil
		if proto.Equal(existing, m) {
			return nil
		}
		return status.Errorf(codes.FailedPrecondition, "%s already has a different measurement at step %d", trial.GetName(), m.GetStep())
	}
	if len(trial.GetMeasurements()) == MaxMeasurements {
		return status.Errorf(codes.ResourceExhausted, "%s has %d measurements, the maximum for a trial", trial.GetName(), MaxMeasurements)
	}
	m.ReportTime = timestamppb.New(now)
	trial.Measurements = slices.Insert(trial.GetMeasurements(), i, m)
	return nil
}

// verdict returns why a trial's run is of no further use, or "". step is the step just measured, 0 if
// there is none. Where telling is too slow for a transaction, it returns a function to call first.
func (c *Change) verdict(trial *dparetov1.Trial, step int64) (reason string, later func(context.Context) error) {
	if trial.GetState() != dparetov1.TrialState_TRIAL_STATE_ACTIVE || c.studies.stopper == nil {
		return "", nil
	}
	return c.studies.stopper.ShouldStop(c.Cached, trial, step)
}

// stopEarly asks the worker of a trial to stop if the verdict says so.
func (c *Change) stopEarly(trial *dparetov1.Trial, step int64) {
	if reason, _ := c.verdict(trial, step); reason != "" {
		trial.State, trial.StateReason = dparetov1.TrialState_TRIAL_STATE_STOPPING, reason
	}
}

// CompleteTrial implements StudyService. One transaction loads the study and the trial, decides, and
// writes both.
func (t Trials) CompleteTrial(ctx context.Context, req *dparetov1.CompleteTrialRequest) (*dparetov1.CompleteTrialResponse, error) {
	id, number, err := resource.ParseTrialName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	if err := validateOutcome(req); err != nil {
		return nil, err
	}
	resp := new(dparetov1.CompleteTrialResponse)
	r, err := NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	err = t.Change(ctx, id, r, func(c *Change) error {
		record, err := c.heldTrial(number, req.GetLeaseToken())
		if err != nil {
			return err
		}
		resp.Trial = record.GetTrial()
		digest, err := r.Digest()
		if err != nil {
			return err
		}
		c.events.Completed = true
		if record.GetCompletionToken() == req.GetLeaseToken() && slices.Equal(record.GetCompletionDigest(), digest) && req.GetLeaseToken() != "" {
			return nil // a retry: the response was lost
		}
		if err := checkCompletable(record, req); err != nil {
			return err
		}
		before := record.GetTrial().GetState()
		if err := c.complete(record, req); err != nil {
			return err
		}
		record.CompletionToken = req.GetLeaseToken()
		record.CompletionDigest = digest
		return c.put(record, before)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// validateOutcome checks the parts of a request that do not depend on the trial.
func validateOutcome(req *dparetov1.CompleteTrialRequest) error {
	var fields invalid.Fields
	switch outcome := req.GetOutcome().(type) {
	case *dparetov1.CompleteTrialRequest_Infeasible:
		CheckReason("infeasible.reason", outcome.Infeasible.GetReason(), true, &fields)
	case *dparetov1.CompleteTrialRequest_Failure:
		CheckReason("failure.reason", outcome.Failure.GetReason(), true, &fields)
	case nil:
		fields.Addf("outcome", "one of measurement, use_last_measurement, infeasible and failure must be set")
	}
	return fields.Err()
}

// checkCompletable refuses an outcome if the trial is complete, if the lease token was never handed
// out for it, or if a failure comes under a lost lease. Any other result counts, even late, if it is
// the first.
func checkCompletable(record *storev1.TrialRecord, req *dparetov1.CompleteTrialRequest) error {
	trial := record.GetTrial()
	if IsTerminal(trial.GetState()) {
		return status.Errorf(codes.FailedPrecondition, "%s is already %s with another outcome or under another lease; a result is never overwritten",
			trial.GetName(), trial.GetState())
	}
	_, isFailure := req.GetOutcome().(*dparetov1.CompleteTrialRequest_Failure)
	if isFailure || !slices.Contains(record.GetLeaseTokens(), req.GetLeaseToken()) {
		return checkHeld(record, req.GetLeaseToken())
	}
	return nil
}

// complete applies an outcome to a trial.
func (c *Change) complete(record *storev1.TrialRecord, req *dparetov1.CompleteTrialRequest) error {
	trial := record.GetTrial()
	switch outcome := req.GetOutcome().(type) {
	case *dparetov1.CompleteTrialRequest_Measurement:
		return c.succeed(record, Report{Path: "measurement", Token: req.GetLeaseToken(), Measurement: outcome.Measurement, Final: true})
	case *dparetov1.CompleteTrialRequest_UseLastMeasurement:
		if !IsHeld(record, req.GetLeaseToken()) || len(trial.GetMeasurements()) == 0 {
			return status.Errorf(codes.FailedPrecondition, "%s has no measurement under this lease", trial.GetName())
		}
		c.finishWithLast(record)
	case *dparetov1.CompleteTrialRequest_Infeasible:
		c.finish(record, dparetov1.TrialState_TRIAL_STATE_INFEASIBLE, c.Policy.Reason(outcome.Infeasible.GetReason()))
	case *dparetov1.CompleteTrialRequest_Failure:
		if outcome.Failure.GetRetryable() {
			switch {
			case trial.GetState() == dparetov1.TrialState_TRIAL_STATE_STOPPING:
				c.settleStopped(record)
				return nil
			case !c.attemptsSpent(record):
				requeue(trial, c.Policy.Reason(outcome.Failure.GetReason()))
				return nil
			}
		}
		c.finish(record, dparetov1.TrialState_TRIAL_STATE_FAILED, c.Policy.Reason(outcome.Failure.GetReason()))
	}
	return nil
}

// succeed completes a trial with a final measurement.
func (c *Change) succeed(record *storev1.TrialRecord, r Report) error {
	kept, err := c.keep(record, r)
	if err != nil {
		return err
	}
	kept.Measurement.ReportTime = timestamppb.New(c.Now)
	record.Trial.FinalMeasurement = kept.Measurement
	addWarnings(record.GetTrial(), kept.Warnings)
	c.finish(record, dparetov1.TrialState_TRIAL_STATE_SUCCEEDED, "")
	return nil
}

// keep returns what the policy keeps of a report. It gives the change up until each function in later
// that is not nil has run outside the transaction.
func (c *Change) keep(record *storev1.TrialRecord, r Report, later ...func(context.Context) error) (Kept, error) {
	point, err := PointOf(c.Compiled, record.GetTrial())
	if err != nil {
		return Kept{}, err
	}
	if err := c.first(append(later, metricsAt(c.Compiled, point, r.Measurement.GetStep()))...); err != nil {
		return Kept{}, err
	}
	return c.Policy.Keep(c, record, r)
}

// finishWithLast completes a trial with its last measurement.
func (c *Change) finishWithLast(record *storev1.TrialRecord) {
	trial := record.GetTrial()
	trial.FinalMeasurement = proto.CloneOf(trial.GetMeasurements()[len(trial.GetMeasurements())-1])
	c.finish(record, dparetov1.TrialState_TRIAL_STATE_SUCCEEDED, trial.GetStateReason())
}

// finish moves a trial to a terminal state.
func (c *Change) finish(record *storev1.TrialRecord, state dparetov1.TrialState, reason string) {
	trial := record.GetTrial()
	c.Policy.Release(c, record)
	c.Study.CompletedTrials++
	record.CompletionOrder = c.Study.GetCompletedTrials()
	trial.State = state
	trial.StateReason = reason
	trial.Lease = nil
	trial.EndTime = timestamppb.New(c.Now)
	c.updateStagnation(trial)
}

// addWarnings adds warnings that the trial does not have yet.
func addWarnings(trial *dparetov1.Trial, warnings []*dparetov1.Warning) {
	for _, w := range warnings {
		if !slices.ContainsFunc(trial.GetWarnings(), func(o *dparetov1.Warning) bool { return proto.Equal(o, w) }) {
			trial.Warnings = append(trial.Warnings, w)
		}
	}
}
