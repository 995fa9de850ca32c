package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/attachment"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest/space"
)

// WarnSelectionBias is the code of the warning that values selected as best look better than fresh
// runs would.
const WarnSelectionBias = "SELECTION_BIAS"

// WarnSeeded is the code of the warning that the randomness of runs came from a seed that somebody
// knows.
const WarnSeeded = "SEEDED"

// Trials implements the StudyService calls on trials.
type Trials struct{ *Studies }

// changeTrial runs fn in a transaction on the trial named in a request's field "name".
func (t Trials) changeTrial(ctx context.Context, name string, r *Request, fn func(*trialChange) error) error {
	id, number, err := resource.ParseTrialName("name", name)
	if err != nil {
		return err
	}
	return t.Change(ctx, id, r, func(c *Change) error {
		tc, err := c.trial(number)
		if err != nil {
			return err
		}
		return fn(tc)
	})
}

// IsTerminal reports whether a trial in this state never changes state again.
func IsTerminal(state dparetov1.TrialState) bool {
	switch state {
	case dparetov1.TrialState_TRIAL_STATE_SUCCEEDED,
		dparetov1.TrialState_TRIAL_STATE_INFEASIBLE,
		dparetov1.TrialState_TRIAL_STATE_FAILED:
		return true
	default:
		return false
	}
}

// CheckReason adds a violation to fields if a reason is too long, or missing though required.
func CheckReason(field, reason string, required bool, fields *invalid.Fields) {
	switch n := len([]rune(reason)); {
	case n > maxReason:
		fields.Addf(field, "must have at most %d characters, has %d", maxReason, n)
	case required && n == 0:
		fields.Addf(field, "must be set")
	}
}

// CreateTrial implements StudyService.
func (t Trials) CreateTrial(ctx context.Context, req *dparetov1.CreateTrialRequest) (*dparetov1.CreateTrialResponse, error) {
	id, err := resource.ParseStudyName("parent", req.GetParent())
	if err != nil {
		return nil, err
	}
	requested := req.GetTrial()
	if requested == nil {
		return nil, invalid.Field("trial", "must be set")
	}
	if requested.GetName() != "" {
		return nil, invalid.Field("trial.name", "must be empty: the server numbers trials")
	}
	resp := new(dparetov1.CreateTrialResponse)
	r, err := NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	err = t.Change(ctx, id, r, func(c *Change) error {
		record, err := c.createRequested(requested)
		resp.Trial = record.GetTrial()
		if err == nil && req.GetValidateOnly() {
			return errOnlyValidated
		}
		return err
	})
	if err != nil && !errors.Is(err, errOnlyValidated) {
		return nil, err
	}
	return resp, nil
}

// errOnlyValidated gives a change up that was only to be checked.
var errOnlyValidated = errors.New("validate_only")

// createRequested creates a trial for a user, complete if the user gives an outcome.
func (c *Change) createRequested(requested *dparetov1.Trial) (*storev1.TrialRecord, error) {
	kept := &dparetov1.Trial{
		Labels: requested.GetLabels(), Note: requested.GetNote(), ReplicateOf: requested.GetReplicateOf(),
		Attributes: attachment.Attributes(nil, requested.GetAttributes()), Artifacts: attachment.Artifacts(nil, requested.GetArtifacts()),
	}
	if err := c.checkTrialFields(kept); err != nil {
		return nil, err
	}
	point, err := c.requestedPoint(requested)
	if err != nil {
		return nil, err
	}
	if err := c.Compiled.CheckAllowed("trial.parameters", point); err != nil {
		return nil, err
	}
	origin := dparetov1.TrialOrigin_TRIAL_ORIGIN_REQUESTED
	isReplicate, isImport := requested.GetReplicateOf() != "", isImport(requested)
	if err := c.checkOutcome(requested); err != nil {
		return nil, err
	}
	switch {
	case isImport:
		origin = dparetov1.TrialOrigin_TRIAL_ORIGIN_IMPORTED
	case isReplicate: // replicates are allowed even when the budget is spent
		origin = dparetov1.TrialOrigin_TRIAL_ORIGIN_REPLICATE
	default:
		if _, reason := c.studies.spent(c.Study); reason != "" {
			return nil, status.Errorf(codes.FailedPrecondition, "%s: %s", resource.StudyName(c.ID), reason)
		}
	}
	slow := []func(context.Context) error{metricsAt(c.Compiled, point, 0)}
	for _, m := range slices.Concat(requested.GetMeasurements(), []*dparetov1.Measurement{requested.GetFinalMeasurement()}) {
		slow = append(slow, metricsAt(c.Compiled, point, m.GetStep()))
	}
	if err := c.first(slow...); err != nil {
		return nil, err
	}
	return c.Create(point, origin, func(record *storev1.TrialRecord) error {
		trial := record.GetTrial()
		proto.Merge(trial, kept)
		if !isImport {
			return nil
		}
		return (&trialChange{c, record}).importOutcome(requested)
	})
}

