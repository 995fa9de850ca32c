package study

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest/space"
)

// Change is a transaction on one study. Every trial it puts gets the study's new revision; the study
// is written once at the end.
type Change struct {
	Tx       *store.Tx
	ID       string               // of the study
	Study    *storev1.StudyRecord // written back if its revision changes
	Compiled *spec.Study
	Cached   *Cached
	Policy   Policy
	studies  *Studies
	request  *Request  // whose answer is stored with the change
	Now      time.Time // for people, and for budgets of duration
	Steady   time.Time // for the ages of answers
	time     reading   // of the clock of leases
	events   Events
}

// trialChange is a change with the trial that it works on.
type trialChange struct {
	*Change
	record *storev1.TrialRecord
}

// Change runs fn in a transaction on a study and writes the study back. fn may run more than once
// (see store.KV). Calls compute what takes long before the transaction: see precompute.
func (s *Studies) Change(ctx context.Context, id string, r *Request, fn func(*Change) error) error {
	scope := store.StudyScope(id)
	r.bind(ctx, scope)
	return s.store.Update(ctx, store.In(scope), func(tx *store.Tx) error {
		c, err := begin(s, tx, id)
		if status.Code(err) == codes.NotFound && r.wasAnswered(tx, s.times.now(&tx.ReadTx)) {
			return nil // the study was deleted since
		}
		if err != nil {
			return err
		}
		c.request, r.policy = r, c.Policy
		return r.once(tx, c.Steady, func() error { return c.run(fn) })
	})
}

// response is a pointer to a response of type R.
type response[R any] interface {
	*R
	proto.Message
}

// answer makes a call that changes the study with an id. fn fills in the response in a transaction:
// see Change.
func answer[R any, P response[R]](ctx context.Context, s *Studies, id string, req Identified, fn func(*Change, P) error) (P, error) {
	resp := P(new(R))
	r, err := NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	if err := s.Change(ctx, id, r, func(c *Change) error { return fn(c, resp) }); err != nil {
		return nil, err
	}
	return resp, nil
}

// maxRaces is how often a change is planned again because the study has changed meanwhile.
const maxRaces = 10

// errRaced says that a study has changed since a change of it was planned.
var errRaced = errors.New("the study has changed")

// answerPlanned is answer for a change that takes too long for a transaction. plan reads the study and
// returns the function that makes the change, which fails with errRaced if the study has changed since.
func answerPlanned[R any, P response[R]](ctx context.Context, s *Studies, id string, req Identified, plan func() (func(*Change, P) error, error)) (P, error) {
	resp := P(new(R))
	r, err := NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	if done, err := r.answered(ctx, s, store.StudyScope(id)); err != nil || done {
		return resp, err
	}
	for range maxRaces {
		write, err := plan()
		if err != nil {
			return nil, err
		}
		err = s.Change(ctx, id, r, func(c *Change) error {
			c.Tx.AfterCommit(func() { _, _ = s.Get(c.Study) }) // caches a new spec, for which the next call precomputes
			return write(c, resp)
		})
		if err == nil {
			return resp, nil
		}
		if !errors.Is(err, errRaced) {
			s.cache.forget(resource.StudyName(id)) // later changes in the failed commit may have cached the new spec
			return nil, err
		}
	}
	return nil, status.Errorf(codes.Aborted, "%s kept changing during the call; try again", resource.StudyName(id))
}

// begin returns a change of a study, or NOT_FOUND.
func begin(s *Studies, tx *store.Tx, id string) (*Change, error) {
	record, err := FindStudy(&tx.ReadTx, id)
	if err != nil {
		return nil, err
	}
	policy := s.Policy(record.GetStudy().GetSpec())
	if policy.Traits().Prepaid {
		if err := tx.CheckWhole(store.StudyScope(id)); err != nil {
			return nil, err
		}
	}
	cached, err := s.Get(record)
	if err != nil {
		return nil, err
	}
	return &Change{
		Tx: tx, ID: id, Study: record, Compiled: cached.Compiled, Cached: cached, Policy: policy,
		studies: s, Now: s.times.wallIn(&tx.ReadTx), Steady: s.times.now(&tx.ReadTx), time: s.times.read(&tx.ReadTx),
	}, nil
}

// run calls fn and writes the study if it has changed. The observers are told after the commit.
func (c *Change) run(fn func(*Change) error) error {
	before := c.Study.GetStudy().GetRevision()
	if err := fn(c); err != nil {
		return err
	}
	c.Tx.AfterCommit(func() {
		c.events.ID, c.events.Study, c.events.Cached = c.ID, c.Study.GetStudy(), c.Cached
		c.events.Hidden = c.Policy.Traits().Hidden
		for _, observe := range c.studies.observers {
			observe(&c.events)
		}
	})
	if c.Study.GetStudy().GetRevision() == before {
		return nil
	}
	c.Tx.AfterCommit(func() { announce(c.studies, c.ID) })
	return c.Tx.PutStudy(c.ID, c.Study)
}

