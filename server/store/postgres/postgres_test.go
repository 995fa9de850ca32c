package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/failure"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/postgres/pgtest"
	"github.com/dpareto/dpareto/server/store/storetest"
)

func openKV(url string) (store.KV, error) {
	return Open(context.Background(), url, Options{Create: true})
}

func TestMain(m *testing.M) {
	takeover = time.Minute // no test depends on how soon the session of a process that has ended is gone
	storetest.WriteUntilKilled(openKV)
	goleak.VerifyTestMain(m)
}

// openAt opens the store with a URL. Who calls it closes it.
func openAt(t testing.TB, url string) *DB {
	t.Helper()
	d, err := Open(t.Context(), url, Options{Create: true})
	require.NoError(t, err)
	return d
}

func TestKV(t *testing.T) {
	storetest.KV(t, func(t testing.TB) store.KV { return openAt(t, pgtest.URL(t)) })
}

func TestKilledWriter(t *testing.T) { storetest.Killed(t, pgtest.URL(t), openKV) }

// put writes a record.
func put(d *DB, scope, key, value string) error {
	return d.Update(context.Background(), store.In(store.Scope(scope)), func(tx store.ReadWriter) error {
		tx.Put(key, []byte(value))
		return nil
	})
}

// openAlone opens the store with a URL for this process alone.
func openAlone(ctx context.Context, url string) (*DB, error) {
	return Open(ctx, url, Options{Create: true, Alone: true})
}

