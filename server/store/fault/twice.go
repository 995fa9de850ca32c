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

// Twice returns a KV that calls the function of every Update twice and drops the writes of the first
// call. Every KV may do that, so functions must cope.
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
