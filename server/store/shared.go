package store

import (
	"context"
	"sync"
	"time"
)

// Shared is a KV that several processes use at a time, each with a Store of its own.
type Shared interface {
	KV
	// TryLock takes a lock that one process holds at a time, and reports whether it was free. The lock
	// is free again after unlock, and when the process ends or loses its connection: it saves work, and
	// is no proof that no other process does the same. A process must not take a lock that it holds.
	TryLock(ctx context.Context, name string) (unlock func(), taken bool, err error)
	// Announce tells the other processes, soon, that a scope has changed. Announcements can be lost.
	Announce(scope Scope)
	// Listen sets the functions that are called when another process has announced a change, and when
	// announcements may have been lost or the store may have lost commits, before anything is read
	// from it then. They must be quick. Call it once.
	Listen(changed func(Scope), renewed func())
	// Now returns the approximate time of the clock of the KV, without asking it. All processes see the same
	// clock.
	Now() time.Time
}

// Timed is a Reader of a Shared KV, which knows the time in its transaction.
type Timed interface {
	// Time returns the time of the clock of the KV, and since when this process has seen it run without a
	// step. All processes see the same clock.
	Time() (now, since time.Time)
}

// Time returns the time of the clock of a Shared KV in the transaction, and since when this process
// has seen it run without a step. ok is false for a KV that one process has alone: its own clock
// counts.
func (t *ReadTx) Time() (now, since time.Time, ok bool) {
	if t.timed == nil {
		return now, since, false
	}
	now, since = t.timed.Time()
	return now, since, true
}

// Now returns the approximate time of the clock of a Shared KV, and otherwise false: the process's own clock
// counts.
func (s *Store) Now() (now time.Time, ok bool) {
	if s.shared == nil {
		return now, false
	}
	return s.shared.Now(), true
}

// timed returns a reader of the KV as a Timed, nil if the store is not shared.
func (s *Store) timed(r Reader) Timed {
	if s.shared == nil {
		return nil
	}
	timed, _ := r.(Timed)
	return timed
}

// IsShared reports whether other processes may also use the store.
func (s *Store) IsShared() bool { return s.shared != nil }

// Listen sets the functions that are called when another process has changed a scope, and when such
// calls may have been missed or commits lost: what was derived from the store may be wrong then. They
// must be quick. Call it once, before the first use. A store that is not shared calls neither.
func (s *Store) Listen(changed func(Scope), renewed func()) {
	if s.shared != nil {
		s.shared.Listen(changed, renewed)
	}
}

// Announce tells the other processes that a scope has changed.
func (s *Store) Announce(scope Scope) {
	if s.shared != nil {
		s.shared.Announce(scope)
	}
}

// lockPause is the time between two attempts at a lock that another process has.
const lockPause = 20 * time.Millisecond

// Lock waits for a lock that one call holds at a time, in all processes that share the store. A process
// that loses its connection loses its locks: they save work and keep calls apart, and whatever must hold
// is checked in transactions.
func (s *Store) Lock(ctx context.Context, name string) (unlock func(), err error) {
	for {
		ended := s.locks.add(name)
		if ended == nil {
			break
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	for {
		unlock, taken, err := s.lockShared(ctx, name)
		if taken {
			return unlock, nil
		}
		if err == nil {
			select {
			case <-time.After(lockPause):
				continue
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		s.locks.remove(name)
		return nil, err
	}
}

// TryLock is Lock, but does not wait: taken is false if another call holds the lock.
func (s *Store) TryLock(ctx context.Context, name string) (unlock func(), taken bool, err error) {
	if s.locks.add(name) != nil {
		return nil, false, nil
	}
	if unlock, taken, err = s.lockShared(ctx, name); !taken {
		s.locks.remove(name)
	}
	return unlock, taken, err
}

// lockShared takes a lock among processes. The caller has it within this one.
func (s *Store) lockShared(ctx context.Context, name string) (unlock func(), taken bool, err error) {
	if s.shared == nil {
		return func() { s.locks.remove(name) }, true, nil
	}
	release, taken, err := s.shared.TryLock(ctx, name)
	return func() { release(); s.locks.remove(name) }, taken, err
}

// localLocks are the locks that calls of this process hold or wait for in other processes.
type localLocks struct {
	mu    sync.Mutex
	names map[string]chan struct{} // closed on removal
}

// add takes a lock and returns nil, or returns a channel that is closed when the lock is free.
func (l *localLocks) add(name string) (ended <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ended, ok := l.names[name]; ok {
		return ended
	}
	if l.names == nil {
		l.names = make(map[string]chan struct{})
	}
	l.names[name] = make(chan struct{})
	return nil
}

// remove releases a lock.
func (l *localLocks) remove(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.names[name])
	delete(l.names, name)
}