// Servers share a store. A process that wants it alone is refused while a server uses it, and keeps servers
// away.
func TestAlone(t *testing.T) {
	patient := takeover
	defer func() { takeover = patient }()
	takeover = 0
	url, other := pgtest.URL(t), pgtest.URL(t)
	var servers [3]*DB
	var opening sync.WaitGroup
	for i := range servers {
		opening.Go(func() { servers[i] = openAt(t, url) })
	}
	opening.Wait()
	for i, d := range servers {
		if err := put(d, "a", strconv.Itoa(i), "v"); err != nil {
			t.Error(err)
		}
	}
	if got := storetest.Dump(t, servers[0]); len(got) != len(servers) {
		t.Errorf("one server sees %v", got)
	}
	if _, err := openAlone(t.Context(), url); !errors.Is(err, store.ErrLocked) {
		t.Errorf("beside servers: %v", err)
	}
	beside, err := openAlone(t.Context(), other) // another schema of the database
	require.NoError(t, err)
	if _, err := Open(t.Context(), other, Options{Create: true}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a server beside a process that has the store alone: %v", err)
	}
	reading, err := OpenReadOnly(t.Context(), url, Options{})
	require.NoError(t, err)
	if got := storetest.Dump(t, reading)["1"]; got != "v" {
		t.Errorf("a reader beside the servers reads %q", got)
	}
	if err := put(reading, "a", "k", "w"); !errors.Is(err, store.ErrUnwritable) {
		t.Errorf("a reader writes: %v", err)
	}
	for _, db := range append(servers[:], beside, reading) {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	takeover = patient
	alone, err := openAlone(t.Context(), url)
	if err == nil {
		err = alone.Close()
	}
	if err != nil {
		t.Error(err)
	}
}

// A store is in one schema: what is in later ones of the search_path is another's.
func TestOneSchema(t *testing.T) {
	first := pgtest.URL(t)
	d := openAt(t, first)
	require.NoError(t, put(d, "a", "k", "first"))
	path := func(schemas ...string) string { return pgtest.Database(t, strings.Join(schemas, ",")) }
	pgtest.Schema(t, "Before")
	both := path(`"Before"`, schemaOf(t, d))
	if _, err := Open(t.Context(), both, Options{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Open where a later schema has a store: %v", err)
	}
	if _, err := OpenReadOnly(t.Context(), both, Options{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("OpenReadOnly where a later schema has a store: %v", err)
	}
	other := openAt(t, both)
	if err := put(other, "a", "k", "other"); err != nil {
		t.Error(err)
	}
	if got := storetest.Dump(t, d)["k"]; got != "first" {
		t.Errorf("another store has written %q", got)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	name := schemaOf(t, d)
	if err := d.Close(); err != nil {
		t.Error(err)
	}

	d = openAt(t, path("made_later", name))
	pgtest.Schema(t, "made_later")
	openAt(t, path("made_later")).Close()
	d.pool.Reset() // its sessions are new ones
	if got := storetest.Dump(t, d)["k"]; got != "first" {
		t.Errorf("beside a schema that was made later it reads %q", got)
	}
	if err := errors.Join(put(d, "a", "l", "v"), d.Close()); err != nil {
		t.Error(err)
	}
}

// schemaOf returns the name of the schema of a store.
func schemaOf(t *testing.T, d *DB) (name string) {
	t.Helper()
	require.NoError(t, d.pool.QueryRow(t.Context(), "SELECT current_schema()").Scan(&name))
	return name
}

// listen counts what a store tells its listener.
func listen(d *DB) (changed, renewed *atomic.Int64) {
	changed, renewed = new(atomic.Int64), new(atomic.Int64)
	d.Listen(func(store.Scope) { changed.Add(1) }, func() { renewed.Add(1) })
	return changed, renewed
}

// A server whose session ends takes another one. If a process had the store alone meanwhile it stops.
func TestLostSession(t *testing.T) {
	url := pgtest.URL(t)
	d, other := openAt(t, url), openAt(t, url)
	changed, renewed := listen(d)
	pgtest.Exec(t, url, "SELECT pg_terminate_backend($1, 5000)", d.owner.conn.PgConn().PID())
	waitFor(t, func() bool { return renewed.Load() > 0 })
	if err := put(d, "a", "k", "v"); err != nil {
		t.Error(err)
	}
	other.Announce("a")
	waitFor(t, func() bool { return changed.Load() > 0 })
	if err := other.Close(); err != nil {
		t.Error(err)
	}

	pgtest.Exec(t, url, "UPDATE dpareto_store SET epoch = epoch + 1")
	pgtest.Exec(t, url, "SELECT pg_terminate_backend($1, 5000)", d.owner.conn.PgConn().PID())
	<-d.Failed() // by itself
	if err := d.Close(); !errors.Is(err, store.ErrUnwritable) || !strings.Contains(err.Error(), fencedReason) {
		t.Errorf("Close returned %v", err)
	}

	d = openAt(t, url)
	pgtest.Exec(t, url, "UPDATE dpareto_store SET epoch = epoch + 1")
	if err := put(d, "a", "k", "w"); !errors.Is(err, store.ErrUnwritable) || !strings.Contains(err.Error(), fencedReason) {
		t.Errorf("a server of an earlier epoch: %v", err)
	}
	<-d.Failed()
	if got := storetest.Dump(t, d)["k"]; got != "v" {
		t.Errorf("a server of an earlier epoch has written %q", got)
	}
	_ = d.Close()

	alone, err := openAlone(t.Context(), url)
	require.NoError(t, err)
	pgtest.Exec(t, url, "SELECT pg_terminate_backend($1, 5000)", alone.owner.conn.PgConn().PID())
	<-alone.Failed()
	if err := alone.Close(); !errors.Is(err, store.ErrUnwritable) || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("Close returned %v", err)
	}
}

// Who takes the store alone waits for transactions of servers that have lost their sessions.
func TestEpochWaits(t *testing.T) {
	url := pgtest.URL(t)
	d := openAt(t, url)
	d.stop() // it does not notice the end of its session
	d.attending.Wait()
	taken := make(chan *DB)
	err := d.Update(t.Context(), store.In("a"), func(tx store.ReadWriter) error {
		pgtest.Exec(t, url, "SELECT pg_terminate_backend($1, 5000)", d.owner.conn.PgConn().PID())
		go func() {
			alone, err := openAlone(context.Background(), url)
			if err != nil {
				t.Error(err)
			}
			taken <- alone
		}()
		waitFor(t, func() bool { return locked(t, d) })
		select {
		case <-taken:
			t.Error("a process has the store alone beside a transaction")
		default:
		}
		tx.Put("k", []byte("v"))
		return nil
	})
	alone := <-taken
	if got := storetest.Dump(t, alone)["k"]; got != "v" || err != nil {
		t.Errorf("the transaction returned %v, its record is %q", err, got)
	}
	if err := put(d, "a", "k", "w"); !errors.Is(err, store.ErrUnwritable) || storetest.Dump(t, alone)["k"] != "v" {
		t.Errorf("a later transaction returned %v", err)
	}
	_ = d.Close()
	if err := alone.Close(); err != nil {
		t.Error(err)
	}
}

// A commit that the database does not answer in time goes on: it is seen when it is done, not before, and is not undone.
func TestCommitGoesOn(t *testing.T) {
	url := pgtest.URL(t)
	d := openAt(t, url)
	const lock = 7
	pgtest.Exec(t, url, fmt.Sprintf(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(%d); RETURN NULL; END'`, lock))
	pgtest.Exec(t, url, `CREATE CONSTRAINT TRIGGER standby AFTER INSERT ON dpareto_records DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()`)
	standby, err := d.pool.Acquire(t.Context())
	if err == nil {
		_, err = standby.Exec(t.Context(), "SELECT pg_advisory_lock($1)", lock)
	}
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel() // the database has not answered in time
		waitFor(t, func() bool { return locked(t, d) })
	}()
	u := &update{fn: func(tx store.ReadWriter) error { tx.Put("k", []byte("v")); return nil }}
	_, err = d.transact(ctx, store.In(store.StudyScope("s")), []*update{u})
	if unwritable, ok := errors.AsType[*store.UnwritableError](err); !ok || !unwritable.Unknown {
		t.Errorf("a commit without an answer: %v", err)
	}
	has := func() (found bool) {
		err := d.View(t.Context(), func(tx store.Reader) error {
			value, err := tx.Get("k")
			found = value != nil
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return found
	}
	if has() {
		t.Error("others see what is not committed")
	}
	if _, err := standby.Exec(t.Context(), "SELECT pg_advisory_unlock($1)", lock); err != nil {
		t.Error(err)
	}
	standby.Release()
	waitFor(t, has)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// Of the processes with a store one has a lock, until it gives it free or ends.
func TestLocks(t *testing.T) {
	url := pgtest.URL(t)
	a, b := openAt(t, url), openAt(t, url)
	try := func(d *DB, want bool) (unlock func()) {
		t.Helper()
		unlock, taken, err := d.TryLock(t.Context(), "it")
		if taken != want || err != nil {
			t.Fatalf("taken: %t, %v; want %t", taken, err, want)
		}
		return unlock
	}
	unlock := try(a, true)
	try(b, false)
	unlock()
	unlock = try(b, true)
	try(a, false)
	pgtest.Exec(t, url, "SELECT pg_terminate_backend($1, 5000)", b.locks.conn.PgConn().PID())
	lost := unlock
	unlock = try(a, true)
	lost() // of a session that has ended
	if _, taken, err := b.TryLock(t.Context(), "it"); taken {
		t.Errorf("two processes have a lock: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	unlock()
	waitFor(t, func() bool { _, taken, _ := b.TryLock(t.Context(), "it"); return taken })
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// Servers hear what others announce, each scope once for many changes, and nothing of their own.
func TestAnnouncements(t *testing.T) {
	url := pgtest.URL(t)
	a, b := openAt(t, url), openAt(t, url)
	own, _ := listen(a)
	var mu sync.Mutex
	heard := make(map[store.Scope]int)
	b.Listen(func(scope store.Scope) {
		mu.Lock()
		defer mu.Unlock()
		heard[scope]++
	}, func() {})
	const scopes = 2000 // more than one payload
	announce := func(d *DB) {
		for i := range scopes {
			d.Announce(store.StudyScope(strconv.Itoa(i)))
		}
	}
	announce(a)
	waitFor(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(heard) == scopes
	})
	idle := &DB{announcer: newAnnouncer()} // which sends nothing
	for range 50 {
		announce(idle)
	}
	payloads := idle.announcer.take()
	if n := strings.Count(strings.Join(payloads, ""), "\n"); n != scopes || len(payloads) < 2 {
		t.Errorf("50 announcements of %d scopes become %d in %d payloads", scopes, n, len(payloads))
	}
	if n := own.Load(); n != 0 {
		t.Errorf("a server hears %d announcements of its own", n)
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}

// The time of a transaction is the database's. Since when it goes on without a step is as this process has
// seen it.
func TestClock(t *testing.T) {
	c := dbClock{began: time.Now()}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	for i, step := range []struct {
		server     int     // that answers
		said       float64 // by its clock, in seconds
		from, to   float64 // by the process's time
		since      float64
		wantServer bool // another than before
	}{
		{1, 0, 0, 0.1, 0, false},
		{1, 10, 9.9, 10.1, 0, false},
		{1, 20.9, 20, 20, 0, false},      // it drifts
		{1, 31.7, 30, 30, 0, false},      // and drifts
		{1, 40, 30, 40, 0, false},        // a slow answer tells little
		{1, 3640, 40, 40.1, 3640, false}, // it was set
		{1, 3650, 50, 50.1, 3640, false},
		{1, 60, 60, 60.1, 60, false}, // and set back
		{2, 70, 70, 70.1, 70, true},
		{2, 80, 80, 80.1, 70, false},
	} {
		elapsed := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
		since, isOther := c.observe(start.Add(time.Duration(step.server)*time.Hour), at(step.said), elapsed(step.from), elapsed(step.to))
		if !since.Equal(at(step.since)) || isOther != step.wantServer {
			t.Errorf("step %d: since %v, another server: %t", i, since.Sub(start), isOther)
		}
	}

	d := openAt(t, pgtest.URL(t))
	defer d.Close()
	for range 2 { // a new scope, and one that is known
		before := time.Now().Add(-time.Millisecond)
		err := d.Update(t.Context(), store.In("a"), func(tx store.ReadWriter) error {
			now, since := tx.(store.Timed).Time()
			if now.Before(before) || now.After(time.Now().Add(time.Millisecond)) || since.After(now) || since.Before(before.Add(-time.Minute)) {
				t.Errorf("now %v, since %v", now, since)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// onInsert makes the database run statements before it inserts a record.
func onInsert(t *testing.T, url, statements string) {
	t.Helper()
	pgtest.Exec(t, url, "CREATE SEQUENCE attempts")
	pgtest.Exec(t, url, "CREATE FUNCTION inserted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+statements+" RETURN NEW; END $$")
	pgtest.Exec(t, url, "CREATE TRIGGER inserted BEFORE INSERT ON dpareto_records FOR EACH ROW EXECUTE FUNCTION inserted()")
}

// A transaction that meets others is run again, its functions too; not for ever.
func TestConflicts(t *testing.T) {
	for _, tt := range []struct {
		code     string
		failures int
	}{{serializationFailure, 3}, {deadlockDetected, 3}, {serializationFailure, maxAttempts}} {
		code, failures := tt.code, tt.failures
		url := pgtest.URL(t)
		d := openAt(t, url)
		onInsert(t, url, fmt.Sprintf("IF nextval('attempts') <= %d THEN RAISE EXCEPTION 'conflict' USING ERRCODE = '%s'; END IF;", failures, code))
		calls := 0
		err := d.Update(t.Context(), store.In("a"), func(tx store.ReadWriter) error {
			calls++
			if value, err := tx.Get("k"); value != nil || err != nil {
				t.Errorf("call %d sees %q, %v", calls, value, err)
			}
			tx.Put("k", []byte(strconv.Itoa(calls)))
			return nil
		})
		stats, stored := d.Stats(t.Context()), storetest.Dump(t, d)["k"]
		if failures < maxAttempts {
			if err != nil || calls != failures+1 || stored != strconv.Itoa(calls) || stats.Conflicts != int64(failures) || stats.Retries != int64(failures) || stats.Commits != 1 {
				t.Errorf("%s: %v, %d calls, stored %q, %+v", code, err, calls, stored, stats)
			}
		} else if !errors.Is(err, store.ErrUnwritable) || calls != maxAttempts || stored != "" || stats.Failures != 1 {
			t.Errorf("%s: %v, %d calls, stored %q, %+v", code, err, calls, stored, stats)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A call that the database keeps waiting is answered long before its deadline, and has done nothing.
func TestDatabaseKeepsWaiting(t *testing.T) {
	url := pgtest.URL(t)
	d, impatient := openAt(t, url), openAt(t, url)
	impatient.answer = time.Nanosecond
	held, release := make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		err := d.Update(context.Background(), store.In("a"), func(tx store.ReadWriter) error {
			select {
			case <-held: // the function is called again
			default:
				close(held)
			}
			<-release
			tx.Put("a\x00key", []byte("first"))
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-held // the scope stays locked
	err := put(impatient, "a", "a\x00key", "second")
	if !errors.Is(err, store.ErrUnavailable) || status.Code(failure.Status(err)) != codes.Unavailable {
		t.Errorf("an update: %v", err)
	}
	if err := impatient.View(t.Context(), func(store.Reader) error { return nil }); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a view: %v", err)
	}
	close(release)
	first.Wait()
	if err := impatient.Close(); err != nil { // waits for the update
		t.Error(err)
	}
	if got := storetest.Dump(t, d)["a\x00key"]; got != "first" {
		t.Errorf("the value is %q", got)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// Of updates that share a transaction, one that the database refuses loses its own writes only.
func TestRefusedAlone(t *testing.T) {
	url := pgtest.URL(t)
	d := openAt(t, url)
	onInsert(t, url, `IF convert_from(NEW.key, 'UTF8') LIKE '%/bad' THEN RAISE EXCEPTION 'refused'; END IF;`)
	var updates sync.WaitGroup
	holds, release := make(chan struct{}), make(chan struct{})
	updates.Go(func() { // holds the scope until the others wait
		err := d.Update(t.Context(), store.In("a"), func(store.ReadWriter) error {
			close(holds)
			<-release
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-holds
	const n = 30
	for i := range n {
		key := fmt.Sprintf("%02d/good", i)
		if i%3 == 0 {
			key = fmt.Sprintf("%02d/bad", i)
		}
		updates.Go(func() {
			if err := put(d, "a", key, "v"); (err == nil) != strings.HasSuffix(key, "good") || err != nil && !errors.Is(err, store.ErrUnwritable) {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	waitFor(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.queues["a\x00"]) == n
	})
	close(release)
	updates.Wait()
	if got, stats := storetest.Dump(t, d), d.Stats(t.Context()); len(got) != n*2/3 || stats.Commits != 1 || stats.Updates != n*2/3 {
		t.Errorf("stored %v, %+v", got, stats)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// waitFor waits until a condition holds, as long as go test lets it.
func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for !condition() {
		time.Sleep(time.Millisecond)
	}
}

// locked reports whether a session of the database waits for a lock.
func locked(t *testing.T, d *DB) (yes bool) {
	t.Helper()
	err := d.pool.QueryRow(context.Background(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock')").Scan(&yes)
	if err != nil {
		t.Error(err)
	}
	return yes || err != nil
}

// Updates of one scope do not wait for those of another, and what waits can be cancelled.
func TestScopesApart(t *testing.T) {
	d := openAt(t, pgtest.URL(t))
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error)
	err := d.Update(t.Context(), store.In("a"), func(tx store.ReadWriter) error {
		go func() {
			waits <- d.Update(ctx, store.In("a"), func(store.ReadWriter) error { t.Error("a cancelled function was called"); return nil })
		}()
		if err := put(d, "b", "b", "v"); err != nil {
			t.Error(err)
		}
		waitFor(t, func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return len(d.queues["a\x00"]) == 1
		})
		cancel()
		if err := <-waits; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled Update returned %v", err)
		}
		tx.Put("a", nil)
		return nil
	})
	if err != nil || len(storetest.Dump(t, d)) != 2 {
		t.Errorf("%v, %v", err, storetest.Dump(t, d))
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// Whether a statement was refused does not depend on the language in which the database says so.
func TestRefusalInAnyLanguage(t *testing.T) {
	for severity, refusal := range map[string]bool{"ERROR": true, "FATAL": false, "PANIC": false} {
		err := fmt.Errorf("wrapped: %w", &pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: severity})
		if got := isRefusal(err); got != refusal {
			t.Errorf("%s: a refusal: %t", severity, got)
		}
	}
}

// endTransactions ends the connections of transactions that are between two statements.
func endTransactions(t *testing.T, url string) {
	t.Helper()
	pgtest.Exec(t, url, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'dpareto' AND state = 'idle in transaction'")
}

// A connection that ends before the commit costs another attempt. If it ends before the answer to a
// commit, nobody knows whether that happened, and the caller is told.
func TestLostConnections(t *testing.T) {
	url := pgtest.URL(t)
	d := openAt(t, url)
	calls := 0
	err := d.Update(t.Context(), store.In("a"), func(tx store.ReadWriter) error {
		if calls++; calls == 1 {
			endTransactions(t, url)
		}
		tx.Put("k", []byte(strconv.Itoa(calls)))
		return nil
	})
	if got := storetest.Dump(t, d)["k"]; err != nil || calls != 2 || got != "2" {
		t.Errorf("%v, %d calls, stored %q", err, calls, got)
	}
	err = d.View(t.Context(), func(r store.Reader) error {
		endTransactions(t, url)
		_, err := r.Get("k")
		return err
	})
	if code := status.Code(failure.Status(err)); !errors.Is(err, store.ErrUnavailable) || code != codes.Unavailable {
		t.Errorf("a View without its connection: %v, %v", err, code)
	}
	d.commitSQL = "SELECT pg_terminate_backend(pg_backend_pid())"
	err = put(d, "a", "k", "3")
	if unwritable, ok := errors.AsType[*store.UnwritableError](err); !ok || !unwritable.Unknown || !strings.Contains(failure.Status(err).Error(), "may have taken effect") {
		t.Errorf("a commit without an answer: %v", err)
	}
	d.commitSQL = "commit"
	if err := errors.Join(put(d, "a", "k", "4"), d.Close()); err != nil {
		t.Error(err)
	}
}

// What was acknowledged is there after a crash of the database, and its servers go on.
func TestCrashedDatabase(t *testing.T) {
	d := openAt(t, pgtest.URL(t))
	_, renewed := listen(d)
	var acknowledged sync.Map
	var written atomic.Int64
	var writers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for w := range 16 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key := fmt.Sprintf("%d/%d", w, i)
				if put(d, strconv.Itoa(w%4), key, "v") == nil {
					acknowledged.Store(key, true)
					written.Add(1)
				}
			}
		})
	}
	for round := range int64(2) {
		before := written.Load()
		waitFor(t, func() bool { return written.Load() > before+200 })
		pgtest.Crash(t)
		waitFor(t, func() bool { return renewed.Load() > round })
	}
	before := written.Load()
	waitFor(t, func() bool { return written.Load() > before+200 })
	cancel()
	writers.Wait()
	stored := storetest.Dump(t, d)
	acknowledged.Range(func(key, _ any) bool {
		if stored[key.(string)] == "" {
			t.Errorf("%s is lost", key)
		}
		return true
	})
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A database that may lose what was acknowledged is refused, and a role's setting does not matter.
func TestDurability(t *testing.T) {
	url := pgtest.URL(t)
	set := func(setting string) {
		pgtest.Exec(t, url, "ALTER SYSTEM SET "+setting)
		pgtest.Exec(t, url, "SELECT pg_reload_conf()")
	}
	for _, name := range []string{"fsync", "full_page_writes"} {
		set(name + " = off")
		waitFor(t, func() bool {
			d, err := Open(t.Context(), url, Options{Create: true})
			if err == nil {
				_ = d.Close()
			}
			return err != nil && strings.Contains(err.Error(), name+" off")
		})
		d, err := Open(t.Context(), url, Options{Create: true, Unsafe: true})
		require.NoError(t, err)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		set(name + " = on")
		waitFor(t, func() bool {
			d, err := Open(t.Context(), url, Options{Create: true})
			if err == nil {
				_ = d.Close()
			}
			return err == nil
		})
	}
	pgtest.Exec(t, url, "ALTER ROLE dpareto SET synchronous_commit = off")
	defer pgtest.Exec(t, url, "ALTER ROLE dpareto RESET synchronous_commit")
	d := openAt(t, url)
	var value string
	if err := d.pool.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&value); err != nil || value != "on" {
		t.Errorf("synchronous_commit is %q, %v", value, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