// isImport reports whether a requested trial has been run elsewhere.
func isImport(requested *dparetov1.Trial) bool {
	return requested.GetFinalMeasurement() != nil || isWithoutResult(requested)
}

// isWithoutResult reports whether a requested trial ended without a final measurement.
func isWithoutResult(requested *dparetov1.Trial) bool {
	return requested.GetState() == dparetov1.TrialState_TRIAL_STATE_INFEASIBLE || requested.GetState() == dparetov1.TrialState_TRIAL_STATE_FAILED
}

// checkOutcome checks what does not depend on the configuration in the outcome of a requested trial.
func (c *Change) checkOutcome(requested *dparetov1.Trial) error {
	var fields invalid.Fields
	measurements := requested.GetMeasurements()
	switch {
	case isWithoutResult(requested) && requested.GetFinalMeasurement() != nil:
		fields.Addf("trial.final_measurement", "must not be set in the state %s", requested.GetState())
	case isWithoutResult(requested):
		CheckReason("trial.state_reason", requested.GetStateReason(), true, &fields)
	case requested.GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED && requested.GetFinalMeasurement() == nil:
		fields.Addf("trial.final_measurement", "must be set in the state %s", requested.GetState())
	case len(measurements) > 0 && requested.GetFinalMeasurement() == nil:
		fields.Addf("trial.measurements", "must be empty in a trial without an outcome")
	}
	if len(measurements) > MaxMeasurements {
		fields.Addf("trial.measurements", "must hold at most %d measurements, holds %d", MaxMeasurements, len(measurements))
	}
	for i := range measurements {
		if i > 0 && measurements[i].GetStep() <= measurements[i-1].GetStep() {
			fields.Addf(fmt.Sprintf("trial.measurements[%d].step", i), "must be above %d, the step before, is %d", measurements[i-1].GetStep(), measurements[i].GetStep())
		}
	}
	if err := fields.Err(); err != nil {
		return err
	}
	if spec.IsPublication(c.Compiled.Spec) && (isWithoutResult(requested) || len(measurements) > 0) {
		return status.Errorf(codes.FailedPrecondition, "%s has private_mode or random_stopping: it takes outcomes only from trials that it handed out", resource.StudyName(c.ID))
	}
	return nil
}

// importOutcome completes a new trial with the outcome that a user gives.
func (c *trialChange) importOutcome(requested *dparetov1.Trial) error {
	trial := c.record.GetTrial()
	measurements, final := requested.GetMeasurements(), requested.GetFinalMeasurement()
	switch {
	case final != nil:
		trial.Replicates = c.Compiled.RunsOf(final, trial.GetReplicates())
	case len(measurements) > 0:
		trial.Replicates = c.Compiled.RunsOf(measurements[0], trial.GetReplicates())
	}
	for i, m := range measurements {
		kept, err := c.keep(Report{Path: fmt.Sprintf("trial.measurements[%d]", i), Measurement: m})
		if err != nil {
			return err
		}
		kept.Measurement.ReportTime = timestamppb.New(c.Now)
		trial.Measurements = append(trial.Measurements, kept.Measurement)
		trial.Warnings = spec.AddWarnings(trial.GetWarnings(), kept.Warnings...)
	}
	if final != nil {
		return c.succeed(Report{Path: "trial.final_measurement", Measurement: final, Final: true})
	}
	c.finish(requested.GetState(), c.Policy.Reason(requested.GetStateReason()))
	return nil
}

// requestedPoint returns the configuration of a trial that a user requests. A replicate has its
// original's configuration, or a checkpoint of it.
func (c *Change) requestedPoint(requested *dparetov1.Trial) (space.Point, error) {
	const field = "trial.replicate_of"
	if requested.GetReplicateOf() == "" {
		return c.Compiled.Point("trial.parameters", requested.GetParameters())
	}
	study, number, err := resource.ParseTrialName(field, requested.GetReplicateOf())
	if err != nil {
		return nil, err
	}
	if study != c.ID {
		return nil, invalid.Field(field, "must be a trial of %s, is %s", resource.StudyName(c.ID), requested.GetReplicateOf())
	}
	of, err := c.trial(number)
	if err != nil {
		return nil, err
	}
	original, err := c.Compiled.Point("trial.parameters", of.record.GetTrial().GetParameters())
	if err != nil || len(requested.GetParameters()) == 0 {
		return original, err
	}
	point, err := c.Compiled.Point("trial.parameters", requested.GetParameters())
	if err != nil {
		return nil, err
	}
	step := c.Compiled.LastStep(point)
	if step > c.Compiled.LastStep(original) || !slices.Equal(point, c.Compiled.At(original, step)) {
		return nil, invalid.Field("trial.parameters", "must equal the parameters of %s, or one of its checkpoints", requested.GetReplicateOf())
	}
	return point, nil
}

