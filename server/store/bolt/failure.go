package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

// failure is why a DB cannot be written at present. Reads go on.
//
// A commit of bbolt writes pages that the transaction before does not use, syncs, writes
// the page that makes them count (there are two, used in turn), and syncs again. When it
// fails before that page is written the transaction before counts, on disk and in
// memory. When the second sync fails nobody knows what is on disk: both transactions are
// whole, but the next commit would reuse pages of the one before, and the kernel reports
// an error of writing back only once. Therefore nothing is written after any failure
// until the last page is taken back, durably, and the file opened again: what the
// callers were told is then what is there.
type failure struct {
	err error
	// transaction is the id of the transaction that failed, 0 if it had none.
	transaction int
	full        bool // for want of space
	lasting     bool // there is nothing to try again
	wedged      bool // bbolt holds its own lock for good
}

// Health returns nil if the last Update could be committed, else why it could not.
func (d *DB) Health() error {
	if f := d.failure.Load(); f != nil {
		return f.err
	}
	return nil
}

// Watch has fn called with what Health returns whenever that changes: with nil when the
// store can be written again. fn must not block, nor call the DB.
func (d *DB) Watch(fn func(error)) { d.watcher.Store(&fn) }

// fail sets why the DB cannot be written, nil when it can.
func (d *DB) fail(f *failure) {
	before := d.failure.Swap(f)
	watcher := d.watcher.Load()
	switch {
	case watcher == nil:
	case f == nil:
		(*watcher)(nil)
	case before == nil || before.err.Error() != f.err.Error():
		(*watcher)(f.err)
	}
}

// failed notes that a transaction could not be committed and returns the error of its
// Updates.
func (d *DB) failed(transaction int, cause error) error {
	d.stats.failures.Add(1)
	unwritable := store.Unwritable(fmt.Errorf("%s: %w", d.path, cause))
	f := &failure{
		err:         unwritable,
		transaction: transaction,
		full:        unwritable.Full,
		lasting:     errors.Is(cause, store.ErrCorrupt),
	}
	d.fail(f)
	return f.err
}

// broken notes that bbolt panicked in a transaction: the file is damaged, and no write can
// be trusted any more.
func (d *DB) broken(tx *bbolt.Tx, panicked any) error {
	d.stats.failures.Add(1)
	f := &failure{
		err:     store.Unwritable(fmt.Errorf("%w: %s: %v; dpareto check tells what is damaged; %s", store.ErrCorrupt, d.path, panicked, advice)),
		lasting: true,
	}
	f.wedged = !rolledBack(tx)
	d.fail(f)
	return f.err
}

// rolledBack ends a transaction after a panic in it, and returns whether it could.
func rolledBack(tx *bbolt.Tx) bool {
	var err error
	func() {
		defer catchPanic(&err)
		_ = tx.Rollback() // an error says that it was ended already
	}()
	return err == nil
}

// recover tries to make the DB writable again.
func (d *DB) recover() {
	f := d.failure.Load()
	if f.full && roomBeside(d.path) != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.db != nil {
		if err := d.takeBack(f.transaction); err != nil {
			d.retryLater(f, err)
			return
		}
		if err := d.reopenable(); err != nil {
			d.retryLater(f, err)
			return
		}
		err := d.db.Close()
		d.db = nil
		if err != nil {
			d.retryLater(f, err)
			return
		}
	}
	db, file, err := openFile(d.path, false)
	if err != nil {
		d.retryLater(f, err)
		return
	}
	d.db, d.file = db, file
	d.publishing.Store(nil)
	if err := d.load(); err != nil {
		d.db = nil // what readers would find is not known
		d.retryLater(f, errors.Join(openError(d.path, err), db.Close()))
		return
	}
	// Readers may find the proof, also if it fails; it changes nothing that they see.
	loaded := *d.overlaid.Load()
	loaded.proof = loaded.transaction + 1
	d.overlaid.Store(&loaded)
	id, err := prove(db)
	if err == nil {
		err = d.strike(afterCommit)
	}
	if err != nil {
		_ = d.failed(id, err) // the next attempt takes it back, unless the file is damaged
		if f := d.failure.Load(); f.lasting {
			f.wedged = true // bbolt may have panicked under its lock
		}
		return
	}
	d.fail(nil)
}

