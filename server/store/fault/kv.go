package fault

import (
	"context"

	"github.com/dpareto/dpareto/server/store"
)

// Outcome is what happens to an Update.
type Outcome int

const (
	// Commit applies the Update.
	Commit Outcome = iota
	// Refuse fails the Update before its function is called, like a store that cannot be written.
	Refuse
	// Lose calls the function and fails the commit: nothing is written.
	Lose
	// Hide commits and then reports failure, like an error of the sync after the last write.
	Hide
)

// Plan decides the outcome of an Update, and its error unless the outcome is Commit. A slow plan
// makes a slow Update.
type Plan func() (Outcome, error)

// KV is a store.KV that fails as planned.
type KV struct {
	store.KV
	plan Plan
}

var _ store.KV = (*KV)(nil)

// New returns a KV around another. It calls plan for every Update, from several goroutines.
func New(kv store.KV, plan Plan) *KV { return &KV{kv, plan} }

// Update implements store.KV.
func (k *KV) Update(ctx context.Context, scopes store.Scopes, fn func(store.ReadWriter) error) error {
	outcome, failure := k.plan()
	switch outcome {
	case Refuse:
		return failure
	case Lose:
		return k.KV.Update(ctx, scopes, func(w store.ReadWriter) error {
			if err := fn(w); err != nil {
				return err
			}
			return failure
		})
	case Hide:
		if err := k.KV.Update(ctx, scopes, fn); err != nil {
			return err
		}
		return failure
	case Commit:
	}
	return k.KV.Update(ctx, scopes, fn)
}
