package bolt

import (
	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// dropPages takes the pages of the file that were read out of the memory that is counted as
// the process's. They stay in the system's cache; Linux maps sixteen of them or more for
// every one that is read, so that a large store would seem to take all of its size. The file
// must not be mapped anew meanwhile: only the writer, outside of transactions, may call it.
func dropPages(db *bbolt.DB, size int64) {
	// It is advice: where it is not taken, nothing is lost.
	//nolint:dogsled // that is what the call returns
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, db.Info().Data, uintptr(size), unix.MADV_DONTNEED)
}
