package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"sync"
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

// takeover is how long a server waits for another to end that was killed a moment ago; shorter in tests.
var takeover = 2 * time.Second

// ownership is the session that makes a server the only one on a store.
type ownership struct {
	conn  *pgx.Conn
	epoch int64
	fence int64 // number of the advisory lock that transactions share
	isNew bool  // it found no records
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// own takes the store for this process, and creates or upgrades its tables.
func own(ctx context.Context, pool *pgxpool.Pool, o Options) (_ *ownership, err error) {
	pooled, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	conn := pooled.Hijack() // it stays open until release
	w := &ownership{conn: conn}
	defer func() {
		if err != nil {
			w.release()
		}
	}()
	if err := checkServer(ctx, conn); err != nil && !o.Unsafe {
		return nil, err
	}
	lock, err := w.lockNumber(ctx, "server")
	if err != nil {
		return nil, err
	}
	if w.fence, err = w.lockNumber(ctx, "transactions"); err != nil {
		return nil, err
	}
	if err := w.take(ctx, lock); err != nil {
		return nil, err
	}
	if err := w.migrate(ctx, o.Create); err != nil {
		return nil, err
	}
	// Transactions of an earlier server that are under way end first.
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", w.fence); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "UPDATE dpareto_store SET epoch = epoch + 1 RETURNING epoch").Scan(&w.epoch)
	})
	return w, err
}

// lockNumber returns the number of an advisory lock of this schema.
func (w *ownership) lockNumber(ctx context.Context, what string) (number int64, err error) {
	err = w.conn.QueryRow(ctx, "SELECT hashtextextended('dpareto ' || $1 || ' ' || current_schema(), 0)", what).Scan(&number)
	return number, err
}

// take takes an advisory lock.
func (w *ownership) take(ctx context.Context, lock int64) error {
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var taken bool
		err := w.conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", lock).Scan(&taken)
		if err != nil || taken {
			return err
		}
		if time.Since(start) > takeover {
			return store.ErrLocked
		}
	}
}

// migrate brings the tables to the latest version.
func (w *ownership) migrate(ctx context.Context, create bool) error {
	version, err := versionOf(ctx, w.conn)
	w.isNew = errors.Is(err, errNoStore)
	switch {
	case err != nil && (!w.isNew || !create):
		return err
	case version > len(migrations):
		return store.FormatError(fmt.Sprintf("tables of version %d", version))
	}
	return pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) error {
		for _, sql := range migrations[version:] {
			if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, "UPDATE dpareto_store SET version = $1", len(migrations))
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

// queueFence adds statements to a transaction, after which no later server can start before its end, and
// that read the epoch of the store. If it is not that of this server, a later one has started.
func (w *ownership) queueFence(b *pgx.Batch, epoch *int64) {
	b.Queue("SELECT pg_advisory_xact_lock_shared($1)", w.fence)
	b.Queue("SELECT epoch FROM dpareto_store").QueryRow(func(row pgx.Row) error { return row.Scan(epoch) })
}

// watch calls lost when the session ends before release.
func (w *ownership) watch(ctx context.Context, lost func(reason string, cause error) error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop = stop
	w.done.Go(func() {
		for { // nothing is listened to: it returns when the connection ends
			if _, err := w.conn.WaitForNotification(ctx); err != nil {
				if ctx.Err() == nil {
					_ = lost("the session that owns the store has ended", err)
				}
				return
			}
		}
	})
}

// release ends the session.
func (w *ownership) release() {
	if w.stop != nil {
		w.stop()
		w.done.Wait()
	}
	_ = w.conn.PgConn().Conn().Close() // the database ends the session, and its locks
}
