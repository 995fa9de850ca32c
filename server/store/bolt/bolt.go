package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/dpareto/dpareto/server/store"
)

const (
	// maxBatch bounds the Updates in one commit, and so the time that the first of them waits.
	maxBatch = 1024
	// fillPercent is how full bbolt leaves the pages it splits. Most keys are written in ascending
	// order, so a split page needs little room. With bbolt's default of one half, the file is twice
	// as large.
	fillPercent = 0.9
	// syncsPerCommit is the number of syncs in a bbolt commit: data pages, then the meta page.
	syncsPerCommit = 2
)

// DB is a store.KV in one file.
type DB struct {
	path    string
	db      *bbolt.DB
	updates chan *update
	closing chan struct{}
	close   sync.Once
	writer  sync.WaitGroup
	err     error // result of Close
	notice  string

	last       atomic.Int64                  // number of the last durable transaction
	committing atomic.Pointer[pendingCommit] // the latest commit
	failure    atomic.Pointer[store.UnwritableError]
	failed     chan struct{}         // closed when failure is set
	wedged     atomic.Bool           // bbolt panicked and still holds its locks: its Close would block
	commitTx   func(*bbolt.Tx) error // (*bbolt.Tx).Commit, except in tests
	stats      struct{ updates, commits, failures atomic.Int64 }
}

var _ store.KV = (*DB)(nil)

// update is a waiting Update. Exactly one value is sent to done.
type update struct {
	ctx  context.Context //nolint:containedctx // the waiting call's
	fn   func(store.ReadWriter) error
	err  error // of fn
	done chan error
}

// pendingCommit is a commit in progress. bbolt shows it to readers once the meta page is written,
// but before it is synced. Readers that see it wait until it is durable, since read data must not
// vanish.
type pendingCommit struct {
	transaction int
	done        chan struct{} // closed at the end of the commit
	durable     bool          // set before done is closed
}

// Stats counts what a DB has done since it was opened.
type Stats struct {
	// Updates is the number of acknowledged Updates that wrote something.
	Updates int64 `json:"updates"`
	// Commits is the number of transactions they shared.
	Commits int64 `json:"commits"`
	// Syncs is the number of syncs for these commits, not counting syncs that grow the file.
	Syncs int64 `json:"syncs"`
	// Disk is the time spent writing and syncing.
	Disk time.Duration `json:"disk"`
	// Failures is the number of failed commits.
	Failures int64 `json:"failures"`
	// Size is the size of the file in bytes, 0 if unknown.
	Size int64 `json:"size"`
	// FreePages is the number of unused pages in the file.
	FreePages int64 `json:"free_pages"`
}

// Stats returns the counts so far.
func (d *DB) Stats() Stats {
	stats := d.db.Stats()
	s := Stats{
		Updates: d.stats.updates.Load(), Commits: d.stats.commits.Load(), Failures: d.stats.failures.Load(),
		Disk: stats.TxStats.GetWriteTime(), FreePages: int64(stats.FreePageN + stats.PendingPageN),
	}
	s.Syncs = syncsPerCommit * s.Commits
	if info, err := os.Stat(d.path); err == nil {
		s.Size = info.Size()
	}
	return s
}

// Open opens the file at path, or creates it with mode 0600. It returns store.ErrLocked if another
// process has the file open, store.ErrFormat if another version wrote it, and store.ErrCorrupt if
// its meta pages, free list or buckets are damaged. Verify checks the rest.
func Open(path string) (*DB, error) {
	d, err := newDB(path, toWrite)
	if err != nil {
		return nil, err
	}
	d.writer.Go(d.write)
	return d, nil
}

// OpenReadOnly opens an existing file for reading. Its Updates fail. It returns
// store.ErrLocked while a process has the file open for writing.
func OpenReadOnly(path string) (*DB, error) {
	d, err := newDB(path, toRead)
	if err != nil {
		return nil, err
	}
	d.failure.Store(&store.UnwritableError{Reason: "it was opened for reading", Err: bbolterrors.ErrDatabaseReadOnly})
	return d, nil
}

