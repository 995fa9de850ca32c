package simulation

import (
	"sync/atomic"
	"time"
)

// epoch is the wall time at which histories begin. True time begins when synctest says.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// clock is the wall clock of the machine: true time plus an offset that steps.
type clock struct {
	offset atomic.Int64
}

// newClock returns a clock that shows the epoch.
func newClock() *clock {
	c := new(clock)
	c.step(time.Until(epoch))
	return c
}

// step sets the clock forward, or back.
func (c *clock) step(d time.Duration) { c.offset.Add(int64(d)) }

// Now returns the wall time, without a monotonic reading.
func (c *clock) Now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())).Round(0) }

// processClock is the clock as a process reads it.
type processClock struct {
	*clock

	started time.Time // true time
}

// Elapsed returns the time since the process started.
func (c processClock) Elapsed() time.Duration { return time.Since(c.started) }
