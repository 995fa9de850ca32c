package fault

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// What each outcome leaves behind, and says.
func TestOutcomes(t *testing.T) {
	db, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"))
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	failure, refusal := errors.New("planned"), errors.New("its own")
	for _, tt := range []struct {
		outcome         Outcome
		called, written bool
		err             error
	}{
		{Commit, true, true, nil},
		{Refuse, false, false, failure},
		{Lose, true, false, failure},
		{Hide, true, true, failure},
	} {
		kv := New(db, func() (Outcome, error) { return tt.outcome, failure })
		key, called := string(rune('a'+tt.outcome)), false
		err := kv.Update(t.Context(), nil, func(w store.ReadWriter) error {
			called = true
			w.Put(key, []byte("x"))
			return nil
		})
		written := false
		require.NoError(t, kv.View(context.Background(), func(r store.Reader) error {
			value, err := r.Get(key)
			written = value != nil
			return err
		}))
		if !errors.Is(err, tt.err) || called != tt.called || written != tt.written {
			t.Errorf("outcome %d: error %v, called %v, written %v", tt.outcome, err, called, written)
		}
		err = kv.Update(t.Context(), nil, func(store.ReadWriter) error { return refusal })
		if tt.outcome != Refuse && !errors.Is(err, refusal) {
			t.Errorf("outcome %d: error %v instead of the function's own", tt.outcome, err)
		}
	}
}

func TestGarble(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	clean := make([]byte, 10*pageSize)
	read := func(seed uint64) string {
		require.NoError(t, os.WriteFile(path, clean, 0o600))
		require.NoError(t, Garble(path, seed, 2))
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(content)
	}
	first := read(1)
	if len(first) != len(clean) || first == string(clean) || first != read(1) || first == read(2) {
		t.Error("the damage is none, not that of the seed, or of the wrong length")
	}
	if err := Garble(filepath.Join(t.TempDir(), "none"), 1, 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}
