package study

import (
	"context"
	"errors"
	"log/slog"

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
func DropRemains(ctx context.Context, db *store.Store, logger *slog.Logger, id string) {
	if err := db.DropImport(context.WithoutCancel(ctx), id); err != nil && !errors.Is(err, store.ErrClosed) {
		logger.ErrorContext(ctx, "cannot remove the remains of a study", "study", resource.StudyName(id), "error", err)
	}
}
