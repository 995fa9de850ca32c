package surrogate

import (
	"context"
	"runtime"
)

// Workers says how what can run in parallel is run. It changes how long that takes and
// never what comes out.
type Workers struct {
	// Max is the largest number of goroutines at once, at least 1.
	Max int
	// Run calls fn and returns when fn has returned. It may do so anywhere, for example on
	// a thread of low priority. fn does not panic.
	Run func(fn func())
}

// workersKey is the key of the value that WithWorkers sets.
type workersKey struct{}

// WithWorkers returns a context under which [Fit], and whatever else asks [WorkersOf],
// uses workers.
func WithWorkers(ctx context.Context, w Workers) context.Context {
	if w.Max < 1 || w.Run == nil {
		panic("surrogate: workers without a number or a function")
	}
	return context.WithValue(ctx, workersKey{}, w)
}

// WorkersOf returns the workers of a context. Default: GOMAXPROCS goroutines, nothing
// special.
func WorkersOf(ctx context.Context) Workers {
	if w, ok := ctx.Value(workersKey{}).(Workers); ok {
		return w
	}
	return Workers{Max: runtime.GOMAXPROCS(0), Run: func(fn func()) { fn() }}
}
