package study

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
)

const (
	// MaxMeasurements bounds the intermediate measurements of one attempt.
	MaxMeasurements = 2000
	// MaxTrialMeasurements bounds the measurements of all attempts at one trial.
	MaxTrialMeasurements = 3 * MaxMeasurements
)

// AddMeasurement implements StudyService. The response says whether the run should stop.
func (t *Trials) AddMeasurement(ctx context.Context, req *dparetov1.AddMeasurementRequest) (*dparetov1.AddMeasurementResponse, error) {
	id, number, err := resource.ParseTrialName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	read, err := t.precomputeReport(ctx, reported{study: id, number: number, token: req.GetLeaseToken(), measurement: req.GetMeasurement()})
	if err != nil {
		return nil, err
	}
	return answer(ctx, t.studies, id, req, func(c *Change, resp *dparetov1.AddMeasurementResponse) error {
		// The other measurements are not read: each costs the same, however many there are.
		tc, err := c.heldTrial(c.Tx.BareTrial, number, req.GetLeaseToken())
		if err != nil {
			return err
		}
		record, trial := tc.record, tc.record.GetTrial()
		if err := checkHeld(record, req.GetLeaseToken()); err != nil {
			return err
		}
		if err := c.checkSize(); err != nil {
			return err
		}
		point, err := read.of(tc)
		if err != nil {
			return err
		}
		kept, err := tc.keep(Report{Path: "measurement", Point: point, Measurement: req.GetMeasurement()})
		if err != nil {
			return err
		}
		if kept.Fresh {
			if err := tc.addMeasurement(kept.Measurement); err != nil {
				return err
			}
		}
		trial.Warnings = spec.AddWarnings(trial.GetWarnings(), kept.Warnings...)
		tc.renew()
		before := trial.GetState()
		tc.stopEarly(kept.Measurement.GetStep())
		if resp.ShouldStop = trial.GetState() == dparetov1.TrialState_TRIAL_STATE_STOPPING; resp.GetShouldStop() {
			resp.StopReason = trial.GetStateReason()
		} else {
			c.events.Measured = append(c.events.Measured, Progress{trial, kept.Measurement.GetStep()})
		}
		resp.LeaseExpireTime = trial.GetLease().GetExpireTime()
		return tc.put(before)
	})
}

// addMeasurement adds a measurement to the trial, a held one. A repeated measurement changes nothing; a
// different one at the same step is refused.
func (c *trialChange) addMeasurement(m *dparetov1.Measurement) error {
	record := c.record
	trial := record.GetTrial()
	existing, err := c.MeasurementAt(record, m.GetStep())
	if err != nil {
		return err
	}
	if existing != nil {
		existing.ReportTime = nil
		if proto.Equal(existing, m) {
			return nil
		}
		return status.Errorf(codes.FailedPrecondition, "%s already has a different measurement at step %d", trial.GetName(), m.GetStep())
	}
	if record.GetMeasurementRecords() == MaxMeasurements {
		return status.Errorf(codes.ResourceExhausted, "%s has %d measurements, the maximum for an attempt", trial.GetName(), MaxMeasurements)
	}
	if n := record.GetPastMeasurements() + int64(record.GetMeasurementRecords()); n >= MaxTrialMeasurements {
		return status.Errorf(codes.ResourceExhausted, "all attempts at %s together have %d measurements, the maximum for a trial; complete it with a final one", trial.GetName(), n)
	}
	m.ReportTime = timestamppb.New(c.Now)
	return c.Tx.AddMeasurement(c.ID, record, m)
}

// MeasurementAt returns a copy of the intermediate measurement of a trial at a step, nil if there is
// none.
func (c *Change) MeasurementAt(record *storev1.TrialRecord, step int64) (*dparetov1.Measurement, error) {
	trial := record.GetTrial()
	if i, found := slices.BinarySearchFunc(trial.GetMeasurements(), step, compareStep); found {
		return proto.CloneOf(trial.GetMeasurements()[i]), nil
	}
	m, err := c.Tx.Measurement(c.ID, trial.GetNumber(), step) // not read with the trial
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return m, err
}

