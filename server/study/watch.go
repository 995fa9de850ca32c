package study

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/failure"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/store"
)

const (
	// maxWatched bounds the changes that a stream reads at a time.
	maxWatched = 100
	// maxWatchedBytes bounds their size, not counting the last.
	maxWatchedBytes = 1 << 20
	// lookEvery is how long a stream waits at most before it looks for changes by other servers on the
	// store, whose announcements can be lost.
	lookEvery = 5 * time.Second
)

// watchers wakes streams after a change. Streams read the change from the store, so a slow one skips
// intermediate states.
type watchers struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]bool // by the id of the study
}

// subscribe returns a channel that receives after every change of a study, and a function that ends
// the subscription.
func (w *watchers) subscribe(id string) (wake <-chan struct{}, unsubscribe func()) {
	c := make(chan struct{}, 1) // one signal stands for any number of changes
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = make(map[string]map[chan struct{}]bool)
	}
	if w.waiting[id] == nil {
		w.waiting[id] = make(map[chan struct{}]bool)
	}
	w.waiting[id][c] = true
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.waiting[id], c); len(w.waiting[id]) == 0 {
			delete(w.waiting, id)
		}
	}
}

// notify wakes the streams of a study. Call it once a change is durable.
func (w *watchers) notify(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.waiting[id] {
		select {
		case c <- struct{}{}:
		default: // a signal is pending
		}
	}
}

// notifyAll wakes all streams.
func (w *watchers) notifyAll() {
	w.mu.Lock()
	ids := slices.Collect(maps.Keys(w.waiting))
	w.mu.Unlock()
	for _, id := range ids {
		w.notify(id)
	}
}

// WatchStudy implements StudyService.
func (s *Studies) WatchStudy(req *dparetov1.WatchStudyRequest, stream grpc.ServerStreamingServer[dparetov1.WatchStudyResponse]) error {
	return failure.Status(watch(stream.Context(), s, req, stream.Send))
}

// watch sends the changes of a study until it is deleted, ctx is done (also when the server drains),
// or the server closes.
func watch(ctx context.Context, s *Studies, req *dparetov1.WatchStudyRequest, send func(*dparetov1.WatchStudyResponse) error) error {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return err
	}
	if req.GetAfterRevision() < 0 {
		return invalid.Field("after_revision", "must not be negative, is %d", req.GetAfterRevision())
	}
	wake, unsubscribe := s.watchers.subscribe(id)
	defer unsubscribe()
	reader := &changeReader{id: id, uid: req.GetStudyUid(), after: req.GetAfterRevision()}
	var look <-chan time.Time
	if s.store.IsShared() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		changes, err := reader.next(ctx, s)
		if err != nil {
			return err
		}
		for _, change := range changes {
			if s.background.IsClosed() {
				return store.ErrClosed
			}
			if err := send(change); err != nil {
				return err
			}
		}
		if len(changes) > 0 {
			continue
		}
		select {
		case <-wake:
		case <-look:
		case <-s.background.Context().Done():
			return store.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// changeReader reads the changes of a study in order.
type changeReader struct {
	id, uid string
	after   int64 // revision of the last change
	begun   bool
	ignored int64 // skip deletions up to here: a reader that starts from 0 never saw the trials
}

// next returns the next changes, none if there are none yet.
func (r *changeReader) next(ctx context.Context, s *Studies) (changes []*dparetov1.WatchStudyResponse, err error) {
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := FindStudy(tx, r.id)
		if err != nil {
			return err
		}
		study := record.GetStudy()
		if r.uid == "" {
			r.uid = study.GetUid()
		}
		if study.GetUid() != r.uid {
			return resource.StudyNotFound(r.id)
		}
		if s.Policy(study.GetSpec()).Traits().Hidden { // created after the interceptor's check
			return ErrHidden(study.GetName())
		}
		if err := CheckRevision("after_revision", r.after, study); err != nil {
			return err // also later: a database can lose commits, and an import can bring back an earlier state
		}
		if !r.begun {
			r.begun = true
			if err := tx.CheckChanges(r.id); err != nil {
				return err
			}
			if r.after == 0 {
				r.ignored = study.GetRevision()
			}
		}
		visited, size := 0, 0
		return tx.Changes(r.id, r.after, func(revision int64, entry *storev1.RevisionRecord) (bool, error) {
			if visited++; len(changes) > 0 && (visited > maxWatched || size > maxWatchedBytes) {
				return false, nil
			}
			r.after = revision
			if entry.GetDeletedTrial() > 0 && revision <= r.ignored {
				return true, ctx.Err()
			}
			change, err := r.change(tx, s, record, entry)
			if err != nil {
				return false, err
			}
			change.Revision = revision
			changes = append(changes, change)
			size += proto.Size(change)
			return true, nil
		})
	})
	return changes, err
}

// change returns the message for an entry of the revision index.
func (r *changeReader) change(tx *store.ReadTx, s *Studies, study *storev1.StudyRecord, entry *storev1.RevisionRecord) (*dparetov1.WatchStudyResponse, error) {
	switch change := entry.GetChange().(type) {
	case *storev1.RevisionRecord_Trial:
		record, err := tx.Trial(r.id, change.Trial)
		return &dparetov1.WatchStudyResponse{
			Time: changeTime(record), Change: &dparetov1.WatchStudyResponse_Trial{Trial: record.GetTrial()},
		}, err
	case *storev1.RevisionRecord_DeletedTrial:
		record, err := tx.DeletedTrial(r.id, change.DeletedTrial)
		return &dparetov1.WatchStudyResponse{
			Time: changeTime(record), Change: &dparetov1.WatchStudyResponse_DeletedTrial{DeletedTrial: resource.TrialName(r.id, change.DeletedTrial)},
		}, err
	case *storev1.RevisionRecord_Study:
		return &dparetov1.WatchStudyResponse{
			Time: study.GetStudy().GetUpdateTime(), Change: &dparetov1.WatchStudyResponse_Study{Study: s.Present(study)},
		}, nil
	default:
		return nil, errors.New("the revision index has an empty entry")
	}
}

// changeTime returns when a trial last changed. Records of store format 1 lack the time; the trial's
// latest event stands in.
func changeTime(record *storev1.TrialRecord) *timestamppb.Timestamp {
	trial := record.GetTrial()
	for _, at := range []*timestamppb.Timestamp{record.GetChangeTime(), trial.GetEndTime(), trial.GetStartTime()} {
		if at != nil {
			return at
		}
	}
	return trial.GetCreateTime()
}

// CheckRevision refuses a revision that a study has not reached yet.
func CheckRevision(field string, revision int64, study *dparetov1.Study) error {
	if revision > study.GetRevision() {
		return status.Errorf(codes.OutOfRange, "%s is %d, %s has only reached %d: the study was replaced, or restored from a backup; start again from 0",
			field, revision, study.GetName(), study.GetRevision())
	}
	return nil
}
