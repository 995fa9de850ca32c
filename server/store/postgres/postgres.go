package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dpareto/dpareto/server/store"
)

// patience bounds a transaction that writes, and a statement of one that reads.
const patience = time.Minute

// DB is a store.KV in a PostgreSQL database.
type DB struct {
	name  string // of the database, for errors and logs
	pool  *pgxpool.Pool
	owner *ownership // nil if it was opened for reading

	mu     sync.Mutex
	closed bool
	queues map[string][]*update // waiting Updates by scopes; an entry has a goroutine (drain)
	work   sync.WaitGroup       // Views, and drains

	failure atomic.Pointer[store.UnwritableError]
	failed  chan struct{} // closed when failure is set
	close   sync.Once
	stats   struct{ updates, commits, failures, conflicts, retries atomic.Int64 }

	commitSQL string // "commit", except in tests
}

var (
	_ store.KV    = (*DB)(nil)
	_ store.Files = (*DB)(nil)
)

// Stats counts what a DB has done since it was opened.
type Stats struct {
	// Updates is the number of acknowledged Updates that wrote something.
	Updates int64
	// Commits is the number of transactions they shared.
	Commits int64
	// Failures is the number of transactions that failed for good.
	Failures int64
	// Conflicts is the number of transactions that ended in a deadlock or a serialization failure.
	Conflicts int64
	// Retries is the number of transactions that were run again, after a conflict or a lost connection.
	Retries int64
	// Waits is the number of times that all connections were in use, WaitTime the time spent waiting.
	Waits    int64
	WaitTime time.Duration
	// Connections is the number of open connections.
	Connections int64
	// Size is the size of the tables with their indexes in bytes, 0 if unknown.
	Size int64
}

// Stats returns the counts so far.
func (d *DB) Stats(ctx context.Context) Stats {
	pool := d.pool.Stat()
	s := Stats{
		Updates: d.stats.updates.Load(), Commits: d.stats.commits.Load(), Failures: d.stats.failures.Load(),
		Conflicts: d.stats.conflicts.Load(), Retries: d.stats.retries.Load(),
		Waits: pool.EmptyAcquireCount(), WaitTime: pool.EmptyAcquireWaitTime(), Connections: int64(pool.TotalConns()),
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := d.pool.QueryRow(ctx, sizeSQL).Scan(&s.Size); err != nil {
		s.Size = 0
	}
	return s
}

const sizeSQL = `SELECT sum(pg_total_relation_size(name::regclass))::bigint FROM unnest(ARRAY['dpareto_records', 'dpareto_totals', 'dpareto_scopes']) AS name`

// Open opens the store in the database with a URL. It returns store.ErrLocked if a server has it open,
// store.ErrNotFound if it holds no records and o.Create is not set, and store.ErrFormat if a later
// version made its tables.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	d, err := connect(ctx, url, o)
	if err != nil {
		return nil, err
	}
	d.owner, err = own(ctx, d.pool, o)
	if err != nil {
		d.pool.Close()
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	d.owner.watch(ctx, d.fail)
	return d, nil
}

// OpenReadOnly opens an existing store for reading, whether or not a server has it open. Its Updates
// fail.
func OpenReadOnly(ctx context.Context, url string, o Options) (*DB, error) {
	d, err := connect(ctx, url, o)
	if err != nil {
		return nil, err
	}
	version, err := versionOf(ctx, d.pool)
	if err == nil && version != len(migrations) {
		err = store.FormatError(fmt.Sprintf("tables of version %d", version))
	}
	if err != nil {
		d.pool.Close()
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	d.failure.Store(&store.UnwritableError{Reason: "it was opened for reading", Err: errors.ErrUnsupported})
	return d, nil
}

// connect connects to a database.
func connect(ctx context.Context, url string, o Options) (*DB, error) {
	config, err := parse(url, o)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	c := config.ConnConfig
	d := &DB{
		name:   fmt.Sprintf("database %s on %s", c.Database, c.Host),
		queues: make(map[string][]*update), failed: make(chan struct{}), commitSQL: "commit",
	}
	if d.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	if err := d.pool.Ping(ctx); err != nil {
		d.pool.Close()
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	return d, nil
}

// Name describes the database for logs, without secrets.
func (d *DB) Name() string { return d.name }

// IsNew reports whether Open found no records.
func (d *DB) IsNew() bool { return d.owner.isNew }

// Failed returns a channel that is closed when the outcome of a commit is unknown, or when the session
// that owns the store has ended. From then on the DB refuses all Updates, and Close returns the
// cause.
func (d *DB) Failed() <-chan struct{} { return d.failed }

// fail marks the DB as failed for good, and returns the error for its Updates.
func (d *DB) fail(reason string, cause error) error {
	f := &store.UnwritableError{Reason: reason, Err: fmt.Errorf("%s: %w", d.name, cause)}
	if d.failure.CompareAndSwap(nil, f) {
		close(d.failed)
	}
	return f
}

// Close implements store.KV.
func (d *DB) Close() (err error) {
	d.close.Do(func() {
		d.mu.Lock()
		d.closed = true
		d.mu.Unlock()
		d.work.Wait()
		d.pool.Close()
		if d.owner != nil {
			d.owner.release()
		}
	})
	select {
	case <-d.failed:
		return d.failure.Load()
	default:
		return nil
	}
}

// View implements store.KV.
func (d *DB) View(ctx context.Context, fn func(store.Reader) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return store.ErrClosed
	}
	d.work.Add(1)
	d.mu.Unlock()
	defer d.work.Done()
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return d.unreachable(ctx, err)
	}
	defer conn.Release() // closes a connection in a transaction
	r := &reader{conn: conn.Conn(), caller: ctx, db: d}
	return r.run(fn) //nolint:contextcheck // it is the reader's
}

// unreachable returns the error of a View that the database did not answer.
func (d *DB) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %s: %w", store.ErrUnavailable, d.name, err)
}
