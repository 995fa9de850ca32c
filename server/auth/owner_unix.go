//go:build unix

package auth

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a new file the owner and group of the file that it will replace. If root became
// the owner, the server could not read the file, and revoked credentials would stay valid.
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
