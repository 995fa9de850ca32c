package front

import (
	"context"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"google.golang.org/protobuf/proto"

	"github.com/dpareto/dpareto/server/background"
	"github.com/dpareto/dpareto/server/failure"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

// latest caches results computed from the latest requested revision of a study. Callers that ask for
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

// failed reports whether the computation has ended with an error. Another may succeed.
func (f *flight[T]) failed() bool {
	select {
	case <-f.done:
		return f.err != nil
	default:
		return false
	}
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
	if l.flight != nil && l.flight.revision == revision && !l.flight.failed() {
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
	if l.flight == nil || l.flight.revision < revision || l.flight.failed() {
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

// maxKept is how many requests of one kind have their results kept for a study.
const maxKept = 4

// kept caches the results of the latest requests of one kind to a study.
type kept[T any] struct {
	requests *lru.Cache[string, *latest[*T]]
}

func newKept[T any]() *kept[T] {
	requests, err := lru.New[string, *latest[*T]](maxKept)
	if err != nil {
		panic(err) // maxKept is positive
	}
	return &kept[T]{requests}
}

// of returns the results of a request. They replace the results of the least recently used request.
func (k *kept[T]) of(request string) *latest[*T] {
	added := new(latest[*T])
	if before, ok, _ := k.requests.PeekOrAdd(request, added); ok {
		k.requests.Get(request) // it is the most recently used one now
		return before
	}
	return added
}

// Kept returns what compute returns for a request about results, computed once for each revision of the
// study. The latest few requests are remembered, and each kind of results needs its own type T. All
// callers share the result and must not modify it.
func Kept[T any](ctx context.Context, r *Results, request proto.Message, compute func(context.Context) (*T, error)) (*T, error) {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		return nil, err
	}
	k := study.Derived(r.cached, newKept[T])
	return k.of(string(encoded)).get(ctx, r.fronts.background, r.Study.GetRevision(), compute)
}
