package store

import (
	"context"
	"errors"
)

// UpdateObserver is called before every Update. The function it returns is called afterwards, with
// the error of the Update; failed is true if the store, not the caller, is at fault.
type UpdateObserver func(ctx context.Context) (context.Context, func(err error, failed bool))

// Observe sets the observer of all Updates. Call it before the first use.
func (s *Store) Observe(o UpdateObserver) { s.observer = o }

// observed runs an Update and reports it to the observer.
func (s *Store) observed(ctx context.Context, scopes Scopes, fn func(ReadWriter) error) error {
	if s.observer == nil {
		return s.kv.Update(ctx, scopes, fn)
	}
	ctx, end := s.observer(ctx)
	var refused error // by fn
	err := s.kv.Update(ctx, scopes, func(w ReadWriter) error {
		refused = fn(w)
		return refused
	})
	cancelled := ctx.Err() != nil && errors.Is(err, ctx.Err())
	end(err, err != nil && refused == nil && !cancelled && !errors.Is(err, ErrClosed))
	return err
}

// AfterCommit calls fn once the transaction's writes are durable, and never if they are not.
func (t *Tx) AfterCommit(fn func()) { t.after = append(t.after, fn) }
