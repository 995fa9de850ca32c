package study

import (
	"context"
	"errors"

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

// Occupy keeps other calls that import or delete a study from it, those of other servers on the store
// included, until free is called. It waits for one that is under way if wait is set; otherwise ok is
// false then.
func (s *Studies) Occupy(ctx context.Context, id string, wait bool) (free func(), ok bool, err error) {
	name := resource.StudyName(id)
	if wait {
		free, err = s.store.Lock(ctx, name)
		return free, err == nil, err
	}
	return s.store.TryLock(ctx, name)
}
