package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpareto/dpareto/server/store"
)

const (
	// maxBatch bounds the Updates in one transaction. PostgreSQL keeps the numbers of at most 64
	// savepoints in memory.
	maxBatch = 60
	// maxAttempts bounds how often a transaction is run.
	maxAttempts = 10
)

// Codes of errors.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	diskFull             = "53100"
)

// update is a waiting Update. Exactly one value is sent to done, unless it is cancelled.
type update struct {
	fn    func(store.ReadWriter) error
	state atomic.Int32
	err   error
	done  chan error
}

// States of an update.
const (
	waiting = iota
	begun   // fn was called, or is about to be
	cancelled
)

// begin reports whether fn may be called.
func (u *update) begin() bool {
	return u.state.CompareAndSwap(waiting, begun) || u.state.Load() == begun
}

// Update implements store.KV.
func (d *DB) Update(ctx context.Context, scopes store.Scopes, fn func(store.ReadWriter) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	u := &update{fn: fn, done: make(chan error, 1)}
	if err := d.enqueue(scopes, u); err != nil { //nolint:contextcheck // a transaction serves many calls
		return err
	}
	late := time.NewTimer(d.answer)
	defer late.Stop()
	var err error
	select {
	case err := <-u.done:
		return err
	case <-late.C:
		err = fmt.Errorf("%w: %s: it has not answered for %v", store.ErrUnavailable, d.name, d.answer)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if u.state.CompareAndSwap(waiting, cancelled) {
		return err // fn is never called
	}
	return <-u.done
}

// enqueue adds an update to those that wait for the same scopes.
func (d *DB) enqueue(scopes store.Scopes, u *update) error {
	var names strings.Builder
	for _, scope := range scopes {
		names.WriteString(string(scope) + "\x00")
	}
	key := names.String()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return store.ErrClosed
	}
	queue, running := d.queues[key]
	d.queues[key] = append(queue, u)
	if !running {
		d.work.Go(func() { d.drain(key, scopes) })
	}
	return nil
}

// drain commits the updates that wait for some scopes until there are none.
func (d *DB) drain(key string, scopes store.Scopes) {
	for {
		d.mu.Lock()
		queue := d.queues[key]
		if len(queue) == 0 {
			delete(d.queues, key)
			d.mu.Unlock()
			return
		}
		n := min(len(queue), maxBatch)
		batch := queue[:n]
		d.queues[key] = queue[n:]
		d.mu.Unlock()
		err := d.commit(scopes, batch)
		for _, u := range batch {
			if err != nil { // also replaces errors of fn: fn may have read uncommitted data
				u.err = err
			}
			u.done <- u.err
		}
	}
}

// commit runs a batch in a transaction, again if that fails without having written.
func (d *DB) commit(scopes store.Scopes, batch []*update) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for attempt := 1; ; attempt++ {
		if f := d.failure.Load(); f != nil {
			return f
		}
		written, err := d.transact(ctx, scopes, batch)
		if err == nil {
			if written > 0 {
				d.stats.commits.Add(1)
				d.stats.updates.Add(written)
			}
			return nil
		}
		if unwritable, ok := errors.AsType[*store.UnwritableError](err); ok { // permanent, or of unknown outcome
			d.stats.failures.Add(1)
			return unwritable
		}
		conflict := isConflict(err)
		if conflict {
			d.stats.conflicts.Add(1)
		}
		if attempt == maxAttempts || ctx.Err() != nil || isRefusal(err) && !conflict {
			d.stats.failures.Add(1)
			return d.unwritable(err)
		}
		d.stats.retries.Add(1)
		time.Sleep(time.Duration(rand.Int64N(int64(time.Millisecond) << attempt)))
	}
}

// transact runs a batch in a transaction, sets the error of each update, and returns how many wrote
// something. If it fails with another error than a store.UnwritableError, nothing is written.
func (d *DB) transact(ctx context.Context, scopes store.Scopes, batch []*update) (written int64, err error) {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer func() {
		if conn != nil {
			conn.Release() // closes a connection in a transaction
		}
	}()
	t := &transaction{reader: reader{db: d, conn: conn.Conn(), known: make(map[string][]byte)}, ctx: ctx}
	if err := t.begin(scopes); err != nil {
		if errors.Is(err, errFenced) {
			return 0, d.fail(fencedReason, err)
		}
		return 0, err
	}
	for _, u := range batch {
		if !u.begin() {
			continue
		}
		overlay := store.NewOverlay(t)
		u.err = call(u.fn, overlay)
		if t.err != nil {
			return 0, t.err
		}
		if u.err != nil || overlay.Empty() {
			continue
		}
		refused, err := t.apply(overlay, len(batch) > 1)
		if err != nil {
			return 0, err
		}
		if refused != nil {
			u.err = d.unwritable(refused)
			continue
		}
		written++
	}
	if written == 0 {
		_, err := t.conn.Exec(ctx, "rollback")
		return 0, err
	}
	ended, err := d.end(t) //nolint:contextcheck // a commit outlives its context
	if !ended {
		conn.Hijack() // the commit goes on
		conn = nil
	}
	return written, err
}

// errFenced says that the store has a later epoch.
var errFenced = errors.New("another process has had it alone")

// fencedReason is the reason of a DB that has failed with errFenced.
const fencedReason = "the store was replaced"

