package study

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/store"
)

// checkNotImporting refuses the id of a study that is being imported.
func checkNotImporting(tx *store.ReadTx, id string) error {
	importing, err := tx.Importing(id)
	if err != nil || !importing {
		return err
	}
	return status.Errorf(codes.Aborted, "study %s is being imported or deleted; try again", resource.StudyName(id))
}

// DropRemains removes the trials of a failed import or a deleted study, even if the client is gone.
// What it cannot remove goes at the next start, or before the study is imported or deleted again.
func (s *Studies) DropRemains(ctx context.Context, id string) {
	if err := s.store.DropImport(context.WithoutCancel(ctx), id); err != nil && !errors.Is(err, store.ErrClosed) {
		s.logger.ErrorContext(ctx, "cannot remove the remains of a study", "study", resource.StudyName(id), "error", err)
	}
}

// IDSet is a set of studies that only one call at a time may work on.
type IDSet struct {
	mu  sync.Mutex
	ids map[string]chan struct{} // closed when the study is removed
}

// Begin adds a study. It returns false if the study is already there.
func (s *IDSet) Begin(id string) bool { return s.add(id) == nil }

// await adds a study, once it has been removed if it was there.
func (s *IDSet) await(ctx context.Context, id string) error {
	for {
		ended := s.add(id)
		if ended == nil {
			return nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// add adds a study and returns nil. If the study is already there, it returns a channel that is
// closed on removal.
func (s *IDSet) add(id string) (ended <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ended, ok := s.ids[id]; ok {
		return ended
	}
	if s.ids == nil {
		s.ids = make(map[string]chan struct{})
	}
	s.ids[id] = make(chan struct{})
	return nil
}

// End removes a study.
func (s *IDSet) End(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ids[id])
	delete(s.ids, id)
}
