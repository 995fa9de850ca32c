package front

import (
	"context"
	"sync"

	"github.com/dpareto/dpareto/server/background"
	"github.com/dpareto/dpareto/server/failure"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

// latest caches what is computed from the latest requested revision of a study. Callers that ask for
// the same revision share one computation, and wait for it without holding a lock. If all callers
// give up, it is cancelled.
type latest[T any] struct {
	mu     sync.Mutex
	flight *flight[T]
}

// flight is a computation, in progress or done.
type flight[T any] struct {
	revision int64
	waiting  int // number of callers
	cancel   context.CancelFunc
	done     chan struct{} // closed when value and err are set, which then never change
	value    T
	err      error
}

// get returns the result of compute for a revision. All callers share it and must not modify it. The
// end of ctx ends only the wait.
func (l *latest[T]) get(ctx context.Context, background *background.Group, revision int64, compute func(context.Context) (T, error)) (value T, err error) {
	f, err := l.join(ctx, background, revision, compute)
	if err != nil {
		return value, err
	}
	defer l.leave(f)
	select {
	case <-f.done:
		if f.err != nil && background.IsClosed() {
			return value, store.ErrClosed
		}
		return f.value, f.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// join returns the computation for a revision, and starts it if there is none. It belongs to the
// principal of the call that starts it, but does not end with that call: it serves others too.
func (l *latest[T]) join(call context.Context, background *background.Group, revision int64, compute func(context.Context) (T, error)) (*flight[T], error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flight != nil && l.flight.revision == revision {
		l.flight.waiting++
		return l.flight, nil
	}
	f := &flight[T]{revision: revision, waiting: 1, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithoutCancel(call))
	context.AfterFunc(background.Context(), cancel) //nolint:contextcheck // the end of the server
	f.cancel = cancel
	started := background.Go(func() {
		defer close(f.done)
		defer cancel()
		defer func() {
			if p := recover(); p != nil {
				f.err = failure.Recovered(p)
			}
		}()
		f.value, f.err = compute(ctx)
	})
	if !started {
		cancel()
		return nil, store.ErrClosed
	}
	if l.flight == nil || l.flight.revision < revision {
		l.flight = f
	}
	return f, nil
}

// leave removes a waiting caller. The last one cancels a computation that is not done.
func (l *latest[T]) leave(f *flight[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.waiting--; f.waiting > 0 {
		return
	}
	select {
	case <-f.done:
	default:
		f.cancel()
		if l.flight == f {
			l.flight = nil
		}
	}
}

// Kept returns what compute returns for results, computed once for each revision of the study. Each
// kind of results that is kept needs its own type T. All callers share the result and must not
// modify it.
func Kept[T any](ctx context.Context, r *Results, compute func(context.Context) (*T, error)) (*T, error) {
	l := study.Derived(r.cached, func() *latest[*T] { return new(latest[*T]) })
	return l.get(ctx, r.fronts.background, r.Study.GetRevision(), compute)
}
