package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest/space"
)

// maxMeasurements bounds the measurements on the way of one trial.
const maxMeasurements = 2000

// change is a change of a study's trials within one transaction. Every trial that is
// put gets the study's new revision, and the study is written once at the end.
type change struct {
	tx       *store.Tx
	id       string // of the study
	study    *storev1.StudyRecord
	compiled *spec.Study
	cached   *cachedStudy
	limits   limit.Limits
	entropy  *noise.Source
	now      time.Time
	events   events
}

// changeStudy runs fn in a transaction on a study and writes the study back. fn may be called
// again (see store.KV).
func (s *Server) changeStudy(ctx context.Context, id string, m *mutation, fn func(*change) error) error {
	return s.update(ctx, m, store.StudyScope(id), nil, func(tx *store.Tx) error {
		record, err := findStudy(&tx.ReadTx, id)
		if err == nil && isPublication(record.GetStudy().GetSpec()) {
			err = tx.CheckWhole(store.StudyScope(id)) // what it has spent must not be that of another time
		}
		if err != nil {
			return err
		}
		cached, err := s.studies.get(record.GetStudy())
		if err != nil {
			return err
		}
		before := record.GetStudy().GetRevision()
		c := &change{tx: tx, id: id, study: record, compiled: cached.compiled, cached: cached, limits: s.access.limits, entropy: s.entropy, now: s.now()}
		tx.AfterCommit(func() { s.count(c) })
		if err := fn(c); err != nil || record.GetStudy().GetRevision() == before {
			return err
		}
		tx.AfterCommit(func() { s.watchers.notify(id) })
		return tx.PutStudy(id, record)
	})
}

// trial returns a trial of the study, or NOT_FOUND.
func (c *change) trial(number int64) (*storev1.TrialRecord, error) {
	record, err := c.tx.Trial(c.id, number)
	if errors.Is(err, store.ErrNotFound) {
		return nil, trialNotFound(c.id, number)
	}
	return record, err
}

// changeTrial runs fn in a transaction on the trial with the resource name in a
// request's field "name".
func (s *Server) changeTrial(ctx context.Context, name string, m *mutation, fn func(*change, *storev1.TrialRecord) error) error {
	id, number, err := parseTrialName("name", name)
	if err != nil {
		return err
	}
	return s.changeStudy(ctx, id, m, func(c *change) error {
		record, err := c.trial(number)
		if err != nil {
			return err
		}
		return fn(c, record)
	})
}

// changeHeld is changeTrial for a request with the token of a lease. Of a study with random
// stopping it refuses every token that was never handed out for the trial with the same
// words, whether there is such a trial or not: their number is a secret.
func (s *Server) changeHeld(ctx context.Context, name, token string, m *mutation, fn func(*change, *storev1.TrialRecord) error) error {
	id, number, err := parseTrialName("name", name)
	if err != nil {
		return err
	}
	return s.changeStudy(ctx, id, m, func(c *change) error {
		record, err := c.trial(number)
		if isSearch(c.study.GetStudy()) && (status.Code(err) == codes.NotFound || err == nil && !slices.Contains(record.GetLeaseTokens(), token)) {
			return status.Errorf(codes.FailedPrecondition, "%s was never handed out with this token", trialName(id, number))
		}
		if err != nil {
			return err
		}
		return fn(c, record)
	})
}

// put writes a trial that was in state before; a new trial has no state before.
func (c *change) put(record *storev1.TrialRecord, before dparetov1.TrialState) error {
	study, trial := c.study.GetStudy(), record.GetTrial()
	c.touch(record)
	c.events.put(trial, before)
	if before != trial.GetState() {
		if before != dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED {
			store.AddToCounts(study.GetTrialCounts(), before, -1)
		}
		store.AddToCounts(study.GetTrialCounts(), trial.GetState(), 1)
	}
	return c.tx.PutTrial(c.id, record)
}

// touch gives a trial that is about to be written or deleted the study's next revision.
func (c *change) touch(record *storev1.TrialRecord) {
	study, trial := c.study.GetStudy(), record.GetTrial()
	study.Revision++
	trial.Revision = study.GetRevision()
	trial.Etag = etag(study.GetUid(), trial.GetRevision())
	record.ChangeTime = timestamppb.New(c.now)
}

