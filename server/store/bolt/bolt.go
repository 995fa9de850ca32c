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
	// maxBatch bounds the number of Updates in one commit, and so the time that the
	// first of them waits for the others.
	maxBatch = 1024
	// fillPercent is how full bbolt leaves the pages that it splits. Keys are mostly written in
	// ascending order, so that a split page needs no room. With the default, a half, the file
	// is twice as large.
	fillPercent = 0.9
	// syncsPerCommit is what bbolt does: it syncs the data pages, then the meta page.
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
	err     error // of closing the file, set by close
	notice  string

	last       atomic.Int64                  // number of the last transaction that is durable
	committing atomic.Pointer[pendingCommit] // the last commit that was begun
	failure    atomic.Pointer[store.UnwritableError]
	failed     chan struct{}         // closed when failure is set
	wedged     atomic.Bool           // bbolt panicked and still holds its locks: its Close would block
	commitTx   func(*bbolt.Tx) error // (*bbolt.Tx).Commit; tests make it fail
	stats      struct{ updates, commits, failures atomic.Int64 }
}

var _ store.KV = (*DB)(nil)

// update is a waiting Update. Exactly one value is sent to done.
type update struct {
	ctx  context.Context //nolint:containedctx // of the waiting call
	fn   func(store.ReadWriter) error
	err  error // of fn
	done chan error
}

// pendingCommit is a commit under way. bbolt shows it to readers once its meta page is written,
// before that is synced. What was read must not vanish again: readers that see it wait until it is
// durable.
type pendingCommit struct {
	transaction int
	done        chan struct{} // closed at the end of the commit
	durable     bool          // set before that
}

// Stats counts what a DB has done since it was opened.
type Stats struct {
	// Updates is the number of Updates that wrote something and were acknowledged.
	Updates int64 `json:"updates"`
	// Commits is the number of transactions that they shared.
	Commits int64 `json:"commits"`
	// Syncs is the number of times that the file was synced for them, without those that
	// let it grow.
	Syncs int64 `json:"syncs"`
	// Disk is the time spent with writing and syncing.
	Disk time.Duration `json:"disk"`
	// Failures is the number of transactions that could not be committed.
	Failures int64 `json:"failures"`
	// Size is the size of the file, in bytes, 0 where it cannot be told.
	Size int64 `json:"size"`
	// FreePages is the number of pages within the file that hold nothing.
	FreePages int64 `json:"free_pages"`
}

// Stats returns what was counted so far.
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

// Open opens the file at path, or creates it with mode 0600. It returns
// store.ErrLocked when another process has the file open, store.ErrFormat when another
// version wrote it, and store.ErrCorrupt when its meta pages, free list or buckets are damaged;
// Verify checks the rest.
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

// Notice describes harmless damage that Open found, or is empty.
func (d *DB) Notice() string { return d.notice }

// Failed returns a channel that is closed when the DB has failed for good: a commit failed for
// another reason than a full disk. Everything is refused from then on, and Close says why.
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

// view calls fn with a transaction that reads what is durable.
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
		return fmt.Errorf("%s: %w: transaction %d is lost, %d is what is left", d.path, store.ErrCorrupt, last, tx.ID())
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

// begin begins a transaction. A panic in it leaves bbolt's locks locked.
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

// Update implements store.KV. One writer applies all Updates in turn, whatever their scopes.
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

// Close implements store.KV. Updates that the writer has taken are finished. It returns why
// the DB has failed, if it has.
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
		// Everything that is waiting now shares the commit.
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

// commit runs the functions of a batch in one transaction and answers all of them. An Update
// whose writes meet a damaged page is refused alone: the others are returned, for another
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
		if err != nil { // even for those that failed: what they read was not committed
			u.err = err
		}
		u.done <- u.err
	}
	return nil
}

// transact runs the functions of a batch in one transaction, sets the error of each, and
// returns how many wrote something. If it fails, or an Update is refused for a damaged page,
// nothing was written.
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

// commitDurably commits a transaction. If that fails nothing of it is seen.
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
	// bbolt has rolled back. Unless the meta page was written, the file is as it was before, and
	// only space is missing.
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

// fail notes that the DB has failed for good, and returns the error of its Updates.
func (d *DB) fail(cause error) error {
	f := store.Unwritable(fmt.Errorf("%s: %w", d.path, cause))
	if d.failure.CompareAndSwap(nil, f) {
		close(d.failed)
	}
	return f
}

// rollback ends a transaction that has met a damaged page.
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
			err = d.fail(panicked(r)) // before others find it wedged, and ask why
			d.wedged.Store(true)
		}
	}()
	return fn()
}

// call runs one function; a panic in it becomes an error of its own Update.
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
