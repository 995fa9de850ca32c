package study

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
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

// Some studies must be prepared before they hand out trials (see Traits). The preparation
// runs in the background, in STUDY_STATE_PREPARING. It ends with one transaction, which pays and
// activates the study, or completes it with the reason why it cannot be paid for. Nothing is stored before: after a
// restart it begins anew.

// patience is how long CreateStudy waits for a preparation. Most are short.
const patience = time.Second

// Preparations are the studies that are being prepared in the background.
type Preparations struct {
	studies *Studies
	mu      sync.Mutex
	running map[string]*preparation // by uid
}

// preparation is the progress of one study.
type preparation struct {
	done, total atomic.Int64
	ended       chan struct{} // closed at the end
}

// progress returns the progress of a study.
func (p *Preparations) progress(uid string) *dparetov1.Preparation {
	p.mu.Lock()
	defer p.mu.Unlock()
	running := p.running[uid]
	if running == nil {
		return new(dparetov1.Preparation)
	}
	return &dparetov1.Preparation{Done: running.done.Load(), Total: running.total.Load()}
}

// begin returns the preparation of a study, and whether it is a new one.
func (p *Preparations) begin(uid string) (running *preparation, isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if running := p.running[uid]; running != nil {
		return running, false
	}
	p.running[uid] = &preparation{ended: make(chan struct{})}
	return p.running[uid], true
}

// end ends the preparation of a study.
func (p *Preparations) end(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.running[uid].ended)
	delete(p.running, uid)
}

// start prepares the study with an id and uid in the background, unless it is prepared or that is under way. The
// channel that it returns is closed at the end.
func (p *Preparations) start(id, uid string) <-chan struct{} {
	running, isNew := p.begin(uid)
	if isNew && !p.studies.background.Go(func() { p.run(id, uid, running) }) {
		p.end(uid)
	}
	return running.ended
}

// run prepares a study. A call may set PREPARING between the last transaction and the end of the preparation, and
// join it, or may change what was priced. So run looks at the study after the end, and begins again if that is so.
func (p *Preparations) run(id, uid string, running *preparation) {
	ctx := p.studies.background.Context()
	err := p.prepare(ctx, id, uid, running)
	if err == nil {
		var left *storev1.StudyRecord
		if left, err = p.findPreparing(ctx, id, uid); left != nil {
			p.start(id, uid)
		}
	}
	if err != nil && ctx.Err() == nil {
		p.studies.logger.ErrorContext(ctx, "cannot prepare a study", "study", resource.StudyName(id), "error", err)
	}
}

// Resume prepares the studies whose preparation a stop of the server interrupted. Call it once, when
// the server begins.
func (p *Preparations) Resume() {
	ctx := p.studies.background.Context()
	err := p.studies.store.View(ctx, func(tx *store.ReadTx) error {
		return tx.Studies("", func(record *storev1.StudyRecord) (bool, error) {
			if study := record.GetStudy(); study.GetState() == dparetov1.StudyState_STUDY_STATE_PREPARING {
				id, err := resource.ParseStudyName("name", study.GetName())
				if err != nil {
					return false, err
				}
				p.start(id, study.GetUid()) //nolint:contextcheck // it outlives the call
			}
			return true, ctx.Err()
		})
	})
	if err != nil && ctx.Err() == nil {
		p.studies.logger.ErrorContext(ctx, "cannot resume the preparation of studies", "error", err)
	}
}

// TakeOver prepares a study that a call has found in STUDY_STATE_PREPARING on a store with other servers: the
// one that prepared it may be gone. If it is not, the preparation here waits for it.
func (p *Preparations) TakeOver(id, uid string) {
	if p.studies.store.IsShared() {
		p.start(id, uid)
	}
}

// await starts the preparation of a study that a call has created, if it needs one, and waits a
// little. It returns the study then.
func (p *Preparations) await(ctx context.Context, id string, created *dparetov1.Study) (*dparetov1.Study, error) {
	if created.GetState() != dparetov1.StudyState_STUDY_STATE_PREPARING {
		return created, nil
	}
	select {
	case <-p.start(id, created.GetUid()): //nolint:contextcheck // it outlives the call
	case <-time.After(patience):
	case <-ctx.Done():
		return created, nil // it is durable
	}
	err := p.studies.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := tx.Study(id)
		if err == nil && record.GetStudy().GetUid() == created.GetUid() {
			created = p.studies.Present(record)
		}
		return nil // it may have been deleted
	})
	return created, err
}

