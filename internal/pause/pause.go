// Package pause lets long computations make room for others. A program that shares its processors
// among computations puts a pause into the context of each; the loops of the libraries call [Check]
// every few milliseconds. Without a pause, Check only asks the context.
package pause

import "context"

// key is the context key of a pause.
type key struct{}

// With returns a context whose computations call pause at every [Check]. pause may block while
// others compute. It returns the error with which the computation ends, nil to go on. Several
// goroutines may call it at once.
func With(ctx context.Context, pause func(context.Context) error) context.Context {
	return context.WithValue(ctx, key{}, pause)
}

// Check lets others compute, if somebody waits, and returns the context's error. The caller must
// hold no lock that another computation may wait for.
func Check(ctx context.Context) error {
	if pause, ok := ctx.Value(key{}).(func(context.Context) error); ok {
		return pause(ctx)
	}
	return ctx.Err()
}
