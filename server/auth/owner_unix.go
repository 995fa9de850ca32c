//go:build unix

package auth

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner and the group of the one that it will replace. If root
// took over the file, the server could not read it any more, and those who were just
// revoked would stay.
func keepOwner(next *os.File, before fs.FileInfo) error {
	made, err := next.Stat()
	if err != nil {
		return err
	}
	old, ok := before.Sys().(*syscall.Stat_t)
	now, same := made.Sys().(*syscall.Stat_t)
	if !ok || !same || old.Uid == now.Uid && old.Gid == now.Gid {
		return nil
	}
	if err := next.Chown(int(old.Uid), int(old.Gid)); err != nil {
		return fmt.Errorf("%s belongs to user %d and group %d, change it as that user: %w", before.Name(), old.Uid, old.Gid, err)
	}
	return nil
}