// create writes a new trial with the given parameters and origin, in the state that
// prepare leaves it in.
func (c *change) create(point space.Point, origin dparetov1.TrialOrigin, prepare func(*storev1.TrialRecord) error) (*storev1.TrialRecord, error) {
	number := c.study.GetNextTrialNumber()
	if err := c.limits.CheckTrials(number - 1); err != nil {
		return nil, err
	}
	c.study.NextTrialNumber++
	computed, warnings := c.compiled.Compute(point)
	record := &storev1.TrialRecord{Trial: &dparetov1.Trial{
		Name:            trialName(c.id, number),
		Number:          number,
		State:           dparetov1.TrialState_TRIAL_STATE_QUEUED,
		Origin:          origin,
		Parameters:      c.compiled.Values(point),
		Replicates:      c.compiled.Replicates(),
		ComputedMetrics: computed,
		Warnings:        warnings,
		CreateTime:      timestamppb.New(c.now),
	}}
	if prepare != nil {
		if err := prepare(record); err != nil {
			return nil, err
		}
	}
	return record, c.put(record, dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED)
}

// handOut gives a trial to a worker under a new lease. What an earlier attempt
// measured on the way is dropped: the new one has other randomness. It fails where a
// privacy budget does not allow it, which the caller has to know before (see affords).
func (c *change) handOut(record *storev1.TrialRecord, worker string) error {
	if err := c.payFor(record); err != nil {
		return err
	}
	trial := record.GetTrial()
	token := newToken()
	record.LeaseTokens = append(record.LeaseTokens, token)
	trial.State = dparetov1.TrialState_TRIAL_STATE_ACTIVE
	trial.StateReason = ""
	trial.Attempt++
	trial.Measurements = nil
	trial.Warnings = slices.DeleteFunc(trial.GetWarnings(), func(w *dparetov1.Warning) bool { return w.GetCode() == spec.WarnReportDiffers })
	trial.StartTime = timestamppb.New(c.now)
	trial.Lease = &dparetov1.Lease{WorkerId: worker, Token: token}
	c.renew(trial)
	return nil
}

// renew extends the lease of a trial.
func (c *change) renew(trial *dparetov1.Trial) {
	trial.Lease.ExpireTime = timestamppb.New(c.now.Add(c.compiled.LeaseDuration()))
}

// finish brings a trial into a terminal state.
func (c *change) finish(record *storev1.TrialRecord, state dparetov1.TrialState, reason string) {
	trial := record.GetTrial()
	c.unreserve(record)
	c.study.CompletedTrials++
	record.CompletionOrder = c.study.GetCompletedTrials()
	trial.State = state
	trial.StateReason = reason
	trial.Lease = nil
	trial.EndTime = timestamppb.New(c.now)
	c.tx.AfterCommit(func() { c.cached.stopping.forget(trial.GetNumber()) })
	c.updateStagnation(trial)
}

// newToken returns a fencing token.
func newToken() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err) // crypto/rand does not fail (see its documentation)
	}
	return hex.EncodeToString(b[:])
}

// isTerminal reports whether a trial in the state never changes again.
func isTerminal(state dparetov1.TrialState) bool {
	switch state {
	case dparetov1.TrialState_TRIAL_STATE_SUCCEEDED,
		dparetov1.TrialState_TRIAL_STATE_INFEASIBLE,
		dparetov1.TrialState_TRIAL_STATE_FAILED:
		return true
	default:
		return false
	}
}

// checkHeld refuses a write on a trial under any token but that of its lease. A lease
// that ran out counts as long as nobody else got the trial.
func checkHeld(trial *dparetov1.Trial, token string) error {
	if lease := trial.GetLease(); lease != nil && lease.GetToken() == token {
		return nil
	}
	return status.Errorf(codes.FailedPrecondition,
		"the lease of %s is not the one with this token; the trial is %s", trial.GetName(), trial.GetState())
}

// checkReason checks the length of a reason.
func checkReason(field, reason string, required bool, fields *invalid.Fields) {
	switch n := len([]rune(reason)); {
	case n > maxReason:
		fields.Addf(field, "must have at most %d characters, has %d", maxReason, n)
	case required && n == 0:
		fields.Addf(field, "must be set")
	}
}

