package background

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
)

// Group runs work that outlives the call that started it, until the server closes. It is safe for
// concurrent use.
type Group struct {
	ctx    context.Context //nolint:containedctx // the lifetime of the server
	cancel context.CancelFunc
	logger *slog.Logger

	mu      sync.Mutex // nothing starts once Close has begun
	running sync.WaitGroup
}

// New returns a group. Panics go to logger.
func New(logger *slog.Logger) *Group {
	g := &Group{logger: logger}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Context returns the context of the work, which ends at Close.
func (g *Group) Context() context.Context { return g.ctx }

// IsClosed reports whether Close has been called.
func (g *Group) IsClosed() bool { return g.ctx.Err() != nil }

// Go runs fn in a goroutine that Close waits for. After Close it does nothing and returns false.
func (g *Group) Go(fn func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.IsClosed() {
		return false
	}
	g.running.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				g.logger.ErrorContext(g.ctx, "panic in the background", "panic", r, "stack", string(debug.Stack()))
			}
		}()
		fn()
	})
	return true
}

// Close ends the context of the work and waits for all of it.
func (g *Group) Close() {
	g.mu.Lock()
	g.cancel()
	g.mu.Unlock()
	g.running.Wait()
}
