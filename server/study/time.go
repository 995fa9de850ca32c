package study

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	"github.com/dpareto/dpareto/server/clock"
	"github.com/dpareto/dpareto/server/store"
)

// smallStep is by how much the clock of a database may be set without being seen to step.
const smallStep = time.Second

// reading is the time, in a transaction, of the clock by which leases end. If other servers use the
// store, too, that is the clock of its database; otherwise it is the process's own, which never steps.
type reading struct {
	clock   uint64        // which clock: the process's random number, or 0 for a database's
	elapsed time.Duration // since the start of the process, or since 1970
	since   time.Duration // when this process began to see the clock go on without a step
}

// times tells the time by the clock of the store's database if other servers use it, and otherwise by
// the process's own.
type times struct {
	store   *store.Store
	clock   clock.Clock
	steady  func() time.Time // for the ages of stored answers
	process uint64           // tells leases granted here from leases of earlier processes
	started time.Duration    // on the clock
}

func newTimes(db *store.Store, c clock.Clock) times {
	return times{store: db, clock: c, steady: clock.Steady(c), process: newProcess(), started: c.Elapsed()}
}

// read reads the clock of leases.
func (t *times) read(tx *store.ReadTx) reading {
	if now, since, ok := tx.Time(); ok {
		return reading{elapsed: now.Sub(time.Unix(0, 0)), since: since.Sub(time.Unix(0, 0))}
	}
	return reading{clock: t.process, elapsed: t.elapsed()}
}

// elapsed returns the time since the process began to serve.
func (t *times) elapsed() time.Duration { return t.clock.Elapsed() - t.started }

// now returns the time by which answers grow old.
func (t *times) now(tx *store.ReadTx) time.Time {
	if now, _, ok := tx.Time(); ok {
		return now
	}
	return t.steady()
}

// wallIn returns the time for people in a transaction.
func (t *times) wallIn(tx *store.ReadTx) time.Time {
	if now, _, ok := tx.Time(); ok {
		return now
	}
	return t.clock.Now()
}

// wall returns the same outside of a transaction, for budgets of duration. It may lag the database's clock a little.
func (t *times) wall() time.Time {
	if now, ok := t.store.Now(); ok {
		return now
	}
	return t.clock.Now()
}

// LeaseEnd returns the end of a lease of some length that begins in a transaction.
func LeaseEnd(s *Studies, tx *store.ReadTx, length time.Duration) *storev1.LeaseEnd {
	return s.times.read(tx).leaseEnd(length)
}

func (r reading) leaseEnd(length time.Duration) *storev1.LeaseEnd {
	return &storev1.LeaseEnd{Clock: r.clock, Elapsed: durationpb.New(r.elapsed + length), Length: durationpb.New(length)}
}

// isExpired reports whether a lease has run out. The age of a lease is unknown if it was granted by another
// process that had the store alone, before this server came, or before the clock of the database was set.
// Such a lease lasts its full length again. One that was granted a little later than now is new: a clock that
// is set back by less than smallStep does not count as set.
func (r reading) isExpired(end *storev1.LeaseEnd) bool {
	until, length := end.GetElapsed().AsDuration(), end.GetLength().AsDuration()
	granted := until - length
	if end.GetClock() != r.clock || granted < r.since || granted > r.elapsed+smallStep {
		return r.elapsed-r.since >= length
	}
	return r.elapsed >= until
}
