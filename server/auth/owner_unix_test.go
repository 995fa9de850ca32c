//go:build unix

package auth

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
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
		if err != nil {
			t.Fatal(err)
		}
		if err := Change(path, func(all []*Credential) ([]*Credential, error) { return append(all, c), nil }); err != nil {
			t.Fatal(err)
		}
	}
	add()
	if err := os.Chown(path, 4321, 1234); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	add()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if owner.Uid != 4321 || owner.Gid != 1234 || info.Mode().Perm() != 0o640 {
		t.Errorf("user %d, group %d, mode %#o", owner.Uid, owner.Gid, info.Mode().Perm())
	}
}
