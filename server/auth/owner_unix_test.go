//go:build unix

package auth

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// Whoever changes the file, the server that owns it can still read it.
func TestChangeKeepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	path := filepath.Join(t.TempDir(), "auth.yaml")
	add := func() {
		t.Helper()
		c, _, err := NewToken(Credential{Name: "ann", Role: Admin})
		require.NoError(t, err)
		require.NoError(t, Change(path, func(all []*Credential) ([]*Credential, error) { return append(all, c), nil }))
	}
	add()
	require.NoError(t, os.Chown(path, 4321, 1234))
	require.NoError(t, os.Chmod(path, 0o640))
	add()
	info, err := os.Stat(path)
	require.NoError(t, err)
	owner := info.Sys().(*syscall.Stat_t)
	if owner.Uid != 4321 || owner.Gid != 1234 || info.Mode().Perm() != 0o640 {
		t.Errorf("user %d, group %d, mode %#o", owner.Uid, owner.Gid, info.Mode().Perm())
	}
}
