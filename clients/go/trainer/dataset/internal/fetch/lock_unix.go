//go:build unix && !solaris && !aix

package fetch

import (
	"errors"
	"os"
	"syscall"
)

// lock locks a file, unless another process holds it. The file stays when it is released:
// to remove it could take it from a process that has just opened it.
func lock(path string) (release func(), free bool, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		_ = file.Close() // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, false, nil
		}
		return nil, false, err
	}
	return func() { _ = file.Close() }, true, nil
}
