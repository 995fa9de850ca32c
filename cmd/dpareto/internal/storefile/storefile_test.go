package storefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// Without --store the store is in the user's configuration folder.
func TestDefaultStore(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", folder)
	t.Setenv("HOME", folder)
	path, err := Path("")
	if err != nil || !strings.HasPrefix(path, folder) || filepath.Base(path) != "dpareto.db" {
		t.Fatalf("%q: %v", path, err)
	}
	require.NoError(t, MakeFolder(path))
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder of the store: %v, %v", info, err)
	}
}
