//go:build unix && !solaris && !aix

package bolt

import (
	"errors"
	"os"
	"syscall"
)

// release closes a file that bbolt has panicked on. The mapping that bbolt leaves behind
// keeps the lock, so that it has to be given up first.
func release(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}