// verdict returns why the run of a trial is of no further use, or "". step is the step just measured,
// 0 if there is none. Where telling is too slow for a transaction, it returns the computation that
// must come first.
func verdict(stopper Stopper, of *Cached, trial *dparetov1.Trial, step int64) (reason string, later computation) {
	if trial.GetState() != dparetov1.TrialState_TRIAL_STATE_ACTIVE || stopper == nil {
		return "", nil
	}
	return stopper.ShouldStop(of, trial, step)
}

// stopEarly asks the worker of the trial to stop if the verdict says so.
func (c *trialChange) stopEarly(step int64) {
	trial := c.record.GetTrial()
	if reason, _ := verdict(c.studies.stopper, c.Cached, trial, step); reason != "" {
		trial.State, trial.StateReason = dparetov1.TrialState_TRIAL_STATE_STOPPING, reason
	}
}

// CompleteTrial implements StudyService. One transaction loads the study and the trial, decides, and
// writes both.
func (t *Trials) CompleteTrial(ctx context.Context, req *dparetov1.CompleteTrialRequest) (*dparetov1.CompleteTrialResponse, error) {
	id, number, err := resource.ParseTrialName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	if err := validateOutcome(req); err != nil {
		return nil, err
	}
	var read configuration
	if measurement := req.GetMeasurement(); measurement != nil {
		read, err = t.precomputeReport(ctx, reported{id, number, req.GetLeaseToken(), measurement, true})
		if err != nil {
			return nil, err
		}
	}
	return answer(ctx, t.studies, id, req, func(c *Change, resp *dparetov1.CompleteTrialResponse) error {
		tc, err := c.heldTrial(c.Tx.Trial, number, req.GetLeaseToken())
		if err != nil {
			return err
		}
		record := tc.record
		resp.Trial = record.GetTrial()
		digest, err := c.request.Digest()
		if err != nil {
			return err
		}
		c.events.Completed = true
		if record.GetCompletionToken() == req.GetLeaseToken() && slices.Equal(record.GetCompletionDigest(), digest) && req.GetLeaseToken() != "" {
			return c.skipAnswerIfFull() // a retry: the response was lost
		}
		if err := checkCompletable(record, req); err != nil {
			return err
		}
		before := record.GetTrial().GetState()
		if err := tc.showAttempt(req.GetLeaseToken()); err != nil {
			return err
		}
		if err := tc.complete(req, read); err != nil {
			return err
		}
		record.CompletionToken = req.GetLeaseToken()
		record.CompletionDigest = digest
		return tc.put(before)
	})
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

// complete applies an outcome to the trial, whose configuration was read before.
func (c *trialChange) complete(req *dparetov1.CompleteTrialRequest, read configuration) error {
	trial := c.record.GetTrial()
	switch outcome := req.GetOutcome().(type) {
	case *dparetov1.CompleteTrialRequest_Measurement:
		point, err := read.of(c)
		if err != nil {
			return err
		}
		return c.succeed(Report{Path: "measurement", Point: point, Measurement: outcome.Measurement, Final: true})
	case *dparetov1.CompleteTrialRequest_UseLastMeasurement:
		if len(trial.GetMeasurements()) == 0 {
			return status.Errorf(codes.FailedPrecondition, "%s has no measurement under this lease", trial.GetName())
		}
		c.finishWithLast()
	case *dparetov1.CompleteTrialRequest_Infeasible:
		c.finish(dparetov1.TrialState_TRIAL_STATE_INFEASIBLE, c.reason(outcome.Infeasible.GetReason()))
	case *dparetov1.CompleteTrialRequest_Failure:
		if outcome.Failure.GetRetryable() {
			switch {
			case trial.GetState() == dparetov1.TrialState_TRIAL_STATE_STOPPING:
				c.settleStopped()
				return nil
			case !c.attemptsSpent():
				return c.requeue(dparetov1.AttemptOutcome_ATTEMPT_OUTCOME_FAILED, c.reason(outcome.Failure.GetReason()))
			}
		}
		c.finish(dparetov1.TrialState_TRIAL_STATE_FAILED, c.reason(outcome.Failure.GetReason()))
	}
	return nil
}

// succeed completes the trial with a final measurement.
func (c *trialChange) succeed(r Report) error {
	record := c.record
	kept, err := c.keep(r)
	if err != nil {
		return err
	}
	kept.Measurement.ReportTime = timestamppb.New(c.Now)
	record.Trial.FinalMeasurement = kept.Measurement
	record.Trial.Warnings = spec.AddWarnings(record.GetTrial().GetWarnings(), kept.Warnings...)
	c.finish(dparetov1.TrialState_TRIAL_STATE_SUCCEEDED, "")
	return nil
}

// keep returns the part of a report that the policy keeps.
func (c *trialChange) keep(r Report) (Kept, error) {
	record := c.record
	if r.Measurement.GetSeeded() && c.Policy.Traits().Prepaid {
		return Kept{}, invalid.Field(r.Path+".seeded", "must be false: the guarantees of %s hold only for runs with secret randomness: train without a seed",
			resource.StudyName(c.ID))
	}
	if err := c.Compiled.Measurements.CheckRuns(r.Path, r.Measurement, record.GetTrial().GetReplicates()); err != nil {
		return Kept{}, err
	}
	kept, err := c.Policy.Keep(c.Change, record, r)
	if r.Measurement.GetSeeded() {
		kept.Warnings = append(kept.Warnings, seededWarning())
	}
	return kept, err
}

func seededWarning() *dparetov1.Warning {
	return &dparetov1.Warning{
		Code:    WarnSeeded,
		Message: "not for release: the run was seeded: anyone with the seed can remove its noise, so no epsilon holds for it",
	}
}

// IsSeeded reports whether a worker said of a run of a trial that its randomness came from a seed.
func IsSeeded(trial *dparetov1.Trial) bool {
	return slices.ContainsFunc(trial.GetWarnings(), func(w *dparetov1.Warning) bool { return w.GetCode() == WarnSeeded })
}

// MarkSeeded adds the warning to an imported trial that has a seeded measurement, of any attempt, without it.
func MarkSeeded(trial *dparetov1.Trial) {
	measurements := slices.Concat(trial.GetMeasurements(), []*dparetov1.Measurement{trial.GetFinalMeasurement()})
	for _, a := range trial.GetPastAttempts() {
		measurements = append(measurements, a.GetMeasurements()...)
	}
	if !IsSeeded(trial) && slices.ContainsFunc(measurements, (*dparetov1.Measurement).GetSeeded) {
		trial.Warnings = append(trial.GetWarnings(), seededWarning())
	}
}

// finishWithLast completes the trial with its last measurement.
func (c *trialChange) finishWithLast() {
	trial := c.record.GetTrial()
	trial.FinalMeasurement = proto.CloneOf(trial.GetMeasurements()[len(trial.GetMeasurements())-1])
	c.finish(dparetov1.TrialState_TRIAL_STATE_SUCCEEDED, trial.GetStateReason())
}

// finish moves the trial to a terminal state.
func (c *trialChange) finish(state dparetov1.TrialState, reason string) {
	record := c.record
	trial := record.GetTrial()
	c.Policy.Unreserve(c.Change, record)
	c.Study.CompletedTrials++
	record.CompletionOrder = c.Study.GetCompletedTrials()
	trial.State = state
	trial.StateReason = reason
	trial.Lease = nil
	trial.EndTime = timestamppb.New(c.Now)
	c.updateStagnation(trial)
}
