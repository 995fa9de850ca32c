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

// Trials implements the StudyService calls on trials. It is safe for concurrent use.
type Trials struct{ studies *Studies }

// NewTrials returns the trials of studies.
func NewTrials(studies *Studies) *Trials { return &Trials{studies} }

// changeTrial makes a call that changes the trial named in the field "name" of a request: see answer.
func changeTrial[R any, P response[R]](ctx context.Context, s *Studies, name string, req Identified, fn func(*trialChange, P) error) (P, error) {
	id, number, err := resource.ParseTrialName("name", name)
	if err != nil {
		return nil, err
	}
	return answer(ctx, s, id, req, func(c *Change, resp P) error {
		tc, err := c.trial(number)
		if err != nil {
			return err
		}
		return fn(tc, resp)
	})
}

// reasonNotKept replaces reasons in free text where the policy keeps none.
const reasonNotKept = "not kept: studies that keep noisy values keep no reasons"

// reason returns what may be stored of a reason in free text.
func (c *Change) reason(text string) string {
	if c.Policy.Traits().NoReasons {
		return reasonNotKept
	}
	return text
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
func (t *Trials) CreateTrial(ctx context.Context, req *dparetov1.CreateTrialRequest) (*dparetov1.CreateTrialResponse, error) {
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
	if err := t.precomputeRequested(ctx, id, requested); err != nil {
		return nil, err
	}
	var validated *dparetov1.CreateTrialResponse
	resp, err := answer(ctx, t.studies, id, req, func(c *Change, resp *dparetov1.CreateTrialResponse) error {
		record, err := c.createRequested(requested)
		resp.Trial = record.GetTrial()
		if err == nil && req.GetValidateOnly() {
			validated, err = resp, errOnlyValidated
		}
		return err
	})
	if errors.Is(err, errOnlyValidated) {
		return validated, nil
	}
	return resp, err
}

// precomputeRequested computes the metrics of a trial that a user requests, also at the steps of its
// measurements. It leaves errors in the request to the transaction.
func (t *Trials) precomputeRequested(ctx context.Context, id string, requested *dparetov1.Trial) error {
	return precompute(ctx, t.studies, id, func(of *Cached) ([]computation, error) {
		if of.Compiled.Metrics.ComputesAtOnce() {
			return nil, nil
		}
		var point space.Point
		err := t.studies.store.View(ctx, func(tx *store.ReadTx) (err error) {
			point, err = requestedPoint(tx, id, of.Compiled, requested)
			return err
		})
		if err != nil || of.Compiled.Points.CheckAllowed("", point) != nil || checkOutcome(id, t.studies.Policy(of.Compiled.Spec), requested) != nil {
			return nil, nil //nolint:nilerr // see above
		}
		missing := []computation{metricsAt(of.Compiled, point, 0)}
		for _, m := range append(slices.Clone(requested.GetMeasurements()), requested.GetFinalMeasurement()) {
			missing = append(missing, metricsAt(of.Compiled, point, m.GetStep()))
		}
		return missing, nil
	})
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
	point, err := requestedPoint(&c.Tx.ReadTx, c.ID, c.Compiled, requested)
	if err != nil {
		return nil, err
	}
	if err := c.Compiled.Points.CheckAllowed("trial.parameters", point); err != nil {
		return nil, err
	}
	origin := dparetov1.TrialOrigin_TRIAL_ORIGIN_REQUESTED
	isReplicate, isImport := requested.GetReplicateOf() != "", isImport(requested)
	if err := checkOutcome(c.ID, c.Policy, requested); err != nil {
		return nil, err
	}
	switch {
	case isImport:
		origin = dparetov1.TrialOrigin_TRIAL_ORIGIN_IMPORTED
	case isReplicate: // replicates are allowed even when the budget is spent
		origin = dparetov1.TrialOrigin_TRIAL_ORIGIN_REPLICATE
	default:
		if _, reason := spent(c.studies, c.Study); reason != "" {
			return nil, status.Errorf(codes.FailedPrecondition, "%s: %s", resource.StudyName(c.ID), reason)
		}
	}
	return c.Create(point, origin, func(record *storev1.TrialRecord) error {
		trial := record.GetTrial()
		proto.Merge(trial, kept)
		if !isImport {
			return nil
		}
		return (&trialChange{c, record}).importOutcome(point, requested)
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
func checkOutcome(id string, policy Policy, requested *dparetov1.Trial) error {
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
	if policy.Traits().Prepaid && (isWithoutResult(requested) || len(measurements) > 0) {
		return status.Errorf(codes.FailedPrecondition, "%s has private_mode or random_stopping: it takes outcomes only from trials that it handed out", resource.StudyName(id))
	}
	return nil
}

// importOutcome completes a new trial with the outcome that a user gives.
func (c *trialChange) importOutcome(point space.Point, requested *dparetov1.Trial) error {
	trial := c.record.GetTrial()
	measurements, final := requested.GetMeasurements(), requested.GetFinalMeasurement()
	switch {
	case final != nil:
		trial.Replicates = c.Compiled.Measurements.RunsOf(final, trial.GetReplicates())
	case len(measurements) > 0:
		trial.Replicates = c.Compiled.Measurements.RunsOf(measurements[0], trial.GetReplicates())
	}
	for i, m := range measurements {
		kept, err := c.keep(Report{Path: fmt.Sprintf("trial.measurements[%d]", i), Point: point, Measurement: m})
		if err != nil {
			return err
		}
		kept.Measurement.ReportTime = timestamppb.New(c.Now)
		trial.Measurements = append(trial.Measurements, kept.Measurement)
		trial.Warnings = spec.AddWarnings(trial.GetWarnings(), kept.Warnings...)
	}
	if final != nil {
		return c.succeed(Report{Path: "trial.final_measurement", Point: point, Measurement: final, Final: true})
	}
	c.finish(requested.GetState(), c.reason(requested.GetStateReason()))
	return nil
}

// requestedPoint returns the configuration of a trial that a user requests. A replicate has its
// original's configuration, or a checkpoint of it.
func requestedPoint(tx *store.ReadTx, id string, compiled *spec.Study, requested *dparetov1.Trial) (space.Point, error) {
	const field = "trial.replicate_of"
	if requested.GetReplicateOf() == "" {
		return compiled.Points.Parse("trial.parameters", requested.GetParameters())
	}
	study, number, err := resource.ParseTrialName(field, requested.GetReplicateOf())
	if err != nil {
		return nil, err
	}
	if study != id {
		return nil, invalid.Field(field, "must be a trial of %s, is %s", resource.StudyName(id), requested.GetReplicateOf())
	}
	of, err := tx.BareTrial(id, number)
	if errors.Is(err, store.ErrNotFound) {
		return nil, resource.TrialNotFound(id, number)
	}
	if err != nil {
		return nil, err
	}
	original, err := compiled.Points.Parse("trial.parameters", of.GetTrial().GetParameters())
	if err != nil || len(requested.GetParameters()) == 0 {
		return original, err
	}
	point, err := compiled.Points.Parse("trial.parameters", requested.GetParameters())
	if err != nil {
		return nil, err
	}
	step := compiled.Points.LastStep(point)
	if step > compiled.Points.LastStep(original) || !slices.Equal(point, compiled.Points.At(original, step)) {
		return nil, invalid.Field("trial.parameters", "must equal the parameters of %s, or one of its checkpoints", requested.GetReplicateOf())
	}
	return point, nil
}

// GetTrial implements StudyService.
func (t *Trials) GetTrial(ctx context.Context, req *dparetov1.GetTrialRequest) (*dparetov1.GetTrialResponse, error) {
	id, number, err := resource.ParseTrialName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.GetTrialResponse)
	err = t.studies.store.View(ctx, func(tx *store.ReadTx) error {
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
func (t *Trials) DeleteTrial(ctx context.Context, req *dparetov1.DeleteTrialRequest) (*dparetov1.DeleteTrialResponse, error) {
	return changeTrial(ctx, t.studies, req.GetName(), req, func(c *trialChange, _ *dparetov1.DeleteTrialResponse) error {
		trial := c.record.GetTrial()
		if err := checkEtag(req.GetEtag(), trial.GetEtag()); err != nil {
			return err
		}
		if trial.GetLease() != nil {
			return status.Errorf(codes.FailedPrecondition, "%s is %s: a worker holds it", trial.GetName(), trial.GetState())
		}
		c.touch()
		c.Policy.Unreserve(c.Change, c.record)
		c.events.deleted(trial)
		store.AddToCounts(c.Study.GetStudy().GetTrialCounts(), trial.GetState(), -1)
		return c.Tx.DeleteTrial(c.ID, c.record)
	})
}

// StopTrial implements StudyService.
func (t *Trials) StopTrial(ctx context.Context, req *dparetov1.StopTrialRequest) (*dparetov1.StopTrialResponse, error) {
	var fields invalid.Fields
	CheckReason("reason", req.GetReason(), false, &fields)
	if err := fields.Err(); err != nil {
		return nil, err
	}
	return changeTrial(ctx, t.studies, req.GetName(), req, func(c *trialChange, resp *dparetov1.StopTrialResponse) error {
		trial := c.record.GetTrial()
		resp.Trial = trial
		before := trial.GetState()
		switch before {
		case dparetov1.TrialState_TRIAL_STATE_STOPPING:
			return c.skipAnswerIfFull()
		case dparetov1.TrialState_TRIAL_STATE_ACTIVE:
			trial.State = dparetov1.TrialState_TRIAL_STATE_STOPPING
			trial.StateReason = c.reason(req.GetReason())
		case dparetov1.TrialState_TRIAL_STATE_QUEUED:
			c.finish(dparetov1.TrialState_TRIAL_STATE_FAILED, c.reason(req.GetReason()))
		default:
			return status.Errorf(codes.FailedPrecondition, "%s is already %s", trial.GetName(), before)
		}
		c.record.StopRequested = true
		return c.put(before)
	})
}

// PointOf returns the configuration of a trial. It fails if that does not fit the spec.
func PointOf(compiled *spec.Study, trial *dparetov1.Trial) (space.Point, error) {
	point, err := compiled.Points.Parse("trial.parameters", trial.GetParameters())
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
