package background

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
)

// Group runs work that outlives the call that asks for it, and ends it when the server is
// closed. It is safe for concurrent use.
type Group struct {
	ctx    context.Context //nolint:containedctx // the lifetime of the server
	cancel context.CancelFunc
	logger *slog.Logger

	mu      sync.Mutex // nothing starts once Close has begun
	running sync.WaitGroup
}

// New returns a group whose contexts derive from ctx. Panics go to logger.
func New(ctx context.Context, logger *slog.Logger) *Group {
	g := &Group{logger: logger}
	g.ctx, g.cancel = context.WithCancel(ctx)
	return g
}

// Context returns the context of the work, which ends when Close is called.
func (g *Group) Context() context.Context { return g.ctx }

// IsClosed reports whether Close has been called.
func (g *Group) IsClosed() bool { return g.ctx.Err() != nil }

// Go runs fn in a goroutine that Close waits for. It returns false, and does nothing, once
// Close has been called.
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

// Close ends the context of the work, and waits until all of it has ended.
func (g *Group) Close() {
	g.mu.Lock()
	g.cancel()
	g.mu.Unlock()
	g.running.Wait()
}
