package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// lockPatience bounds a statement about a lock.
const lockPatience = 5 * time.Second

// locks are the advisory locks of this process, which one session has.
type locks struct {
	mu   chan struct{} // holds a value while a call uses conn
	conn *pgx.Conn     // nil before the first lock, and after the session was lost with all of them
}

// lockNumber is the number of an advisory lock of a schema, by its name.
const lockNumber = "hashtextextended('dpareto ' || $1::text || ' ' || current_schema(), 0)"

// TryLock implements store.Shared. The lock is free when the session ends, at the latest when the database
// notices that this process's machine is gone.
func (d *DB) TryLock(ctx context.Context, name string) (unlock func(), taken bool, err error) {
	l := &d.locks
	select {
	case l.mu <- struct{}{}:
		defer func() { <-l.mu }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	// A caller who goes away must not end the session.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockPatience)
	defer cancel()
	if f := d.failure.Load(); f != nil {
		return nil, false, f
	}
	if l.conn == nil || l.conn.IsClosed() {
		pooled, err := d.pool.Acquire(ctx)
		if err != nil {
			return nil, false, d.unreachable(ctx, err)
		}
		l.conn = pooled.Hijack()
	}
	conn := l.conn
	if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock("+lockNumber+")", name).Scan(&taken); err != nil {
		l.end()
		return nil, false, d.unreachable(ctx, err)
	}
	return func() { d.unlock(conn, name) }, taken, nil //nolint:contextcheck // the caller may have gone
}

// unlock releases a lock that a session has.
func (d *DB) unlock(conn *pgx.Conn, name string) {
	d.locks.mu <- struct{}{}
	defer func() { <-d.locks.mu }()
	if d.locks.conn != conn {
		return // the lock went with its session
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_unlock("+lockNumber+")", name); err != nil {
		d.locks.end()
	}
}

// end ends the session, and so all locks. The caller holds the lock on l.
func (l *locks) end() {
	if l.conn != nil {
		_ = l.conn.PgConn().Conn().Close() // the database ends the session
		l.conn = nil
	}
}
