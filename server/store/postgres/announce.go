package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/dpareto/dpareto/server/store"
)

const (
	// announceEvery is the least time between two transactions that announce changes. Those of one database
	// commit one after the other.
	announceEvery = 50 * time.Millisecond
	// maxPayload bounds an announcement, in bytes; PostgreSQL takes 8000.
	maxPayload = 7000
)

// announcer tells other servers which scopes have changed, many at a time and outside the transactions that
// changed them.
type announcer struct {
	self    string // tells this process's announcements from others
	wake    chan struct{}
	changed func(store.Scope)
	renewed func()

	mu      sync.Mutex
	pending map[store.Scope]bool
}

func newAnnouncer() announcer {
	return announcer{
		self: fmt.Sprintf("%016x", rand.Uint64()), wake: make(chan struct{}, 1),
		changed: func(store.Scope) {}, renewed: func() {}, pending: make(map[store.Scope]bool),
	}
}

// Listen implements store.Shared.
func (d *DB) Listen(changed func(store.Scope), renewed func()) {
	d.announcer.mu.Lock()
	defer d.announcer.mu.Unlock()
	d.announcer.changed, d.announcer.renewed = changed, renewed
}

// listeners returns the functions that Listen has set.
func (a *announcer) listeners() (changed func(store.Scope), renewed func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed, a.renewed
}

// Announce implements store.Shared.
func (d *DB) Announce(scope store.Scope) {
	a := &d.announcer
	a.mu.Lock()
	a.pending[scope] = true
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// take returns the payloads of what is to be announced: the process, and scopes, a line each.
func (a *announcer) take() (payloads []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var b strings.Builder
	for scope := range a.pending {
		if b.Len() == 0 {
			b.WriteString(a.self)
		}
		b.WriteString("\n" + string(scope))
		if b.Len() > maxPayload-store.MaxKey {
			payloads = append(payloads, b.String())
			b.Reset()
		}
	}
	clear(a.pending)
	if b.Len() > 0 {
		payloads = append(payloads, b.String())
	}
	return payloads
}

// announce announces changes until ctx ends. What cannot be sent is lost: who waits for it looks by itself
// now and then.
func (d *DB) announce(ctx context.Context) {
	for {
		select {
		case <-d.announcer.wake:
		case <-ctx.Done():
			return
		}
		if payloads := d.announcer.take(); len(payloads) > 0 {
			// It need not be on disk.
			bounded, cancel := context.WithTimeout(ctx, sessionPatience)
			_, _ = d.pool.Exec(bounded, "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, payload) FROM unnest($2::text[]) AS payload",
				d.owner.channel(), payloads)
			cancel()
		}
		select {
		case <-time.After(announceEvery):
		case <-ctx.Done():
			return
		}
	}
}

// heard passes on what another process has announced.
func (d *DB) heard(payload string) {
	from, scopes, _ := strings.Cut(payload, "\n")
	if from == d.announcer.self {
		return
	}
	changed, _ := d.announcer.listeners()
	for scope := range strings.SplitSeq(scopes, "\n") {
		changed(store.Scope(scope))
	}
}