// end commits a transaction. ended is false if the database has not answered when the context ends. The commit
// then goes on, and closes the connection: if it waits for a standby and were cancelled, others would see what
// no standby has.
func (d *DB) end(t *transaction) (ended bool, err error) {
	type result struct {
		answer pgconn.CommandTag
		err    error
	}
	results := make(chan result)
	go func() {
		answer, err := t.conn.Exec(context.WithoutCancel(t.ctx), d.commitSQL)
		select {
		case results <- result{answer, err}:
		case <-t.ctx.Done():
			_ = t.conn.PgConn().Conn().Close() // no caller waits any more
		}
	}()
	var answer pgconn.CommandTag
	select {
	case r := <-results:
		answer, err, ended = r.answer, r.err, true
	case <-t.ctx.Done():
		err = t.ctx.Err()
	}
	if err == nil && answer.String() != "COMMIT" {
		err = fmt.Errorf("the answer to a commit was %q", answer)
	}
	if err != nil && !isRefusal(err) {
		return ended, &store.UnwritableError{
			Reason: "the database has not answered a commit", Unknown: true,
			Err: fmt.Errorf("%s: %w", d.name, err),
		}
	}
	return ended, err // of which nothing is written
}

// transaction is a store.Reader of an Update, whose scopes are locked.
type transaction struct {
	reader

	ctx        context.Context //nolint:containedctx // of the transaction
	now, since time.Time       // see store.Timed
}

// names returns scopes for a statement.
func names(scopes store.Scopes) []string {
	all := make([]string, len(scopes))
	for i, scope := range scopes {
		all[i] = string(scope)
	}
	return all
}

// begin begins the transaction, locks its scopes, and reads the time then.
func (t *transaction) begin(scopes store.Scopes) error {
	owner, clock := t.db.owner, &t.db.clock
	var epoch int64
	locked := 0
	lock := func(b *pgx.Batch) error {
		locked = 0
		b.Queue("SELECT scope FROM dpareto_scopes WHERE scope = ANY($1) ORDER BY scope FOR UPDATE", names(scopes)).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				locked++
			}
			return rows.Err()
		})
		owner.queueEpoch(b, &epoch, &t.now)
		from := clock.elapsed()
		if err := t.conn.SendBatch(t.ctx, b).Close(); err != nil {
			return err
		}
		started, _ := t.conn.PgConn().CustomData()[startedKey].(time.Time)
		var isOther bool
		if t.since, isOther = clock.observe(started, t.now, from, clock.elapsed()); isOther {
			_, renewed := t.db.announcer.listeners()
			renewed()
		}
		return nil
	}
	var b pgx.Batch
	b.Queue("begin isolation level read committed read write")
	owner.queueFence(&b)
	if err := lock(&b); err != nil {
		return err
	}
	if epoch != owner.epoch {
		return errFenced
	}
	if locked == len(scopes) {
		return nil
	}
	b = pgx.Batch{}
	b.Queue("INSERT INTO dpareto_scopes (scope) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING", names(scopes))
	return lock(&b)
}

// Time implements store.Timed.
func (t *transaction) Time() (now, since time.Time) { return t.now, t.since }

// apply writes the writes of an Update, with a savepoint if others share the transaction: then refused
// is why the database does not take them, and the transaction goes on without them.
func (t *transaction) apply(overlay *store.Overlay, shared bool) (refused, err error) {
	written := make(map[string][]byte)
	var b pgx.Batch
	if shared {
		b.Queue("savepoint one")
	}
	for _, summaries := range []bool{false, true} {
		var deleted, keys, values [][]byte
		_ = overlay.Apply(func(key string, value []byte) error {
			switch {
			case (key[0] == 0) != summaries:
				return nil
			case value == nil:
				deleted = append(deleted, []byte(key))
			default:
				keys, values = append(keys, []byte(key)), append(values, value)
			}
			written[key] = value
			return nil
		})
		name := table("")
		if summaries {
			name = table("\x00")
		}
		if len(deleted) > 0 {
			b.Queue("DELETE FROM "+name+" WHERE key = ANY($1)", deleted)
		}
		if len(keys) > 0 {
			b.Queue("INSERT INTO "+name+" (key, value) SELECT unnest($1::bytea[]), unnest($2::bytea[]) ON CONFLICT (key) DO UPDATE SET value = excluded.value", keys, values)
		}
	}
	if shared {
		b.Queue("release savepoint one")
	}
	err = t.conn.SendBatch(t.ctx, &b).Close()
	if shared && isRefusal(err) && !isConflict(err) {
		refused = err
		_, err = t.conn.Exec(t.ctx, "rollback to savepoint one")
		return refused, err
	}
	if err == nil {
		maps.Copy(t.known, written)
	}
	return nil, err
}

// call runs the function of an Update. A panic in it becomes its error.
func call(fn func(store.ReadWriter) error, tx store.ReadWriter) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a store transaction: %v\n%s", r, debug.Stack())
		}
	}()
	return fn(tx)
}

// isConflict reports whether a transaction failed because of another one.
func isConflict(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refusal.Code == serializationFailure || refusal.Code == deadlockDetected)
}

// isRefusal reports whether the database refused a statement. Otherwise a statement failed with its
// connection, or found none.
func isRefusal(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refusal.SeverityUnlocalized == "ERROR" // of FATAL and PANIC the session ends
}

// unwritable returns the error of Updates of which nothing is written.
func (d *DB) unwritable(cause error) error {
	e := &store.UnwritableError{Reason: "the database cannot be reached", Err: fmt.Errorf("%s: %w", d.name, cause)}
	refusal, ok := errors.AsType[*pgconn.PgError](cause)
	switch {
	case !ok:
	case refusal.Code == diskFull:
		e.Reason, e.Full = "no space is left for the database", true
	case isConflict(cause):
		e.Reason = "other transactions are in the way"
	default:
		e.Reason = "the database refuses it"
	}
	return e
}
