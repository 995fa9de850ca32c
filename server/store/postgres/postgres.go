package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dpareto/dpareto/server/store"
)

const (
	// patience bounds a transaction that writes.
	patience = time.Minute
	// answerTime is how long a call waits for a connection, for its turn to write, or for the answer to a
	// statement that reads. A database that is paused takes connections and answers nothing.
	answerTime = 10 * time.Second
)

// DB is a store.KV in a PostgreSQL database.
type DB struct {
	name  string // of the database, for errors and logs
	pool  *pgxpool.Pool
	owner *ownership // nil if it was opened for reading

	mu     sync.Mutex
	closed bool
	queues map[string][]*update // waiting Updates by scopes; an entry has a goroutine (drain)
	work   sync.WaitGroup       // Views, and drains

	clock     dbClock
	locks     locks
	announcer announcer
	stop      context.CancelFunc // ends attend and announce
	attending sync.WaitGroup

	failure atomic.Pointer[store.UnwritableError]
	failed  chan struct{} // closed when failure is set
	close   sync.Once
	stats   struct{ updates, commits, failures, conflicts, retries atomic.Int64 }

	commitSQL string        // "commit", except in tests
	answer    time.Duration // answerTime, except in tests
}

var (
	_ store.Shared = (*DB)(nil)
	_ store.Files  = (*DB)(nil)
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

// Open opens the store in the database with a URL, for a server beside others or, with o.Alone, for a
// process that has it alone. It returns store.ErrLocked if others are in the way,
// store.ErrNotFound if it holds no records and o.Create is not set, and store.ErrFormat if a later
// version made its tables.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	d, err := connect(ctx, url, o, true)
	if err != nil {
		return nil, err
	}
	d.owner, err = own(ctx, d.pool, o)
	if err != nil {
		d.pool.Close()
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	d.attending.Go(func() { d.attend(ctx) })
	d.attending.Go(func() { d.announce(ctx) })
	return d, nil
}

// OpenReadOnly opens an existing store for reading, whether or not a server has it open. Its Updates
// fail.
func OpenReadOnly(ctx context.Context, url string, o Options) (*DB, error) {
	d, err := connect(ctx, url, o, false)
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

// connect connects to a database, among several servers to one that can be written if writes is set.
func connect(ctx context.Context, url string, o Options, writes bool) (*DB, error) {
	config, err := parse(url, o)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	c := config.ConnConfig
	d := &DB{
		name:   fmt.Sprintf("database %s on %s", c.Database, c.Host),
		queues: make(map[string][]*update), failed: make(chan struct{}), commitSQL: "commit", answer: answerTime,
		clock: dbClock{began: time.Now()}, announcer: newAnnouncer(), locks: locks{mu: make(chan struct{}, 1)},
	}
	if writes && c.ValidateConnect == nil {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	s := new(schema)
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := s.prepare(ctx, conn); err != nil {
			return err
		}
		return d.meet(ctx, conn)
	}
	config.PingTimeout = sessionPatience
	if d.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	if err := d.pool.Ping(ctx); err != nil {
		d.pool.Close()
		if strings.Contains(err.Error(), "server refused TLS connection") { // pgconn has no error of its own for it
			err = fmt.Errorf("%w; the server must offer TLS, unless the URL says sslmode=disable: then the password and all data go in plain text", err)
		}
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	return d, nil
}

// startedKey is where a connection keeps when its server started.
const startedKey = "dpareto started"

// meet asks a connection which server it leads to, and what its clock says. Another server than before may
// lack what the last one had.
func (d *DB) meet(ctx context.Context, conn *pgx.Conn) error {
	var started, now time.Time
	from := d.clock.elapsed()
	if err := conn.QueryRow(ctx, "SELECT pg_postmaster_start_time(), clock_timestamp()").Scan(&started, &now); err != nil {
		return err
	}
	conn.PgConn().CustomData()[startedKey] = started
	if _, isOther := d.clock.observe(started, now, from, d.clock.elapsed()); isOther {
		_, renewed := d.announcer.listeners()
		renewed()
	}
	return nil
}

// Name describes the database for logs, without secrets.
func (d *DB) Name() string { return d.name }

// IsNew reports whether Open found no records.
func (d *DB) IsNew() bool { return d.owner.isNew }

// Failed returns a channel that is closed when another process has had the store alone since Open or, with
// Alone, when the session that owns it has ended. From then on the DB refuses all Updates, and Close
// returns the cause.
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
		if d.owner != nil {
			d.stop()
			d.attending.Wait()
			d.locks.mu <- struct{}{}
			d.locks.end()
			<-d.locks.mu
			d.owner.release()
		}
		d.pool.Close()
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
	acquiring, cancel := context.WithTimeout(ctx, d.answer)
	defer cancel()
	conn, err := d.pool.Acquire(acquiring)
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
