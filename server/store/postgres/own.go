package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dpareto/dpareto/server/store"
)

// migrations are the statements that lead from each version of the tables to the next.
var migrations = readMigrations()

//go:embed migrations/*.sql
var files embed.FS

func readMigrations() (all []string) {
	entries, err := files.ReadDir("migrations")
	for _, entry := range entries { // sorted by name
		content, failed := files.ReadFile("migrations/" + entry.Name())
		err = errors.Join(err, failed)
		all = append(all, string(content))
	}
	if err != nil {
		panic(err) // they are in the program
	}
	return all
}

// errNoStore says that a database has no tables of ours.
var errNoStore = fmt.Errorf("%w: the database holds no store: start a new one with --create, or name another database or search_path", store.ErrNotFound)

// takeover is how long a process waits for another to end that is in the way; shorter in tests.
var takeover = 2 * time.Second

const (
	// sessionCheck is the time between two looks at whether the session still works.
	sessionCheck = 10 * time.Second
	// sessionPatience bounds such a look, and an attempt at a new session.
	sessionPatience = 5 * time.Second
	// reconnectEvery is the time between two attempts.
	reconnectEvery = 100 * time.Millisecond
)

// ownership is the session by which a process has the store: as a server among others, or alone.
type ownership struct {
	conn  *pgx.Conn
	alone bool
	epoch int64
	lock  int64 // number of the advisory lock that servers share
	fence int64 // number of the advisory lock that transactions share
	isNew bool  // it found no records
}

// own takes the store for this process, and creates or upgrades its tables.
func own(ctx context.Context, pool *pgxpool.Pool, o Options) (_ *ownership, err error) {
	w := &ownership{alone: o.Alone}
	if w.conn, err = session(ctx, pool); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.release()
		}
	}()
	if err := checkServer(ctx, w.conn); err != nil && !o.Unsafe {
		return nil, err
	}
	for name, number := range map[string]*int64{"server": &w.lock, "transactions": &w.fence} {
		if err := w.conn.QueryRow(ctx, "SELECT "+lockNumber, name).Scan(number); err != nil {
			return nil, err
		}
	}
	if err := w.take(ctx); err != nil {
		return nil, err
	}
	if err := w.migrate(ctx, o.Create); err != nil {
		return nil, err
	}
	if !w.alone {
		if err = w.conn.QueryRow(ctx, "SELECT epoch FROM dpareto_store").Scan(&w.epoch); err == nil {
			err = w.listen(ctx)
		}
		return w, err
	}
	// Transactions of servers that have lost their sessions end first.
	err = pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", w.fence); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "UPDATE dpareto_store SET epoch = epoch + 1 RETURNING epoch").Scan(&w.epoch)
	})
	return w, err
}

// session returns a connection that the pool does not count.
func session(ctx context.Context, pool *pgxpool.Pool) (*pgx.Conn, error) {
	pooled, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return pooled.Hijack(), nil
}

// channel is the name of the channel of announcements.
func (w *ownership) channel() string { return fmt.Sprintf("dpareto_%x", uint64(w.lock)) }

// listen begins to listen to announcements.
func (w *ownership) listen(ctx context.Context) error {
	_, err := w.conn.Exec(ctx, "LISTEN "+w.channel())
	return err
}

// take takes the lock of servers: for this one among others, or alone.
func (w *ownership) take(ctx context.Context) error {
	sql := "SELECT pg_try_advisory_lock_shared($1)"
	if w.alone {
		sql = "SELECT pg_try_advisory_lock($1)"
	}
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var taken bool
		err := w.conn.QueryRow(ctx, sql, w.lock).Scan(&taken)
		if err != nil || taken {
			return err
		}
		if time.Since(start) > takeover {
			return store.ErrLocked
		}
	}
}

// migrationLock is the name of the advisory lock that one process has while it changes the tables.
const migrationLock = "migration"

