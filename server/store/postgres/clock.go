package postgres

import (
	"sync"
	"time"
)

// leastStep is the least difference between the database's clock and the process's that counts as a step.
// Smaller ones are followed: clocks drift.
const leastStep = time.Second

// dbClock watches the clock of the database by the time that passes in this process.
type dbClock struct {
	began time.Time // of the process's time, monotonic

	mu      sync.Mutex
	started time.Time // when the database server started, which tells it from others
	origin  time.Time // what its clock said when the process's time began
	since   time.Time // by its clock: since when it has gone on without a step
}

// elapsed returns the process's time.
func (c *dbClock) elapsed() time.Duration { return time.Since(c.began) }

// observe notes the time on the clock of a database server that started at some time, read between two
// moments of the process's time. It returns since when the clock has gone on without a step, as far as this
// process has seen: until now if it was set, or if it is the clock of another server. renewed tells that
// the server is another than before.
func (c *dbClock) observe(started, now time.Time, from, to time.Duration) (since time.Time, renewed bool) {
	least, most := now.Add(-to), now.Add(-from) // the clock's time when the process's time began
	c.mu.Lock()
	defer c.mu.Unlock()
	renewed = !started.Equal(c.started) && !c.started.IsZero()
	switch {
	case !started.Equal(c.started), least.After(c.origin.Add(leastStep)), most.Before(c.origin.Add(-leastStep)):
		c.started, c.origin, c.since = started, least, now
	case least.After(c.origin):
		c.origin = least
	case most.Before(c.origin):
		c.origin = most
	}
	return c.since, renewed
}

// now returns the approximate time of the database's clock, and since when it has run without a step.
func (c *dbClock) now() (now, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.origin.Add(c.elapsed()), c.since
}

// Now implements store.Shared.
func (d *DB) Now() time.Time {
	now, _ := d.clock.now()
	return now
}