// GetTrial implements StudyService.
func (t Trials) GetTrial(ctx context.Context, req *dparetov1.GetTrialRequest) (*dparetov1.GetTrialResponse, error) {
	id, number, err := resource.ParseTrialName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.GetTrialResponse)
	err = t.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := tx.Trial(id, number)
		if err == nil {
			err = tx.FindStudy(id) // during an import, trials exist before their study
		}
		if errors.Is(err, store.ErrNotFound) {
			return resource.TrialNotFound(id, number)
		}
		if err != nil {
			return err
		}
		resp.Trial = record.GetTrial()
		return tx.JoinAttempts(id, record)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// DeleteTrial implements StudyService.
func (t Trials) DeleteTrial(ctx context.Context, req *dparetov1.DeleteTrialRequest) (*dparetov1.DeleteTrialResponse, error) {
	resp := new(dparetov1.DeleteTrialResponse)
	r, err := NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	err = t.changeTrial(ctx, req.GetName(), r, func(c *trialChange) error {
		trial := c.record.GetTrial()
		if err := checkEtag(req.GetEtag(), trial.GetEtag()); err != nil {
			return err
		}
		if trial.GetLease() != nil {
			return status.Errorf(codes.FailedPrecondition, "%s is %s: a worker holds it", trial.GetName(), trial.GetState())
		}
		c.touch()
		c.Policy.Release(c.Change, c.record)
		c.events.deleted(trial)
		store.AddToCounts(c.Study.GetStudy().GetTrialCounts(), trial.GetState(), -1)
		return c.Tx.DeleteTrial(c.ID, c.record)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// StopTrial implements StudyService.
func (t Trials) StopTrial(ctx context.Context, req *dparetov1.StopTrialRequest) (*dparetov1.StopTrialResponse, error) {
	var fields invalid.Fields
	CheckReason("reason", req.GetReason(), false, &fields)
	if err := fields.Err(); err != nil {
		return nil, err
	}
	resp := new(dparetov1.StopTrialResponse)
	r, err := NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	err = t.changeTrial(ctx, req.GetName(), r, func(c *trialChange) error {
		trial := c.record.GetTrial()
		resp.Trial = trial
		before := trial.GetState()
		switch before {
		case dparetov1.TrialState_TRIAL_STATE_STOPPING:
			return c.spare(r)
		case dparetov1.TrialState_TRIAL_STATE_ACTIVE:
			trial.State = dparetov1.TrialState_TRIAL_STATE_STOPPING
			trial.StateReason = c.Policy.Reason(req.GetReason())
		case dparetov1.TrialState_TRIAL_STATE_QUEUED:
			c.finish(dparetov1.TrialState_TRIAL_STATE_FAILED, c.Policy.Reason(req.GetReason()))
		default:
			return status.Errorf(codes.FailedPrecondition, "%s is already %s", trial.GetName(), before)
		}
		c.record.StopRequested = true
		return c.put(before)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// PointOf returns the configuration of a trial. It fails if that does not fit the spec.
func PointOf(compiled *spec.Study, trial *dparetov1.Trial) (space.Point, error) {
	point, err := compiled.Point("trial.parameters", trial.GetParameters())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", trial.GetName(), err)
	}
	return point, nil
}

// WithFinal returns the measurements of a successful trial in step order. The final one replaces any
// other at its step.
func WithFinal(trial *dparetov1.Trial) []*dparetov1.Measurement {
	final := trial.GetFinalMeasurement()
	all := slices.Clone(trial.GetMeasurements())
	i, found := slices.BinarySearchFunc(all, final.GetStep(), compareStep)
	if found {
		all[i] = final
		return all
	}
	return slices.Insert(all, i, final)
}

// compareStep compares the step of a measurement with another.
func compareStep(m *dparetov1.Measurement, step int64) int { return cmp.Compare(m.GetStep(), step) }

// LatestStep returns the last step at which a trial was measured, 0 if there is none.
func LatestStep(trial *dparetov1.Trial) int64 {
	var step int64
	for _, m := range trial.GetMeasurements() {
		step = max(step, m.GetStep())
	}
	return step
}
