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
	// lockTimeout is how long Open waits for another process to let go of the file.
	lockTimeout = time.Second
	// mapSize is the address space that is mapped at first. bbolt waits for all readers,
	// also for a backup, before it maps a file that has outgrown its mapping. A large
	// mapping costs nothing where addresses have 64 bits: 64 GB there, else 1 GB.
	mapSize = 1 << (30 + 6*(^uint(0)>>63))
	// fillPercent is how full pages are left that are split. Keys of a study are mostly
	// written in ascending order: nothing comes between them later. With bbolt's default
	// of a half the file is twice as large.
	fillPercent = 0.9
	// retryEvery is the time between two attempts to write again after a failure.
	retryEvery = time.Second
	// dropEvery is the time between two calls of dropPages.
	dropEvery = time.Second
	// syncsPerCommit is what bbolt does: one for the pages, one for the page that makes
	// them count.
	syncsPerCommit = 2
)

// root is the bucket of all keys in their places: prefixes take the place of nested buckets.
var root = []byte("dpareto")

// DB is a store.KV in one file.
type DB struct {
	path    string
	updates chan *update
	closing chan struct{}
	close   sync.Once
	writer  sync.WaitGroup
	err     error // of closing the file, set by close

	// Views hold mu for reading, so that the writer can open the file again (see
	// recover). The writer alone changes db and file; db is nil after a failed attempt.
	mu   sync.RWMutex
	db   *bbolt.DB
	file *os.File // that of db

	// overlaid hides what is in its place and was written since. The writer alone changes it.
	overlaid atomic.Pointer[overlaid]

	// Views hold beginning for reading while they choose the transaction to read.
	beginning  sync.RWMutex
	publishing atomic.Pointer[publication] // the last that was begun in db

	failure    atomic.Pointer[failure]
	watcher    atomic.Pointer[func(error)]
	dropped    time.Time // when dropPages was called last
	retryEvery time.Duration
	generation int                                // see the constant
	fault      atomic.Pointer[func(moment) error] // set by tests only
	stats      counters
}

var _ store.KV = (*DB)(nil)

// update is a waiting Update. Exactly one value is sent to done.
type update struct {
	ctx  context.Context //nolint:containedctx // that of the waiting call
	fn   func(store.ReadWriter) error
	done chan error
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

type counters struct{ updates, commits, failures atomic.Int64 }

// Stats returns what was counted so far.
func (d *DB) Stats() Stats {
	s := Stats{Updates: d.stats.updates.Load(), Commits: d.stats.commits.Load(), Failures: d.stats.failures.Load()}
	s.Syncs = syncsPerCommit * s.Commits
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.db == nil {
		return s
	}
	stats := d.db.Stats()
	s.Disk = stats.TxStats.GetWriteTime()
	s.FreePages = int64(stats.FreePageN + stats.PendingPageN)
	if info, err := d.file.Stat(); err == nil {
		s.Size = info.Size()
	}
	return s
}

// Open opens the file at path, or creates it with mode 0600. It returns
// store.ErrLocked when another process has the file open, and store.ErrCorrupt when the
// file is damaged where every use of it begins; see Check for the rest.
func Open(path string) (*DB, error) {
	d, err := newDB(path, false)
	if err != nil {
		return nil, err
	}
	d.writer.Go(d.write)
	return d, nil
}

// OpenReadOnly opens an existing file for reading. Its Updates fail. It returns
// store.ErrLocked while a process has the file open for writing.
func OpenReadOnly(path string) (*DB, error) {
	d, err := newDB(path, true)
	if err != nil {
		return nil, err
	}
	d.fail(&failure{err: &store.UnwritableError{Reason: "it was opened for reading", Err: bbolterrors.ErrDatabaseReadOnly}, lasting: true})
	d.writer.Go(d.write)
	return d, nil
}

func newDB(path string, readOnly bool) (*DB, error) {
	d := &DB{path: path, updates: make(chan *update), closing: make(chan struct{}), retryEvery: retryEvery, generation: generation}
	db, file, err := openFile(path, readOnly)
	if err != nil {
		return nil, err
	}
	d.db, d.file = db, file
	if err := d.load(); err != nil {
		return nil, errors.Join(openError(path, err), db.Close())
	}
	return d, nil
}

// load reads the journal of the file that was opened.
func (d *DB) load() (err error) {
	defer catchFault(d.path, &err)()
	return d.db.View(func(tx *bbolt.Tx) error {
		o, err := readJournal(tx, d.file)
		if err == nil {
			d.overlaid.Store(o)
		}
		return err
	})
}

// View implements store.KV. fn must not start another View.
func (d *DB) View(ctx context.Context, fn func(store.Reader) error) error {
	return d.view(ctx, func(tx *bbolt.Tx, layers []*table) error {
		r, err := newReader(tx, layers)
		if err != nil {
			return err
		}
		return fn(r)
	})
}

// view calls fn with a consistent snapshot: a transaction and what hides some of it.
func (d *DB) view(ctx context.Context, fn func(*bbolt.Tx, []*table) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.db == nil {
		return d.unavailable()
	}
	defer catchFault(d.path, &err)()
	tx, overlaid, err := d.begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if failed := tx.Rollback(); err == nil {
			err = failed
		}
	}()
	return fn(tx, overlaid.layers())
}

