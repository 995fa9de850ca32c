package local_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/local"
	"github.com/dpareto/dpareto/internal/require"
)

// A store that cannot be opened is an error, and what was opened before is closed again.
func TestServeFails(t *testing.T) {
	folder := t.TempDir()
	held := filepath.Join(folder, "held.db")
	_, stop, err := local.Serve(t.Context(), held, nil)
	require.NoError(t, err)
	for name, path := range map[string]string{
		"folder missing": filepath.Join(folder, "missing", "store.db"),
		"in use already": held,
	} {
		if _, _, err := local.Serve(t.Context(), path, nil); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want an error that is not about data", name, err)
		}
	}
	require.NoError(t, stop())
	_, again, err := local.Serve(t.Context(), held, nil)
	if err != nil {
		t.Fatalf("after the store was closed: %v", err)
	}
	require.NoError(t, again())
}
