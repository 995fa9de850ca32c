package fault

import (
	"context"

	"github.com/dpareto/dpareto/server/store"
)

// FileKV is a store.KV in files.
type FileKV interface {
	store.KV
	store.Files
}

// Twice returns a KV around another that calls the function of every Update twice, and throws
// away what the first call wrote: every KV may do that, and functions must be able to bear it.
func Twice(kv FileKV) FileKV { return twice{kv} }

type twice struct{ FileKV }

// Update implements store.KV.
func (t twice) Update(ctx context.Context, scopes store.Scopes, fn func(store.ReadWriter) error) error {
	return t.FileKV.Update(ctx, scopes, func(w store.ReadWriter) error {
		if err := fn(store.NewOverlay(w)); err != nil {
			return err
		}
		return fn(w)
	})
}
