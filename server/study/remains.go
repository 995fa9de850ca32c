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

// DropRemains removes the trials of an import that failed, or of a study that was deleted,
// also when the client is gone. What it cannot remove is removed at the next start, or
// before the study is imported or deleted again.
func (s *Studies) DropRemains(ctx context.Context, id string) {
	if err := s.store.DropImport(context.WithoutCancel(ctx), id); err != nil && !errors.Is(err, store.ErrClosed) {
		s.logger.ErrorContext(ctx, "remains of a study", "study", resource.StudyName(id), "error", err)
	}
}

// IDSet is a set of studies that something is done with by one call at a time.
type IDSet struct {
	mu  sync.Mutex
	ids map[string]chan struct{} // closed when the study is taken out
}

// Begin adds a study, and returns false if it was there.
func (s *IDSet) Begin(id string) bool { return s.add(id) == nil }

// await adds a study, after it was taken out if it was there.
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

// add adds a study, or returns what is closed when it is taken out.
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

// End takes a study out.
func (s *IDSet) End(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ids[id])
	delete(s.ids, id)
}