// trial returns a trial of the study, or NOT_FOUND.
func (c *Change) trial(number int64) (*trialChange, error) {
	return c.readTrial(c.Tx.Trial, number)
}

// readTrial is trial with a choice of how to read it.
func (c *Change) readTrial(read func(string, int64) (*storev1.TrialRecord, error), number int64) (*trialChange, error) {
	record, err := read(c.ID, number)
	if errors.Is(err, store.ErrNotFound) {
		return nil, resource.TrialNotFound(c.ID, number)
	}
	if err != nil {
		return nil, err
	}
	return &trialChange{c, record}, nil
}

// heldTrial reads a trial for a request with a lease token. For a hidden study an unknown trial
// and a token that was never handed out give the same error: the number of trials is secret.
func (c *Change) heldTrial(read func(string, int64) (*storev1.TrialRecord, error), number int64, token string) (*trialChange, error) {
	tc, err := c.readTrial(read, number)
	if c.Policy.Traits().Hidden && (status.Code(err) == codes.NotFound || err == nil && !slices.Contains(tc.record.GetLeaseTokens(), token)) {
		return nil, status.Errorf(codes.FailedPrecondition, "%s was never handed out with this token", resource.TrialName(c.ID, number))
	}
	return tc, err
}

// put writes the trial. before is its previous state, UNSPECIFIED for a new trial.
func (c *trialChange) put(before dparetov1.TrialState) error {
	record := c.record
	study, trial := c.Study.GetStudy(), record.GetTrial()
	c.touch()
	c.events.put(trial, before)
	if trial.GetLease() == nil {
		record.LeaseEnd = nil
	}
	if before != trial.GetState() {
		if before != dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED {
			store.AddToCounts(study.GetTrialCounts(), before, -1)
		}
		store.AddToCounts(study.GetTrialCounts(), trial.GetState(), 1)
	}
	if err := c.Tx.PutTrial(c.ID, record); err != nil {
		return err
	}
	if IsTerminal(trial.GetState()) && !IsTerminal(before) {
		return c.Policy.AfterTrialEnds(c.Change)
	}
	return nil
}

// touch gives the trial the study's next revision, before it is written or deleted.
func (c *trialChange) touch() {
	study, trial := c.Study.GetStudy(), c.record.GetTrial()
	study.Revision++
	trial.Revision = study.GetRevision()
	trial.Etag = Etag(study.GetUid(), trial.GetRevision())
	c.record.ChangeTime = timestamppb.New(c.Now)
}

// checkSize returns RESOURCE_EXHAUSTED if the study is too large to grow. Trials can be completed all
// the same: a result is worth more than its few bytes.
func (c *Change) checkSize() error {
	size, err := c.Tx.Size(store.StudyScope(c.ID))
	if err != nil {
		return err
	}
	return c.studies.limits.CheckBytes(size)
}

// skipAnswerIfFull does not store the answer to the request if the study is too large to grow. It is
// for requests that can be repeated without harm, and so without end.
func (c *Change) skipAnswerIfFull() error {
	c.request.Effect = EffectAll
	err := c.checkSize()
	if status.Code(err) == codes.ResourceExhausted {
		c.request.Effect = EffectNone
		return nil
	}
	return err
}

// Create writes a new trial with the given parameters and origin. The trial is QUEUED unless
// prepare, which may be nil, changes it.
func (c *Change) Create(point space.Point, origin dparetov1.TrialOrigin, prepare func(*storev1.TrialRecord) error) (*storev1.TrialRecord, error) {
	if err := c.studies.limits.CheckTrials(c.Study.GetNextTrialNumber()-1, OpenTrials(c.Study.GetStudy().GetTrialCounts())); err != nil {
		return nil, err
	}
	if err := c.checkSize(); err != nil {
		return nil, err
	}
	return c.CreateAs(c.Compiled, point, origin, prepare)
}

// CreateAs is Create with the metrics of another compiled spec, and beyond the limits of a study: it is for
// the one trial without which a study could not end.
func (c *Change) CreateAs(compiled *spec.Study, point space.Point, origin dparetov1.TrialOrigin, prepare func(*storev1.TrialRecord) error) (*storev1.TrialRecord, error) {
	number := c.Study.GetNextTrialNumber()
	c.Study.NextTrialNumber++
	computed, warnings := compiled.Metrics.Compute(point)
	record := &storev1.TrialRecord{Trial: &dparetov1.Trial{
		Name:            resource.TrialName(c.ID, number),
		Number:          number,
		State:           dparetov1.TrialState_TRIAL_STATE_QUEUED,
		Origin:          origin,
		Parameters:      compiled.Points.Values(point),
		Replicates:      compiled.Replicates(),
		ComputedMetrics: computed,
		Warnings:        warnings,
		CreateTime:      timestamppb.New(c.Now),
	}}
	if prepare != nil {
		if err := prepare(record); err != nil {
			return nil, err
		}
	}
	tc := &trialChange{c, record}
	return record, tc.put(dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED)
}
