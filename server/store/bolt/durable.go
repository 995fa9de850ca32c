package bolt

import (
	"context"
	"errors"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/dpareto/dpareto/server/store"
)

// publication is a commit under way. bbolt shows it to readers as soon as the page is
// written that makes it count, before that is synced. What was read must not vanish again:
// readers who see it wait until it is durable.
type publication struct {
	transaction int
	done        chan struct{} // closed at the end of the commit
	durable     bool          // set before that
}

// begin begins to read what is durable, and returns what hides some of it.
func (d *DB) begin(ctx context.Context) (*bbolt.Tx, *overlaid, error) {
	for failed := false; ; {
		tx, err := d.beginLatest()
		if err != nil {
			return nil, nil, err
		}
		if p := d.publishing.Load(); p != nil && tx.ID() == p.transaction {
			select {
			case <-p.done:
			case <-ctx.Done():
				return nil, nil, errors.Join(ctx.Err(), tx.Rollback())
			}
			if !p.durable {
				if err := tx.Rollback(); err != nil {
					return nil, nil, err
				}
				if failed { // what was not committed could not be hidden
					return nil, nil, d.unavailable()
				}
				failed = true
				continue
			}
		}
		if overlaid := d.overlaid.Load(); overlaid.liesOver(tx.ID()) {
			return tx, overlaid, nil
		}
		// A commit came to its end in between.
		if err := errors.Join(ctx.Err(), tx.Rollback()); err != nil {
			return nil, nil, err
		}
	}
}

// beginLatest begins to read the latest transaction that counts in memory.
func (d *DB) beginLatest() (*bbolt.Tx, error) {
	d.beginning.RLock()
	defer d.beginning.RUnlock()
	tx, err := d.db.Begin(false)
	if errors.Is(err, bbolterrors.ErrDatabaseNotOpen) {
		return nil, store.ErrClosed
	}
	return tx, err
}
