package clock

import (
	"log/slog"
	"sync"
	"time"
)

// A Clock tells the time. It is safe for concurrent use.
type Clock interface {
	// Now returns the time of the wall clock. It may step, forward and back.
	Now() time.Time
	// Elapsed returns the time since a fixed moment in the life of the process. It never steps.
	Elapsed() time.Duration
}

// System returns the clock of the operating system.
func System() Clock { return system{time.Now()} }

// system has the monotonic reading of the time package in its start.
type system struct{ start time.Time }

func (system) Now() time.Time           { return time.Now() }
func (s system) Elapsed() time.Duration { return time.Since(s.start) }

// Steady returns a function that gives the time of the wall clock as if it had not been set since
// this call.
func Steady(c Clock) func() time.Time {
	start := c.Now().Add(-c.Elapsed())
	return func() time.Time { return start.Add(c.Elapsed()) }
}

// leastStep is the least difference between wall clock and elapsed time that is logged as a step. A
// process may be held up between two readings.
const leastStep = time.Second

// Logged returns a clock that logs the steps of another's wall clock when it is next read.
func Logged(c Clock, logger *slog.Logger) Clock {
	return &logged{Clock: c, logger: logger, steady: Steady(c)}
}

type logged struct {
	Clock
	logger *slog.Logger
	steady func() time.Time

	mu   sync.Mutex
	step time.Duration // between the wall clock and steady, as of the last log
}

// Now implements Clock.
func (l *logged) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, now, after := l.steady(), l.Clock.Now(), l.steady()
	wall := now.Round(0) // without the monotonic reading, which Sub would use
	least, most := wall.Sub(after.Round(0)), wall.Sub(before.Round(0))
	if least > l.step+leastStep || most < l.step-leastStep {
		l.logger.Warn("the wall clock was set, or the machine slept; leases continue by elapsed time",
			"by", (least - l.step).Round(time.Millisecond).String())
		l.step = least
	}
	return now
}