// unavailable is the error of a read while there is no file to read.
func (d *DB) unavailable() error {
	if f := d.failure.Load(); f != nil {
		return f.err
	}
	return store.ErrClosed
}

// Update implements store.KV.
func (d *DB) Update(ctx context.Context, fn func(store.ReadWriter) error) error {
	u := &update{ctx: ctx, fn: fn, done: make(chan error, 1)}
	select {
	case <-d.closing:
		return store.ErrClosed
	default:
	}
	select {
	case d.updates <- u:
	case <-d.closing:
		return store.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-u.done
}

// Close implements store.KV. Updates that the writer has taken are finished.
func (d *DB) Close() error {
	d.close.Do(func() {
		close(d.closing)
		d.writer.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.db == nil {
			return
		}
		if f := d.failure.Load(); f != nil && f.wedged {
			d.err = release(d.file) // bbolt would wait for its own lock
		} else {
			d.err = d.db.Close()
		}
		d.db = nil
	})
	return d.err
}

// write is the writer's loop.
func (d *DB) write() {
	batch := make([]*update, 0, maxBatch)
	var retry <-chan time.Time
	for {
		// Updates that come meanwhile, and fail, do not put the next attempt off.
		switch f := d.failure.Load(); {
		case f == nil || f.lasting:
			retry = nil
		case retry == nil:
			retry = time.After(d.retryEvery)
		}
		select {
		case u := <-d.updates:
			batch = append(batch[:0], u)
		case <-retry:
			retry = nil
			d.recover()
			continue
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
		d.commit(batch)
	}
}

// commit runs the functions of a batch in one transaction and answers all of them.
func (d *DB) commit(batch []*update) {
	results := make([]error, len(batch))
	written, err := d.transact(batch, results)
	if err == nil && written > 0 {
		d.stats.commits.Add(1)
		d.stats.updates.Add(written)
	}
	for i, u := range batch {
		if err != nil && results[i] == nil {
			results[i] = err
		}
		u.done <- results[i]
	}
}

// transact runs the functions of a batch in one transaction, sets the error of each, and
// returns how many wrote something. If it fails nothing was written.
func (d *DB) transact(batch []*update, results []error) (written int64, err error) {
	if f := d.failure.Load(); f != nil {
		return 0, f.err
	}
	tx, err := d.db.Begin(true)
	if err != nil {
		return 0, d.failed(0, err)
	}
	id := tx.ID()
	p := &publication{transaction: id, done: make(chan struct{})}
	defer close(p.done)
	tainted := len(batch) // the first whose function saw what others have written
	defer func() {
		if err != nil { // they get it, too: what they saw is gone
			clear(results[tainted:])
		}
	}()
	defer func() {
		if r := recover(); r != nil { // of bbolt: those of functions are caught in call
			err = d.broken(tx, r)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	overlaid := d.overlaid.Load().next(id)
	r, err := newReader(tx, overlaid.layers())
	if err != nil {
		return 0, errors.Join(d.failed(0, err), tx.Rollback())
	}
	r.bucket.FillPercent = fillPercent
	writes := &batchWriter{generation: d.generation, main: r.bucket, overlaid: overlaid, writes: make(map[string][]byte)}
	for i, u := range batch {
		overlay := store.NewOverlay(r)
		if results[i] = call(u, overlay); results[i] != nil {
			continue
		}
		overlay.Apply(writes.set)
		if !overlay.Empty() {
			written++
			tainted = min(tainted, i+1)
		}
	}
	if written == 0 {
		return 0, tx.Rollback() // saves a sync
	}
	if err := writes.commit(tx.Bucket(journalBucket)); err != nil {
		return 0, errors.Join(fmt.Errorf("commit: %w", err), tx.Rollback())
	}
	if err := d.strike(beforeCommit); err != nil {
		return 0, errors.Join(d.failed(id, err), tx.Rollback())
	}
	d.publishing.Store(p)
	size := tx.Size()
	if err := tx.Commit(); err != nil {
		return 0, d.withdraw(id, err)
	}
	if err := d.strike(afterCommit); err != nil {
		return 0, d.withdraw(id, err)
	}
	d.overlaid.Store(overlaid)
	p.durable = true
	if now := time.Now(); now.Sub(d.dropped) > dropEvery {
		dropPages(d.db, size)
		d.dropped = now
	}
	return written, nil
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