// findPublication sets the publication of an unprepared study in a record, which is not in the store yet or
// a copy. It may take minutes for a long list, in the pool.
func (p *Preparations) findPublication(ctx context.Context, record *storev1.StudyRecord, compiled *spec.Study, progress func(done, total int)) error {
	return p.studies.pool.Run(ctx, pool.Analysis, func(ctx context.Context) error {
		return p.studies.Policy(compiled.Spec).Prepare(ctx, record, compiled, progress)
	})
}

// tryPublication is findPublication for a call that waits a little only: the record may get no publication.
func (p *Preparations) tryPublication(ctx context.Context, record *storev1.StudyRecord, compiled *spec.Study) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := p.findPublication(ctx, record, compiled, func(int, int) {})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// findPreparing returns a copy of the record of a study in STUDY_STATE_PREPARING, or nil if there is no such study.
func (p *Preparations) findPreparing(ctx context.Context, id, uid string) (found *storev1.StudyRecord, err error) {
	err = p.studies.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := tx.Study(id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err == nil && isPreparing(record, uid) {
			found = proto.CloneOf(record)
		}
		return err
	})
	return found, err
}

// isPreparing reports whether a record is in STUDY_STATE_PREPARING and has a uid.
func isPreparing(record *storev1.StudyRecord, uid string) bool {
	study := record.GetStudy()
	return study.GetUid() == uid && study.GetState() == dparetov1.StudyState_STUDY_STATE_PREPARING
}

// prepare prepares a study, and forgets the preparation at the end.
func (p *Preparations) prepare(ctx context.Context, id, uid string, running *preparation) error {
	defer p.end(uid)
	unlock, err := p.studies.store.Lock(ctx, "prepare "+uid) // another server may prepare it
	if err != nil {
		return err
	}
	defer unlock()
	record, err := p.findPreparing(ctx, id, uid)
	if record == nil {
		return err
	}
	// The cache may still hold the spec of a deleted study with this uid.
	compiled, err := p.studies.recompile(record)
	if err != nil {
		return err
	}
	err = p.findPublication(ctx, record, compiled, func(done, total int) {
		running.total.Store(int64(total))
		running.done.Store(int64(done))
	})
	if err == nil {
		err = p.settle(ctx, id, record, func(c *Change) error {
			study := c.Study.GetStudy()
			study.Publication = record.GetStudy().GetPublication()
			study.State = dparetov1.StudyState_STUDY_STATE_ACTIVE
			return c.Policy.Pay(c.Tx, c.Study, c.Compiled, c.Now)
		})
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.ResourceExhausted:
		return p.settle(ctx, id, record, func(c *Change) error {
			c.Study.Study.State = dparetov1.StudyState_STUDY_STATE_COMPLETED
			c.Study.Study.StateReason = "no trial was handed out: " + refusal(err)
			return nil
		})
	default:
		return err
	}
}

// refusal returns why a study cannot be paid for. Everyone who may read the study sees it, so it leaves out what is
// left of a ledger.
func refusal(err error) string {
	refused := status.Convert(err)
	if refused.Code() != codes.ResourceExhausted {
		return refused.Message()
	}
	ledger := "a ledger"
	for _, detail := range refused.Details() {
		if info, ok := detail.(*errdetails.ResourceInfo); ok {
			ledger = info.GetResourceName()
		}
	}
	return fmt.Sprintf("the budget of %s does not pay for the study", ledger)
}

// settle ends the preparation of a study with a change of it. It does nothing if the study is gone, or has another
// spec than the priced one.
func (p *Preparations) settle(ctx context.Context, id string, priced *storev1.StudyRecord, fn func(*Change) error) error {
	scopes := append(LedgerScopes(priced.GetStudy().GetSpec()), store.StudyScope(id))
	return p.studies.store.Update(ctx, store.In(scopes...), func(tx *store.Tx) error {
		c, err := begin(p.studies, tx, id)
		if status.Code(err) == codes.NotFound {
			return nil
		}
		if err != nil {
			return err
		}
		if !isPreparing(c.Study, priced.GetStudy().GetUid()) || !proto.Equal(c.Study.GetStudy().GetSpec(), priced.GetStudy().GetSpec()) {
			return nil
		}
		return c.run(func(c *Change) error {
			c.TouchStudy()
			return fn(c)
		})
	})
}