func newDB(path string, how bbolt.Options) (*DB, error) {
	db, err := openFile(path, how)
	if err != nil {
		return nil, err
	}
	d := &DB{
		path: path, db: db, updates: make(chan *update), closing: make(chan struct{}),
		failed: make(chan struct{}), commitTx: (*bbolt.Tx).Commit,
	}
	last, notice, err := inspect(db)
	if err != nil {
		return nil, errors.Join(openError(path, err), db.Close())
	}
	d.notice = notice
	d.last.Store(int64(last))
	return d, nil
}

// Notice describes harmless damage found by Open, or is empty.
func (d *DB) Notice() string { return d.notice }

// Failed returns a channel that is closed when a commit fails for any reason but a full disk. From
// then on the DB refuses everything, and Close returns the cause.
func (d *DB) Failed() <-chan struct{} { return d.failed }

// View implements store.KV.
func (d *DB) View(ctx context.Context, fn func(store.Reader) error) error {
	return d.view(ctx, func(tx *bbolt.Tx) error {
		t, _, err := committed(tx)
		if err != nil {
			return err
		}
		return fn(t)
	})
}

// view calls fn with a transaction that reads durable data only.
func (d *DB) view(ctx context.Context, fn func(*bbolt.Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer catchFault(d.path, &err)()
	last := int(d.last.Load())
	tx, err := d.begin(false)
	if err != nil {
		return err
	}
	defer func() {
		if failed := tx.Rollback(); err == nil {
			err = failed
		}
	}()
	if tx.ID() < last {
		return fmt.Errorf("%s: %w: transaction %d is lost, the file ends with transaction %d", d.path, store.ErrCorrupt, last, tx.ID())
	}
	if c := d.committing.Load(); c != nil && tx.ID() == c.transaction {
		select {
		case <-c.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !c.durable {
			return d.failure.Load()
		}
	}
	return fn(tx)
}

// begin begins a transaction. A panic in it leaves bbolt's locks held.
func (d *DB) begin(writes bool) (tx *bbolt.Tx, err error) {
	if d.wedged.Load() {
		return nil, d.failure.Load()
	}
	err = d.guard(func() error {
		tx, err = d.db.Begin(writes)
		return err
	})
	switch {
	case errors.Is(err, bbolterrors.ErrDatabaseNotOpen):
		return nil, store.ErrClosed
	case err != nil:
		return nil, d.fail(err)
	default:
		return tx, nil
	}
}

// Update implements store.KV. A single writer applies all Updates in turn, whatever their scopes.
func (d *DB) Update(ctx context.Context, _ store.Scopes, fn func(store.ReadWriter) error) error {
	if f := d.failure.Load(); f != nil {
		return f
	}
	u := &update{ctx: ctx, fn: fn, done: make(chan error, 1)}
	select {
	case d.updates <- u:
	case <-d.closing:
		return store.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-u.done
}

// Close implements store.KV. It waits for Updates that the writer has taken. It returns the cause if
// the DB has failed.
func (d *DB) Close() error {
	d.close.Do(func() {
		close(d.closing)
		d.writer.Wait()
		select {
		case <-d.failed:
			d.err = d.failure.Load()
		default:
			if !d.db.IsReadOnly() {
				d.err = commitTwice(d.db)
			}
		}
		if !d.wedged.Load() {
			d.err = errors.Join(d.err, d.db.Close())
		}
	})
	return d.err
}

// write is the writer's loop.
func (d *DB) write() {
	debug.SetPanicOnFault(true)
	batch := make([]*update, 0, maxBatch)
	for {
		select {
		case u := <-d.updates:
			batch = append(batch[:0], u)
		case <-d.closing:
			return
		}
		// Everything waiting now shares the commit.
		for waiting := true; waiting && len(batch) < maxBatch; {
			select {
			case u := <-d.updates:
				batch = append(batch, u)
			default:
				waiting = false
			}
		}
		for rest := batch; len(rest) > 0; {
			rest = d.commit(rest)
		}
	}
}

// commit runs the functions of a batch in one transaction and answers the Updates. If the writes of
// one Update meet a damaged page, it refuses that Update and returns the others for another
// transaction.
func (d *DB) commit(batch []*update) (rest []*update) {
	written, refused, err := d.transact(batch)
	if refused != nil {
		refused.done <- refused.err
		for _, u := range batch {
			if u != refused {
				rest = append(rest, u)
			}
		}
		return rest
	}
	if err == nil && written > 0 {
		d.stats.commits.Add(1)
		d.stats.updates.Add(written)
	}
	for _, u := range batch {
		if err != nil { // also replaces errors of fn: fn may have read uncommitted data
			u.err = err
		}
		u.done <- u.err
	}
	return nil
}

// transact runs the functions of a batch in one transaction, sets the error of each, and returns how
// many wrote something. If it fails, or refuses an Update because of a damaged page, nothing is
// written.
func (d *DB) transact(batch []*update) (written int64, refused *update, err error) {
	if f := d.failure.Load(); f != nil {
		return 0, nil, f
	}
	tx, err := d.begin(true)
	if err != nil {
		return 0, nil, err
	}
	if last := int(d.last.Load()); tx.ID() != last+1 {
		return 0, nil, errors.Join(d.fail(fmt.Errorf("%w: transaction %d is lost", store.ErrCorrupt, last)), d.rollback(tx))
	}
	t, err := treeOf(tx)
	if err != nil {
		return 0, nil, errors.Join(err, tx.Rollback())
	}
	for _, u := range batch {
		overlay := store.NewOverlay(t)
		if u.err = call(u, overlay); u.err != nil || overlay.Empty() {
			continue
		}
		if u.err = t.apply(overlay); u.err != nil {
			return 0, u, d.rollback(tx)
		}
		written++
	}
	if written == 0 {
		return 0, nil, tx.Rollback() // saves a sync
	}
	if err := t.stamp(); err != nil {
		return 0, nil, errors.Join(err, d.rollback(tx))
	}
	return written, nil, d.commitDurably(tx)
}

// commitDurably commits a transaction. If that fails, no reader sees any of it.
func (d *DB) commitDurably(tx *bbolt.Tx) error {
	id := tx.ID()
	c := &pendingCommit{transaction: id, done: make(chan struct{})}
	defer close(c.done)
	d.committing.Store(c)
	err := d.guard(func() error { return d.commitTx(tx) })
	if err == nil {
		d.last.Store(int64(id))
		c.durable = true
		return nil
	}
	d.stats.failures.Add(1)
	// bbolt has rolled back. If the meta page was not written, the file is unchanged, and the only
	// problem is space.
	if full := store.Unwritable(fmt.Errorf("%s: %w", d.path, err)); full.Full && !d.wedged.Load() && d.visible() == id-1 {
		return full
	}
	return d.fail(err)
}

// visible returns the number of the transaction that readers see.
func (d *DB) visible() int {
	tx, err := d.begin(false)
	if err != nil {
		return -1
	}
	defer func() { _ = tx.Rollback() }()
	return tx.ID()
}

// fail marks the DB as failed for good, and returns the error for its Updates.
func (d *DB) fail(cause error) error {
	f := store.Unwritable(fmt.Errorf("%s: %w", d.path, cause))
	if d.failure.CompareAndSwap(nil, f) {
		close(d.failed)
	}
	return f
}

// rollback ends a transaction that met a damaged page.
func (d *DB) rollback(tx *bbolt.Tx) error {
	if err := d.guard(tx.Rollback); err != nil {
		return d.fail(err)
	}
	return nil
}

// guard calls fn, which begins or ends a transaction. After a panic bbolt keeps its locks.
func (d *DB) guard(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = d.fail(panicked(r)) // before wedged: others then read failure
			d.wedged.Store(true)
		}
	}()
	return fn()
}

// call runs one function. A panic in it becomes the error of that Update only.
func call(u *update, tx store.ReadWriter) (err error) {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			if cause := faultOf(r); cause != nil {
				err = cause
				return
			}
			err = fmt.Errorf("panic in a store transaction: %v\n%s", r, debug.Stack())
		}
	}()
	return u.fn(tx)
}