// CreateTrial implements StudyService.
func (s *studyService) CreateTrial(ctx context.Context, req *dparetov1.CreateTrialRequest) (*dparetov1.CreateTrialResponse, error) {
	id, err := parseStudyName("parent", req.GetParent())
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
	if err := validateTrialFields(requested); err != nil {
		return nil, err
	}
	if err := s.prepareRequested(ctx, id, requested); err != nil {
		return nil, err
	}
	resp := new(dparetov1.CreateTrialResponse)
	m, err := newMutation(req, resp)
	if err != nil {
		return nil, err
	}
	err = s.changeStudy(ctx, id, m, func(c *change) error {
		if c.compiled.IsPrivate() && requested.GetFinalMeasurement() != nil {
			return status.Errorf(codes.FailedPrecondition, "%s has private_mode: results come from trials that it handed out, and paid for", studyName(id))
		}
		point, err := c.requestedPoint(requested)
		if err != nil {
			return err
		}
		if err := c.compiled.CheckAllowed("trial.parameters", point); err != nil {
			return err
		}
		origin := dparetov1.TrialOrigin_TRIAL_ORIGIN_REQUESTED
		isReplicate := requested.GetReplicateOf() != ""
		if isReplicate {
			origin = dparetov1.TrialOrigin_TRIAL_ORIGIN_REPLICATE
		}
		var final *dparetov1.Measurement
		var warnings []*dparetov1.Warning
		if requested.GetFinalMeasurement() != nil {
			origin = dparetov1.TrialOrigin_TRIAL_ORIGIN_IMPORTED
			final, warnings, err = c.compiled.Measurement("trial.final_measurement", point, requested.GetFinalMeasurement(), true)
			if err != nil {
				return err
			}
			final.ReportTime = timestamppb.New(c.now)
		} else if reason := s.spent(c.study); reason != "" && !isReplicate { // a result can always be checked
			return status.Errorf(codes.FailedPrecondition, "%s: %s", studyName(id), reason)
		}
		record, err := c.create(point, origin, func(record *storev1.TrialRecord) error {
			trial := record.GetTrial()
			trial.Labels = requested.GetLabels()
			trial.Note = requested.GetNote()
			trial.ReplicateOf = requested.GetReplicateOf()
			if final != nil {
				trial.FinalMeasurement = final
				addWarnings(trial, warnings)
				c.finish(record, dparetov1.TrialState_TRIAL_STATE_SUCCEEDED, "")
			}
			return nil
		})
		resp.Trial = record.GetTrial()
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// requestedPoint returns the configuration of a trial that a user asks for. That of a
// replicate is the configuration of its original, or a state on the way to it.
func (c *change) requestedPoint(requested *dparetov1.Trial) (space.Point, error) {
	const field = "trial.replicate_of"
	if requested.GetReplicateOf() == "" {
		return c.compiled.Point("trial.parameters", requested.GetParameters())
	}
	study, number, err := parseTrialName(field, requested.GetReplicateOf())
	if err != nil {
		return nil, err
	}
	if study != c.id {
		return nil, invalid.Field(field, "must be a trial of %s, is %s", studyName(c.id), requested.GetReplicateOf())
	}
	record, err := c.trial(number)
	if err != nil {
		return nil, err
	}
	original, err := c.compiled.Point("trial.parameters", record.GetTrial().GetParameters())
	if err != nil || len(requested.GetParameters()) == 0 {
		return original, err
	}
	point, err := c.compiled.Point("trial.parameters", requested.GetParameters())
	if err != nil {
		return nil, err
	}
	step := c.compiled.LastStep(point)
	if step > c.compiled.LastStep(original) || !slices.Equal(point, c.compiled.At(original, step)) {
		return nil, invalid.Field("trial.parameters", "must be those of %s, or of a state on its way", requested.GetReplicateOf())
	}
	return point, nil
}

// addWarnings adds warnings that the trial does not have yet.
func addWarnings(trial *dparetov1.Trial, warnings []*dparetov1.Warning) {
	for _, w := range warnings {
		if !slices.ContainsFunc(trial.GetWarnings(), func(o *dparetov1.Warning) bool { return proto.Equal(o, w) }) {
			trial.Warnings = append(trial.Warnings, w)
		}
	}
}

// GetTrial implements StudyService.
func (s *studyService) GetTrial(ctx context.Context, req *dparetov1.GetTrialRequest) (*dparetov1.GetTrialResponse, error) {
	id, number, err := parseTrialName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.GetTrialResponse)
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := tx.Trial(id, number)
		if err == nil {
			err = tx.FindStudy(id) // there are trials before the study when it is imported
		}
		if errors.Is(err, store.ErrNotFound) {
			return trialNotFound(id, number)
		}
		resp.Trial = record.GetTrial()
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// DeleteTrial implements StudyService.
func (s *studyService) DeleteTrial(ctx context.Context, req *dparetov1.DeleteTrialRequest) (*dparetov1.DeleteTrialResponse, error) {
	resp := new(dparetov1.DeleteTrialResponse)
	m, err := newMutation(req, resp)
	if err != nil {
		return nil, err
	}
	err = s.changeTrial(ctx, req.GetName(), m, func(c *change, record *storev1.TrialRecord) error {
		trial := record.GetTrial()
		if err := checkEtag(req.GetEtag(), trial.GetEtag()); err != nil {
			return err
		}
		if trial.GetLease() != nil {
			return status.Errorf(codes.FailedPrecondition, "%s is %s: a worker holds it", trial.GetName(), trial.GetState())
		}
		c.touch(record)
		c.unreserve(record)
		c.tx.AfterCommit(func() { c.cached.stopping.forget(trial.GetNumber()) })
		c.events.deleted(trial)
		store.AddToCounts(c.study.GetStudy().GetTrialCounts(), trial.GetState(), -1)
		return c.tx.DeleteTrial(c.id, record)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// AddMeasurement implements StudyService.
func (s *studyService) AddMeasurement(ctx context.Context, req *dparetov1.AddMeasurementRequest) (*dparetov1.AddMeasurementResponse, error) {
	resp := new(dparetov1.AddMeasurementResponse)
	told, err := s.toldBy(ctx, req.GetName(), req)
	if err != nil {
		return nil, err
	}
	m, err := newMutation(told.request, resp)
	if err != nil {
		return nil, err
	}
	id, _, err := parseTrialName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	if done, err := s.answered(ctx, m, store.StudyScope(id)); err != nil || done {
		return resp, err
	}
	useful, err := s.lastUseful(ctx, req.GetName())
	if err != nil {
		return nil, err
	}
	if err := s.prepareMeasured(ctx, req.GetName(), req.GetMeasurement().GetStep()); err != nil {
		return nil, err
	}
	var study *dparetov1.Study
	var reported *dparetov1.Trial
	mayStop := false
	err = s.changeHeld(ctx, req.GetName(), req.GetLeaseToken(), m, func(c *change, record *storev1.TrialRecord) error {
		trial := record.GetTrial()
		if err := told.check(c); err != nil {
			return err
		}
		if err := checkHeld(trial, req.GetLeaseToken()); err != nil {
			return err
		}
		measurement, warnings, fresh, err := c.measured(record, req.GetLeaseToken(), req.GetMeasurement(), false)
		if err != nil {
			return err
		}
		if fresh {
			if err := addMeasurement(trial, measurement, c.now); err != nil {
				return err
			}
		}
		addWarnings(trial, warnings)
		c.renew(trial)
		before := trial.GetState()
		if mayStop = useful.holdsFor(c.cached); mayStop {
			c.cached.stopping.keepUseful(trial.GetNumber(), useful.last)
			c.stopUseless(trial, measurement.GetStep(), useful.last)
			c.stopHopeless(trial)
		}
		study, reported = c.study.GetStudy(), trial
		resp.ShouldStop = trial.GetState() == dparetov1.TrialState_TRIAL_STATE_STOPPING
		if resp.GetShouldStop() {
			resp.StopReason = trial.GetStateReason()
		}
		resp.LeaseExpireTime = trial.GetLease().GetExpireTime()
		return c.put(record, before)
	})
	if err != nil {
		return nil, err
	}
	if mayStop && !resp.GetShouldStop() && !m.repeated {
		s.judge(study, reported, useful.last)
	}
	return resp, nil
}

// addMeasurement inserts a measurement in step order. The same measurement again
// changes nothing; another one at the same step is refused.
func addMeasurement(trial *dparetov1.Trial, m *dparetov1.Measurement, now time.Time) error {
	i, found := slices.BinarySearchFunc(trial.GetMeasurements(), m.GetStep(), compareStep)
	if found {
		existing := proto.CloneOf(trial.GetMeasurements()[i])
		existing.ReportTime = nil
		if proto.Equal(existing, m) {
			return nil
		}
		return status.Errorf(codes.FailedPrecondition, "%s has another measurement at step %d", trial.GetName(), m.GetStep())
	}
	if len(trial.GetMeasurements()) == maxMeasurements {
		return status.Errorf(codes.ResourceExhausted, "%s has %d measurements, the most that a trial can have", trial.GetName(), maxMeasurements)
	}
	m.ReportTime = timestamppb.New(now)
	trial.Measurements = slices.Insert(trial.GetMeasurements(), i, m)
	return nil
}

// RenewLeases implements StudyService.
func (s *studyService) RenewLeases(ctx context.Context, req *dparetov1.RenewLeasesRequest) (*dparetov1.RenewLeasesResponse, error) {
	id, err := parseStudyName("parent", req.GetParent())
	if err != nil {
		return nil, err
	}
	if n := len(req.GetLeaseTokens()); n < 1 || n > maxSuggestions {
		return nil, invalid.Field("lease_tokens", "must hold 1 to %d tokens, holds %d", maxSuggestions, n)
	}
	numbers := make(map[string]int64, len(req.GetLeaseTokens()))
	for name := range req.GetLeaseTokens() {
		study, number, err := parseTrialName(fmt.Sprintf("lease_tokens[%q]", name), name)
		if err != nil {
			return nil, err
		}
		if study != id {
			return nil, invalid.Field(fmt.Sprintf("lease_tokens[%q]", name), "is not a trial of %s", req.GetParent())
		}
		numbers[name] = number
	}
	resp := new(dparetov1.RenewLeasesResponse)
	m, err := newMutation(req, resp)
	if err != nil {
		return nil, err
	}
	err = s.changeStudy(ctx, id, m, func(c *change) error {
		resp.Results = make(map[string]*dparetov1.RenewLeasesResponse_Result)
		for _, name := range slices.Sorted(maps.Keys(numbers)) {
			number := numbers[name]
			result := new(dparetov1.RenewLeasesResponse_Result)
			resp.Results[name] = result
			record, err := c.tx.Trial(id, number)
			if errors.Is(err, store.ErrNotFound) {
				continue
			} else if err != nil {
				return err
			}
			trial := record.GetTrial()
			if checkHeld(trial, req.GetLeaseTokens()[name]) != nil {
				continue
			}
			c.renew(trial)
			before := trial.GetState()
			if stopsEarly(c.compiled) {
				c.stopHopeless(trial)
			}
			result.Held = true
			result.ShouldStop = trial.GetState() == dparetov1.TrialState_TRIAL_STATE_STOPPING
			result.ExpireTime = trial.GetLease().GetExpireTime()
			if err := c.put(record, before); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// CompleteTrial implements StudyService.
func (s *studyService) CompleteTrial(ctx context.Context, req *dparetov1.CompleteTrialRequest) (*dparetov1.CompleteTrialResponse, error) {
	var fields invalid.Fields
	switch outcome := req.GetOutcome().(type) {
	case *dparetov1.CompleteTrialRequest_Infeasible:
		checkReason("infeasible.reason", outcome.Infeasible.GetReason(), true, &fields)
	case *dparetov1.CompleteTrialRequest_Failure:
		checkReason("failure.reason", outcome.Failure.GetReason(), true, &fields)
	case nil:
		fields.Addf("outcome", "one of measurement, use_last_measurement, infeasible and failure must be set")
	}
	if err := fields.Err(); err != nil {
		return nil, err
	}
	told, err := s.toldBy(ctx, req.GetName(), req)
	if err != nil {
		return nil, err
	}
	digest, err := digestOf(withoutID(told.request))
	if err != nil {
		return nil, err
	}
	if measurement := req.GetMeasurement(); measurement != nil {
		if err := s.prepareMeasured(ctx, req.GetName(), measurement.GetStep()); err != nil {
			return nil, err
		}
	}
	resp := new(dparetov1.CompleteTrialResponse)
	m, err := newMutation(told.request, resp)
	if err != nil {
		return nil, err
	}
	var study *dparetov1.Study
	err = s.changeHeld(ctx, req.GetName(), req.GetLeaseToken(), m, func(c *change, record *storev1.TrialRecord) error {
		if err := told.check(c); err != nil {
			return err
		}
		resp.Trial = record.GetTrial()
		study = c.study.GetStudy()
		if record.GetCompletionToken() == req.GetLeaseToken() && slices.Equal(record.GetCompletionDigest(), digest) && req.GetLeaseToken() != "" {
			return nil // the answer was lost; the change is there
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
	if !m.repeated {
		s.prepare(study) //nolint:contextcheck // it outlives the call
	}
	return resp, nil
}

// checkCompletable refuses an outcome that the trial cannot take: of a trial that is
// complete, under a token that was never handed out, or a failure under a lease that
// was lost. Any other result counts, late as it may be, as long as nobody else
// completed the trial.
func checkCompletable(record *storev1.TrialRecord, req *dparetov1.CompleteTrialRequest) error {
	trial := record.GetTrial()
	if isTerminal(trial.GetState()) {
		return status.Errorf(codes.FailedPrecondition, "%s is already %s with another outcome or under another lease; a result is never overwritten",
			trial.GetName(), trial.GetState())
	}
	_, isFailure := req.GetOutcome().(*dparetov1.CompleteTrialRequest_Failure)
	if isFailure || !slices.Contains(record.GetLeaseTokens(), req.GetLeaseToken()) {
		return checkHeld(trial, req.GetLeaseToken())
	}
	return nil
}

// complete applies an outcome to a trial.
func (c *change) complete(record *storev1.TrialRecord, req *dparetov1.CompleteTrialRequest) error {
	trial := record.GetTrial()
	switch outcome := req.GetOutcome().(type) {
	case *dparetov1.CompleteTrialRequest_Measurement:
		final, warnings, _, err := c.measured(record, req.GetLeaseToken(), outcome.Measurement, true)
		if err != nil {
			return err
		}
		final.ReportTime = timestamppb.New(c.now)
		trial.FinalMeasurement = final
		addWarnings(trial, warnings)
		c.finish(record, dparetov1.TrialState_TRIAL_STATE_SUCCEEDED, "")
	case *dparetov1.CompleteTrialRequest_UseLastMeasurement:
		if trial.GetLease().GetToken() != req.GetLeaseToken() || len(trial.GetMeasurements()) == 0 {
			return status.Errorf(codes.FailedPrecondition, "%s has no measurement under this lease", trial.GetName())
		}
		c.finishWithLast(record)
	case *dparetov1.CompleteTrialRequest_Infeasible:
		c.finish(record, dparetov1.TrialState_TRIAL_STATE_INFEASIBLE, c.reason(outcome.Infeasible.GetReason()))
	case *dparetov1.CompleteTrialRequest_Failure:
		if outcome.Failure.GetRetryable() {
			switch {
			case trial.GetState() == dparetov1.TrialState_TRIAL_STATE_STOPPING:
				c.settleStopped(record)
				return nil
			case !c.attemptsSpent(record):
				c.requeue(trial, c.reason(outcome.Failure.GetReason()))
				return nil
			}
		}
		c.finish(record, dparetov1.TrialState_TRIAL_STATE_FAILED, c.reason(outcome.Failure.GetReason()))
	}
	return nil
}

// finishWithLast completes a trial with its last measurement.
func (c *change) finishWithLast(record *storev1.TrialRecord) {
	trial := record.GetTrial()
	trial.FinalMeasurement = proto.CloneOf(trial.GetMeasurements()[len(trial.GetMeasurements())-1])
	c.finish(record, dparetov1.TrialState_TRIAL_STATE_SUCCEEDED, trial.GetStateReason())
}

// requeue gives a trial back to the queue.
func (c *change) requeue(trial *dparetov1.Trial, reason string) {
	trial.State = dparetov1.TrialState_TRIAL_STATE_QUEUED
	trial.StateReason = reason
	trial.Lease = nil
}

// attemptsSpent reports whether a trial must not be handed out again. Workers that
// gave it back did not fail.
func (c *change) attemptsSpent(record *storev1.TrialRecord) bool {
	return int64(record.GetTrial().GetAttempt())-record.GetReleases() >= int64(c.compiled.MaxAttempts())
}

// ReleaseTrial implements StudyService.
func (s *studyService) ReleaseTrial(ctx context.Context, req *dparetov1.ReleaseTrialRequest) (*dparetov1.ReleaseTrialResponse, error) {
	var fields invalid.Fields
	checkReason("reason", req.GetReason(), false, &fields)
	if err := fields.Err(); err != nil {
		return nil, err
	}
	resp := new(dparetov1.ReleaseTrialResponse)
	told, err := s.toldBy(ctx, req.GetName(), req)
	if err != nil {
		return nil, err
	}
	m, err := newMutation(told.request, resp)
	if err != nil {
		return nil, err
	}
	err = s.changeHeld(ctx, req.GetName(), req.GetLeaseToken(), m, func(c *change, record *storev1.TrialRecord) error {
		trial := record.GetTrial()
		if err := told.check(c); err != nil {
			return err
		}
		resp.Trial = trial
		if wasReleased(record, req.GetLeaseToken()) {
			return nil // the answer was lost
		}
		if err := checkHeld(trial, req.GetLeaseToken()); err != nil {
			return err
		}
		before := trial.GetState()
		if before == dparetov1.TrialState_TRIAL_STATE_STOPPING {
			c.settleStopped(record)
		} else {
			c.requeue(trial, c.reason(req.GetReason()))
			record.Releases++
		}
		return c.put(record, before)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// wasReleased reports whether a trial was given back under a token, the last that there is.
// A token of completion may be that of an attempt that failed before.
func wasReleased(record *storev1.TrialRecord, token string) bool {
	tokens, completion := record.GetLeaseTokens(), record.GetCompletionToken()
	isLast := len(tokens) > 0 && tokens[len(tokens)-1] == token
	return isLast && record.GetTrial().GetLease() == nil &&
		(completion == "" || completion != token && record.GetTrial().GetState() == dparetov1.TrialState_TRIAL_STATE_QUEUED)
}

// settleStopped completes a trial that was asked to stop and whose worker is gone:
// with its last measurement if it has one, as failed otherwise.
func (c *change) settleStopped(record *storev1.TrialRecord) {
	record.CompletionToken, record.CompletionDigest = "", nil // those of an attempt that failed before
	if len(record.GetTrial().GetMeasurements()) > 0 {
		c.finishWithLast(record)
		return
	}
	c.finish(record, dparetov1.TrialState_TRIAL_STATE_FAILED, record.GetTrial().GetStateReason())
}

// StopTrial implements StudyService.
func (s *studyService) StopTrial(ctx context.Context, req *dparetov1.StopTrialRequest) (*dparetov1.StopTrialResponse, error) {
	var fields invalid.Fields
	checkReason("reason", req.GetReason(), false, &fields)
	if err := fields.Err(); err != nil {
		return nil, err
	}
	resp := new(dparetov1.StopTrialResponse)
	m, err := newMutation(req, resp)
	if err != nil {
		return nil, err
	}
	err = s.changeTrial(ctx, req.GetName(), m, func(c *change, record *storev1.TrialRecord) error {
		trial := record.GetTrial()
		resp.Trial = trial
		before := trial.GetState()
		switch before {
		case dparetov1.TrialState_TRIAL_STATE_STOPPING:
			return nil
		case dparetov1.TrialState_TRIAL_STATE_ACTIVE:
			trial.State = dparetov1.TrialState_TRIAL_STATE_STOPPING
			trial.StateReason = req.GetReason()
		case dparetov1.TrialState_TRIAL_STATE_QUEUED:
			c.finish(record, dparetov1.TrialState_TRIAL_STATE_FAILED, req.GetReason())
		default:
			return status.Errorf(codes.FailedPrecondition, "%s is already %s", trial.GetName(), before)
		}
		record.StopRequested = true
		return c.put(record, before)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}