// migrate brings the tables to the latest version.
func (w *ownership) migrate(ctx context.Context, create bool) error {
	return pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock("+lockNumber+")", migrationLock); err != nil {
			return err
		}
		version, err := versionOf(ctx, tx)
		w.isNew = errors.Is(err, errNoStore)
		switch {
		case err != nil && (!w.isNew || !create):
			return err
		case version > len(migrations):
			return store.FormatError(fmt.Sprintf("tables of version %d", version))
		case version == len(migrations):
			return nil
		}
		for _, sql := range migrations[version:] {
			if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, "UPDATE dpareto_store SET version = $1", len(migrations))
		return err
	})
}

// versionOf returns the version of the tables, 0 if there are none, and errNoStore if they hold no
// records.
func versionOf(ctx context.Context, conn interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) (version int, err error) {
	var exists bool
	err = conn.QueryRow(ctx, "SELECT to_regclass('dpareto_store') IS NOT NULL").Scan(&exists)
	if err == nil && !exists {
		err = errNoStore
	}
	if err != nil {
		return 0, err
	}
	err = conn.QueryRow(ctx, "SELECT version, EXISTS (SELECT FROM dpareto_records) FROM dpareto_store").Scan(&version, &exists)
	if err == nil && !exists {
		err = errNoStore
	}
	return version, err
}

// queueFence adds a statement to a transaction, after which no process can take the store alone before its
// end.
func (w *ownership) queueFence(b *pgx.Batch) {
	b.Queue("SELECT pg_advisory_xact_lock_shared($1)", w.fence)
}

// queueEpoch adds a statement that reads the epoch of the store, behind queueFence, and the time. Another
// epoch than this process's means that one has had the store alone since.
func (*ownership) queueEpoch(b *pgx.Batch, epoch *int64, now *time.Time) {
	b.Queue("SELECT epoch, clock_timestamp() FROM dpareto_store").QueryRow(func(row pgx.Row) error { return row.Scan(epoch, now) })
}

// attend passes on announcements until ctx ends, and keeps the session. A server whose session ends takes a
// new one; it has failed if another process had the store alone meanwhile. A process that has it alone has
// failed at once.
func (d *DB) attend(ctx context.Context) {
	w := d.owner
	for ctx.Err() == nil {
		waiting, cancel := context.WithTimeout(ctx, sessionCheck)
		heard, err := w.conn.WaitForNotification(waiting)
		quiet := waiting.Err() != nil
		cancel()
		if err == nil {
			d.heard(heard.Payload)
			continue
		}
		if quiet && ctx.Err() == nil {
			err = d.look(ctx)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		if w.alone {
			_ = d.fail("the session that owns the store has ended", err)
			return
		}
		if !d.rejoin(ctx) {
			return
		}
	}
}

// look asks the session for the time, and so whether it works.
func (d *DB) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sessionPatience)
	defer cancel()
	return d.meet(ctx, d.owner.conn)
}

// rejoin takes a new session in place of one that has ended, as soon as it can. Announcements were missed
// meanwhile. It returns false if ctx ends, or the store has failed.
func (d *DB) rejoin(ctx context.Context) bool {
	w := d.owner
	w.release()
	d.pool.Reset() // connections to a server that is gone
	for ; ; time.Sleep(reconnectEvery) {
		err := d.rejoinNow(ctx)
		if err == nil {
			_, renewed := d.announcer.listeners()
			renewed()
			return true
		}
		if errors.Is(err, errFenced) {
			_ = d.fail(fencedReason, err)
			return false
		}
		if ctx.Err() != nil {
			return false
		}
	}
}

// rejoinNow is an attempt of rejoin.
func (d *DB) rejoinNow(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, sessionPatience)
	defer cancel()
	next := *d.owner
	if next.conn, err = session(ctx, d.pool); err != nil {
		return err
	}
	taken := next.take(ctx)
	var epoch int64
	err = next.conn.QueryRow(ctx, "SELECT epoch FROM dpareto_store").Scan(&epoch)
	switch {
	case err != nil:
	case epoch != next.epoch:
		err = errFenced
	case taken != nil: // another process has the store alone, and is about to count up the epoch
		err = taken
	default:
		err = next.listen(ctx)
	}
	if err != nil {
		next.release()
		return err
	}
	d.owner.conn = next.conn
	return nil
}

// release ends the session.
func (w *ownership) release() {
	_ = w.conn.PgConn().Conn().Close() // the database ends the session, and its locks
}
