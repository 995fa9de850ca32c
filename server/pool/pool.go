// Package pool shares a few processors among long computations: model fits, analyses, accounting.
// It keeps one processor free for calls, and callers from delaying one another.
package pool

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/metrics"
)

// Kind says who waits for a computation. Kinds are in order of priority.
type Kind int

// The kinds of computations.
const (
	// Suggestion is for a worker, which trains nothing meanwhile.
	Suggestion Kind = iota
	// Analysis is for people, who look at results or ask for an ε.
	Analysis
	// Background is for what no call waits for: suggestions prepared in advance, early stopping.
	Background

	kinds
)

// names of the kinds in metrics.
var names = [kinds]string{metrics.PoolSuggestion, metrics.PoolAnalysis, metrics.PoolBackground}

const (
	// slice is how long a computation goes on while others wait.
	slice = 10 * time.Millisecond
	// share is how many turns go to higher kinds before a kind that waits gets one.
	share = 8
)

// Pool runs a limited number of computations at once. Each has one goroutine, and gives its slot up
// at a [pause.Check] once it has used its slice and others wait. Free slots go to the
// highest kind, within a kind to the principals in turn, and for a principal to the computation that
// came first, so that few are under way at once. One turn in nine goes to a lower kind that waits.
// Computations have threads of low priority. A Pool is safe for concurrent use.
type Pool struct {
	slots   int
	metrics *metrics.Metrics

	mu      sync.Mutex
	running int
	waiting []*ticket       // in no order
	places  int64           // that were given to tasks
	passed  [kinds]int      // turns of higher kinds since this one waits
	turns   int64           // number of turns so far
	served  map[queue]int64 // the last turn
}

// queue holds the computations of one principal and kind.
type queue struct {
	kind      Kind
	principal string
}

// ticket is a computation that waits for a slot.
type ticket struct {
	task  *Task
	ready chan struct{} // closed when it gets one
}

// Slots returns the number of computations at once that leaves one processor to calls, at least 1.
func Slots() int { return max(1, processors-1) }

// New returns a pool with a number of slots.
func New(slots int, m *metrics.Metrics) *Pool {
	return &Pool{slots: slots, metrics: m, served: make(map[queue]int64)}
}

// Task is one computation.
type Task struct {
	pool *Pool
	name string // of the kind that it began as, in metrics

	// Guarded by pool.mu.
	queue queue
	place int64     // in the queue: tasks that came first end first
	since time.Time // when it last got a slot
}

// Task returns a computation for the principal of a context.
func (p *Pool) Task(ctx context.Context, kind Kind) *Task {
	return &Task{pool: p, name: names[kind], queue: queue{kind, auth.FromContext(ctx).Name}}
}

// Raise gives the task a higher kind, if it is one, because somebody waits for it now.
func (t *Task) Raise(kind Kind) {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	t.queue.kind = min(t.queue.kind, kind)
}

// Run waits for a slot and calls fn with a context whose pauses pass the slot on. It returns fn's
// error, or the context's if that ends before there is a slot. A task may run again later. Tasks do
// not nest: fn runs no other task of the pool and waits for none.
func (t *Task) Run(ctx context.Context, fn func(context.Context) error) (err error) {
	began := time.Now()
	if err := t.begin(ctx); err != nil {
		return err
	}
	t.pool.metrics.PoolWaited(t.name, time.Since(began))
	defer t.end()
	onThread(func() { err = fn(pause.With(ctx, t.check)) })
	return err
}

// Run is Run of a new task for the principal of ctx.
func (p *Pool) Run(ctx context.Context, kind Kind, fn func(context.Context) error) error {
	return p.Task(ctx, kind).Run(ctx, fn)
}

// begin waits for a slot.
func (t *Task) begin(ctx context.Context) error {
	p := t.pool
	p.mu.Lock()
	mine := p.enter(t)
	p.mu.Unlock()
	select {
	case <-mine.ready:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.leave(mine) { // it got a slot just now
		p.running--
		p.grant()
	}
	return ctx.Err()
}

// end gives the slot back.
func (t *Task) end() {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	t.pool.running--
	t.pool.grant()
}

// check passes the slot on if the slice is over and others wait, and waits for another one. It
// returns the error of ctx.
func (t *Task) check(ctx context.Context) error {
	p := t.pool
	p.mu.Lock()
	if len(p.waiting) == 0 || time.Since(t.since) < slice || ctx.Err() != nil {
		p.mu.Unlock()
		return ctx.Err()
	}
	p.running--
	mine := p.enter(t)
	p.mu.Unlock()
	select {
	case <-mine.ready:
		return ctx.Err()
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leave(mine) {
		p.running++ // beyond the slots, for the moment that the task takes to end
	}
	return ctx.Err()
}

// enter queues a task and gives out free slots. The caller holds p.mu.
func (p *Pool) enter(t *Task) *ticket {
	mine := &ticket{task: t, ready: make(chan struct{})}
	if t.place == 0 {
		p.places++
		t.place = p.places
	}
	p.waiting = append(p.waiting, mine)
	p.metrics.PoolWaiting(t.name, 1)
	p.grant()
	return mine
}

// leave removes a ticket, or returns false if it waits no more. The caller holds p.mu.
func (p *Pool) leave(mine *ticket) bool {
	i := slices.Index(p.waiting, mine)
	if i < 0 {
		return false
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	p.metrics.PoolWaiting(mine.task.name, -1)
	return true
}

// grant gives out the free slots. The caller holds p.mu.
func (p *Pool) grant() {
	for p.running < p.slots && len(p.waiting) > 0 {
		next := p.next()
		p.leave(next)
		p.running++
		p.turns++
		p.served[next.task.queue] = p.turns
		next.task.since = time.Now()
		close(next.ready)
	}
}

// next returns the ticket whose turn it is. Some ticket waits. The caller holds p.mu.
func (p *Pool) next() *ticket {
	var waits [kinds]bool
	for _, w := range p.waiting {
		waits[w.task.queue.kind] = true
	}
	chosen := Kind(slices.Index(waits[:], true))
	for kind := chosen + 1; kind < kinds; kind++ {
		if waits[kind] && p.passed[kind] >= share {
			chosen = kind
			break
		}
	}
	for kind := range kinds {
		if waits[kind] && kind > chosen {
			p.passed[kind]++
		} else if kind == chosen || !waits[kind] {
			p.passed[kind] = 0
		}
	}
	var first *ticket
	for _, w := range p.waiting {
		if w.task.queue.kind == chosen && (first == nil || p.before(w.task, first.task)) {
			first = w
		}
	}
	return first
}

// before reports whether the turn of a comes before the turn of b, of the same kind.
func (p *Pool) before(a, b *Task) bool {
	return cmp.Or(cmp.Compare(p.served[a.queue], p.served[b.queue]), cmp.Compare(a.place, b.place)) < 0
}
