package study

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
)

// Some studies must be prepared before they hand out trials (see Policy.Unprepared). The preparation
// runs in the background, in STUDY_STATE_PREPARING. It ends with one transaction, which pays and
// activates the study, or completes it with the reason why it cannot be paid for. Nothing is stored before: after a
// restart it begins anew.

// patience is how long CreateStudy waits for a preparation. Most are short.
const patience = time.Second

// preparations are the studies that are being prepared, by uid.
type preparations struct {
	mu      sync.Mutex
	running map[string]*preparation
}

// preparation is one of them.
type preparation struct {
	done, total atomic.Int64
	ended       chan struct{} // closed at the end
}

// progress returns the progress of a study.
func (p *preparations) progress(uid string) *dparetov1.Preparation {
	p.mu.Lock()
	defer p.mu.Unlock()
	running := p.running[uid]
	if running == nil {
		return new(dparetov1.Preparation)
	}
	return &dparetov1.Preparation{Done: running.done.Load(), Total: running.total.Load()}
}

// begin returns the preparation of a study, and whether it is a new one.
func (p *preparations) begin(uid string) (running *preparation, isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if running := p.running[uid]; running != nil {
		return running, false
	}
	if p.running == nil {
		p.running = make(map[string]*preparation)
	}
	p.running[uid] = &preparation{ended: make(chan struct{})}
	return p.running[uid], true
}

// end ends the preparation of a study.
func (p *preparations) end(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.running[uid].ended)
	delete(p.running, uid)
}

// Prepare prepares the study with an id and uid in the background, unless it is prepared or that is under way. The
// channel that it returns is closed at the end.
func (s *Studies) Prepare(id, uid string) <-chan struct{} {
	p, isNew := s.preparing.begin(uid)
	if !isNew {
		return p.ended
	}
	started := s.background.Go(func() { //nolint:contextcheck // it outlives the call
		defer s.preparing.end(uid)
		ctx := s.background.Context()
		if err := s.prepare(ctx, id, uid, p); err != nil && ctx.Err() == nil {
			s.logger.ErrorContext(ctx, "cannot prepare a study", "study", resource.StudyName(id), "error", err)
		}
	})
	if !started {
		s.preparing.end(uid)
	}
	return p.ended
}

// ResumePreparations prepares the studies whose preparation a stop of the server interrupted. Call it once, when
// the server begins.
func (s *Studies) ResumePreparations() {
	ctx := s.background.Context()
	err := s.store.View(ctx, func(tx *store.ReadTx) error {
		return tx.Studies("", func(record *storev1.StudyRecord) (bool, error) {
			if study := record.GetStudy(); study.GetState() == dparetov1.StudyState_STUDY_STATE_PREPARING {
				id, err := resource.ParseStudyName("name", study.GetName())
				if err != nil {
					return false, err
				}
				s.Prepare(id, study.GetUid())
			}
			return true, ctx.Err()
		})
	})
	if err != nil && ctx.Err() == nil {
		s.logger.ErrorContext(ctx, "cannot resume the preparation of studies", "error", err)
	}
}

// awaitPreparation starts the preparation of a study that a call has created, if it needs one, and waits a
// little. It returns the study then.
func (s *Studies) awaitPreparation(ctx context.Context, id string, created *dparetov1.Study) (*dparetov1.Study, error) {
	if created.GetState() != dparetov1.StudyState_STUDY_STATE_PREPARING {
		return created, nil
	}
	select {
	case <-s.Prepare(id, created.GetUid()): //nolint:contextcheck // it outlives the call
	case <-time.After(patience):
	case <-ctx.Done():
		return created, nil // it is durable
	}
	err := s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := tx.Study(id)
		if err == nil && record.GetStudy().GetUid() == created.GetUid() {
			created = s.Present(record)
		}
		return nil // it may have been deleted
	})
	return created, err
}

// FindPublication sets the publication of an unprepared study in a record, which is not in the store yet or
// a copy. It may take half a minute, in the pool.
func (s *Studies) FindPublication(ctx context.Context, record *storev1.StudyRecord, compiled *spec.Study, progress func(done, total int)) error {
	return s.pool.Run(ctx, pool.Analysis, func(ctx context.Context) error {
		return s.Policy(compiled.Spec).Prepare(ctx, record, compiled, progress)
	})
}

// tryPublication is FindPublication for a call that waits a little only: the record may get no publication.
func (s *Studies) tryPublication(ctx context.Context, record *storev1.StudyRecord, compiled *spec.Study) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := s.FindPublication(ctx, record, compiled, func(int, int) {})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// prepare prepares a study.
func (s *Studies) prepare(ctx context.Context, id, uid string, p *preparation) error {
	var record *storev1.StudyRecord
	err := s.store.View(ctx, func(tx *store.ReadTx) (err error) {
		record, err = FindStudy(tx, id)
		record = proto.CloneOf(record)
		return err
	})
	if err != nil || record.GetStudy().GetUid() != uid {
		return err
	}
	cached, err := s.Get(record.GetStudy())
	if err != nil {
		return err
	}
	policy := s.Policy(record.GetStudy().GetSpec())
	err = s.FindPublication(ctx, record, cached.Compiled, func(done, total int) {
		p.total.Store(int64(total))
		p.done.Store(int64(done))
	})
	if err == nil {
		err = s.settle(ctx, id, uid, func(c *Change) error {
			study := c.Study.GetStudy()
			study.Publication = record.GetStudy().GetPublication()
			study.State = dparetov1.StudyState_STUDY_STATE_ACTIVE
			return policy.Pay(c.Tx, c.Study, c.Compiled, c.Now)
		})
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.ResourceExhausted:
		return s.settle(ctx, id, uid, func(c *Change) error {
			c.Study.Study.State = dparetov1.StudyState_STUDY_STATE_COMPLETED
			c.Study.Study.StateReason = "no trial was handed out: " + status.Convert(err).Message()
			return nil
		})
	default:
		return err
	}
}

// settle ends the preparation of a study with a change of it.
func (s *Studies) settle(ctx context.Context, id, uid string, fn func(*Change) error) error {
	var scopes []store.Scope
	err := s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := FindStudy(tx, id)
		scopes = append(LedgerScopes(record.GetStudy().GetSpec()), store.StudyScope(id))
		return err
	})
	if err != nil {
		return err
	}
	return s.store.Update(ctx, store.In(scopes...), func(tx *store.Tx) error {
		c, err := begin(s, tx, id)
		if err != nil {
			return err
		}
		if study := c.Study.GetStudy(); study.GetUid() != uid || study.GetState() != dparetov1.StudyState_STUDY_STATE_PREPARING {
			return nil
		}
		return c.run(func(c *Change) error {
			c.TouchStudy()
			return fn(c)
		})
	})
}
