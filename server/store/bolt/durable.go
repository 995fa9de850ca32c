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

// begin begins to read what is durable.
func (d *DB) begin(ctx context.Context) (*bbolt.Tx, error) {
	for failed := false; ; failed = true {
		tx, err := d.beginLatest()
		if err != nil {
			return nil, err
		}
		p := d.publishing.Load()
		if p == nil || tx.ID() != p.transaction {
			return tx, nil
		}
		select {
		case <-p.done:
			if p.durable {
				return tx, nil
			}
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), tx.Rollback())
		}
		if err := tx.Rollback(); err != nil {
			return nil, err
		}
		if failed { // what was not committed could not be hidden
			return nil, d.unavailable()
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
