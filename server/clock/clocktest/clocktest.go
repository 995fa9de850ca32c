// Package clocktest has a clock for tests.
package clocktest

import (
	"sync"
	"time"
)

// Manual is a clock.Clock that tests move. Make one with NewManual. It is safe for concurrent use.
type Manual struct {
	mu      sync.Mutex
	now     time.Time
	elapsed time.Duration
}

// NewManual returns a clock that stands at a time.
func NewManual(now time.Time) *Manual { return &Manual{now: now} }

// Now implements clock.Clock.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Elapsed implements clock.Clock.
func (m *Manual) Elapsed() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.elapsed
}

// Advance lets time pass.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now, m.elapsed = m.now.Add(d), m.elapsed+d
}

// Step sets the wall clock forward, or back if d is negative, while no time passes.
func (m *Manual) Step(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
}