// prove shows that a file can be written, by a commit of a page as it is. It returns the id
// of the transaction.
func prove(db *bbolt.DB) (id int, err error) {
	defer catchPanic(&err)
	err = db.Update(func(tx *bbolt.Tx) error {
		id = tx.ID()
		r, err := newReader(tx, nil)
		if err == nil {
			err = r.bucket.SetSequence(r.bucket.Sequence())
		}
		return err
	})
	return id, err
}

// retryLater keeps a failure for the reason that an attempt to overcome it failed for.
func (d *DB) retryLater(f *failure, cause error) {
	unwritable := store.Unwritable(cause)
	d.fail(&failure{err: unwritable, transaction: f.transaction, full: f.full || unwritable.Full})
}

// withdraw notes that a transaction could not be committed, hides it from readers, and
// returns the error of its Updates.
func (d *DB) withdraw(transaction int, cause error) error {
	err := d.failed(transaction, cause)
	d.beginning.Lock()
	defer d.beginning.Unlock()
	// Where it cannot be hidden nothing is read any more (see begin).
	_ = d.hide(transaction)
	return err
}

// takeBack makes the transaction before the one that failed count again, on disk. The
// pages of the one that failed are then free.
func (d *DB) takeBack(transaction int) error {
	if transaction == 0 {
		return nil
	}
	// Once more, even if readers do not see it: the page may have been written and not
	// synced, and the kernel forgets what it could not sync.
	if err := d.hide(transaction); err != nil {
		return err
	}
	if err := d.strike(whileTakingBack); err != nil {
		return err
	}
	return d.file.Sync()
}

// hide makes the transaction before the one that failed count for readers: its page takes
// the place of the other. No reader may begin meanwhile, who could find half of it.
func (d *DB) hide(transaction int) error {
	pageSize := d.db.Info().PageSize
	mine, before := transaction%2, 1-transaction%2
	page := make([]byte, pageSize)
	if _, err := d.file.ReadAt(page, int64(before*pageSize)); err != nil {
		return err
	}
	// bbolt makes copies whose other page has the same content and the number of the
	// transaction before. Readers, who find that number from now on, must know their tables.
	o := *d.overlaid.Load()
	switch counts := int(binary.NativeEndian.Uint64(page[pageHeader+metaTransaction:])); {
	case o.liesOver(counts):
	case counts == o.transaction-1:
		o.proof = counts
		d.overlaid.Store(&o)
	default:
		return fmt.Errorf("%w: transaction %d comes before %d", store.ErrCorrupt, counts, transaction)
	}
	binary.NativeEndian.PutUint64(page, uint64(mine)) // a page begins with its number
	_, err := d.file.WriteAt(page, int64(mine*pageSize))
	return err
}

// reopenable refuses to close a file that is no longer the one at the path: whoever
// replaced it expects the server to be restarted.
func (d *DB) reopenable() error {
	mine, err := d.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(d.path)
	if err != nil {
		return err
	}
	if !os.SameFile(mine, there) {
		return fmt.Errorf("%s was replaced by another file; restart the server", d.path)
	}
	return nil
}

// room is the space that must be free before writing is tried again.
const room = 1 << 20

// roomBeside finds out by trying whether there is space for files beside path.
func roomBeside(path string) (err error) {
	file, err := scratch(filepath.Dir(path), filepath.Base(path), "room")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(make([]byte, room)); err != nil {
		return err
	}
	return file.Sync()
}

// scratch creates a file in a folder for the store of a name that nobody else sees and that
// is gone when it is closed, or the process ends.
func scratch(folder, name, what string) (*os.File, error) {
	file, err := os.CreateTemp(folder, "."+name+"."+what+"-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// moment is where the operating system can fail.
type moment int

const (
	beforeCommit    moment = iota // the pages cannot be written
	afterCommit                   // the second sync fails
	whileTakingBack               // the sync of taking back fails
)

// strike returns the fault that a test wants at a moment.
func (d *DB) strike(m moment) error {
	if fault := d.fault.Load(); fault != nil {
		return (*fault)(m)
	}
	return nil
}
