package fault

import (
	"context"

	"github.com/dpareto/dpareto/server/store"
)

// Outcome is what becomes of an Update.
type Outcome int

const (
	// Commit lets it be.
	Commit Outcome = iota
	// Refuse fails it before its function is called: there is no room, or no writing at all.
	Refuse
	// Lose calls its function and fails its commit: nothing is written.
	Lose
	// Hide commits it and says that it failed: an error of the sync after the last write.
	Hide
)

// Plan decides about an Update. The error is that of an Update that does not commit. A plan
// may take its time, which the Update then takes, too.
type Plan func() (Outcome, error)

// KV is a store.KV that fails as planned.
type KV struct {
	store.KV
	plan Plan
}

var _ store.KV = (*KV)(nil)

// New returns a KV around another. plan is called for every Update, by several goroutines.
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
