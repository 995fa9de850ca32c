package fault

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// The writes of the first call are thrown away, and an error of it fails the Update.
func TestTwice(t *testing.T) {
	db, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"))
	require.NoError(t, err)
	kv := Twice(db)
	calls := 0
	err = kv.Update(t.Context(), nil, func(w store.ReadWriter) error {
		before, err := w.Get("a")
		if before != nil {
			t.Error("the writes of the first call are seen")
		}
		calls++
		w.Put("a", []byte{byte(calls)})
		return err
	})
	if err != nil || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
	refused := errors.New("refused")
	if err := kv.Update(t.Context(), nil, func(store.ReadWriter) error { calls++; return refused }); !errors.Is(err, refused) || calls != 3 {
		t.Errorf("%d calls, %v", calls, err)
	}
	err = kv.View(t.Context(), func(r store.Reader) error {
		if value, err := r.Get("a"); err != nil || string(value) != "\x02" {
			t.Errorf("written %q, %v", value, err)
		}
		return nil
	})
	if err := errors.Join(err, kv.Close()); err != nil {
		t.Error(err)
	}
}
