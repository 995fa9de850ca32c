package study

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dpareto/dpareto/server/resource"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest/space"
)

// maxAside is how often a change is given up to compute something aside. After that it is
// computed within the transaction: other changes are evicting it faster than it is used.
const maxAside = 3

// Change is a change of a study's trials within one transaction. Every trial that is
// put gets the study's new revision, and the study is written once at the end.
type Change struct {
	Tx       *store.Tx
	ID       string // of the study
	Study    *storev1.StudyRecord
	Compiled *spec.Study
	Cached   *Cached
	Policy   Policy
	studies  *Studies
	Now      time.Time
	events   Events

	within bool // nothing is computed aside any more
}

// Change runs fn in a transaction on a study and writes the study back. fn may be called
// again (see store.KV, and aside).
func (s *Studies) Change(ctx context.Context, id string, r *Request, fn func(*Change) error) error {
	scope := store.StudyScope(id)
	r.bind(ctx, scope)
	for round := 0; ; round++ {
		err := s.store.Update(ctx, store.In(scope), func(tx *store.Tx) error {
			c, err := s.begin(tx, id)
			if err != nil {
				return err
			}
			c.within = round == maxAside
			r.policy = c.Policy
			return r.once(tx, c.Now, func() error { return c.run(fn) })
		})
		first, ok := errors.AsType[*aside](err)
		if !ok {
			return err
		}
		if err := first.compute(ctx); err != nil {
			return err
		}
	}
}

// begin returns a change of a study, or NOT_FOUND.
func (s *Studies) begin(tx *store.Tx, id string) (*Change, error) {
	record, err := FindStudy(&tx.ReadTx, id)
	if err == nil && spec.IsPublication(record.GetStudy().GetSpec()) {
		err = tx.CheckWhole(store.StudyScope(id)) // its account of what was spent must be the latest
	}
	if err != nil {
		return nil, err
	}
	cached, err := s.Get(record.GetStudy())
	if err != nil {
		return nil, err
	}
	return &Change{
		Tx: tx, ID: id, Study: record, Compiled: cached.Compiled, Cached: cached, Policy: s.Policy(record.GetStudy().GetSpec()),
		studies: s, Now: s.now(),
	}, nil
}

// run calls fn and writes the study if it has changed.
func (c *Change) run(fn func(*Change) error) error {
	before := c.Study.GetStudy().GetRevision()
	if err := fn(c); err != nil {
		return err
	}
	c.Tx.AfterCommit(c.tell)
	if c.Study.GetStudy().GetRevision() == before {
		return nil
	}
	c.Tx.AfterCommit(func() { c.studies.watchers.notify(c.ID) })
	return c.Tx.PutStudy(c.ID, c.Study)
}

// tell tells observers of the change.
func (c *Change) tell() {
	c.events.ID, c.events.Study, c.events.Cached = c.ID, c.Study.GetStudy(), c.Cached
	c.events.Hidden = c.Policy.Traits().Hidden
	for _, observe := range c.studies.observers {
		observe(&c.events)
	}
}

// aside is the error of a change that needs something which takes too long for a transaction:
// it is given up, the value computed outside, where the study's caches keep it, and the change
// made again. So there is one transaction where the value is known, as it mostly is.
type aside struct{ compute func(context.Context) error }

// Error implements error.
func (*aside) Error() string { return "something is to be computed outside of the transaction" }

// first gives the change up if anything is to be computed aside; functions that are nil are not.
func (c *Change) first(computations ...func(context.Context) error) error {
	computations = slices.DeleteFunc(computations, func(f func(context.Context) error) bool { return f == nil })
	if c.within || len(computations) == 0 {
		return nil
	}
	return &aside{func(ctx context.Context) error {
		for _, compute := range computations {
			if err := compute(ctx); err != nil {
				return err
			}
		}
		return nil
	}}
}

// metricsAt returns what computes the metrics of a configuration at a step (0: the end), nil if
// they are known, or computed in no time.
func (c *Change) metricsAt(point space.Point, step int64) func(context.Context) error {
	if last := c.Compiled.LastStep(point); step >= 1 && step < last {
		point = c.Compiled.At(point, step)
	}
	if c.Compiled.AtHand(point) {
		return nil
	}
	return func(context.Context) error {
		c.Compiled.Compute(point)
		return nil
	}
}

// trial returns a trial of the study, or NOT_FOUND.
func (c *Change) trial(number int64) (*storev1.TrialRecord, error) {
	record, err := c.Tx.Trial(c.ID, number)
	if errors.Is(err, store.ErrNotFound) {
		return nil, resource.TrialNotFound(c.ID, number)
	}
	return record, err
}

// heldTrial returns a trial for a request with the token of a lease. Of a hidden study it refuses
// every token that was never handed out for the trial with the same words, whether there is
// such a trial or not: their number is a secret.
func (c *Change) heldTrial(number int64, token string) (*storev1.TrialRecord, error) {
	record, err := c.trial(number)
	if c.Policy.Traits().Hidden && (status.Code(err) == codes.NotFound || err == nil && !slices.Contains(record.GetLeaseTokens(), token)) {
		return nil, status.Errorf(codes.FailedPrecondition, "%s was never handed out with this token", resource.TrialName(c.ID, number))
	}
	return record, err
}

// put writes a trial that was in state before; a new trial has no state before.
func (c *Change) put(record *storev1.TrialRecord, before dparetov1.TrialState) error {
	study, trial := c.Study.GetStudy(), record.GetTrial()
	c.touch(record)
	c.events.put(trial, before)
	if before != trial.GetState() {
		if before != dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED {
			store.AddToCounts(study.GetTrialCounts(), before, -1)
		}
		store.AddToCounts(study.GetTrialCounts(), trial.GetState(), 1)
	}
	return c.Tx.PutTrial(c.ID, record)
}

// touch gives a trial that is about to be written or deleted the study's next revision.
func (c *Change) touch(record *storev1.TrialRecord) {
	study, trial := c.Study.GetStudy(), record.GetTrial()
	study.Revision++
	trial.Revision = study.GetRevision()
	trial.Etag = Etag(study.GetUid(), trial.GetRevision())
	record.ChangeTime = timestamppb.New(c.Now)
}

// Create writes a new trial with the given parameters and origin, in the state that
// prepare leaves it in.
func (c *Change) Create(point space.Point, origin dparetov1.TrialOrigin, prepare func(*storev1.TrialRecord) error) (*storev1.TrialRecord, error) {
	number := c.Study.GetNextTrialNumber()
	if err := c.studies.limits.CheckTrials(number - 1); err != nil {
		return nil, err
	}
	c.Study.NextTrialNumber++
	computed, warnings := c.Compiled.Compute(point)
	record := &storev1.TrialRecord{Trial: &dparetov1.Trial{
		Name:            resource.TrialName(c.ID, number),
		Number:          number,
		State:           dparetov1.TrialState_TRIAL_STATE_QUEUED,
		Origin:          origin,
		Parameters:      c.Compiled.Values(point),
		Replicates:      c.Compiled.Replicates(),
		ComputedMetrics: computed,
		Warnings:        warnings,
		CreateTime:      timestamppb.New(c.Now),
	}}
	if prepare != nil {
		if err := prepare(record); err != nil {
			return nil, err
		}
	}
	return record, c.put(record, dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED)
}
