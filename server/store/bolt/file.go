package bolt

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/dpareto/dpareto/server/store"
)

const (
	// lockTimeout is how long Open waits for another process to let go of the file.
	lockTimeout = time.Second
	// mapSize is the address space that is mapped at first. bbolt waits for all readers,
	// also for a backup, before it maps a file that has outgrown its mapping. A large
	// mapping costs nothing where addresses have 64 bits: 64 GB there, else 1 GB.
	mapSize = 1 << (30 + 6*(^uint(0)>>63))
	// advice is what to do about a damaged file.
	advice = "restore it from a backup (dpareto restore), or keep what is whole of it (dpareto restore --salvage)"
)

// openFile opens a file with bbolt. Whatever is wrong with it becomes an error that names
// the file.
func openFile(path string, readOnly bool) (db *bbolt.DB, file *os.File, err error) {
	defer func() {
		if r := recover(); r != nil { // bbolt asserts what a page must be
			if err = faultOf(r); err == nil {
				err = fmt.Errorf("%w: %v", store.ErrCorrupt, r)
			}
			if file != nil {
				_ = release(file) // which bbolt has not done
			}
		}
		if err != nil {
			db, file, err = nil, nil, openError(path, err)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         lockTimeout,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mapSize,
		ReadOnly:        readOnly,
		PreLoadFreelist: true, // here, where a panic or a fault is an error
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			opened, err := os.OpenFile(name, flag, mode)
			file = opened
			return opened, err
		},
	})
	if err != nil {
		return nil, nil, tooSmall(path, err)
	}
	if err := complete(db, file); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	if err := createBuckets(db, readOnly); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, file, nil
}

// createBuckets creates the buckets of a new file, and refuses one of an earlier format.
func createBuckets(db *bbolt.DB, readOnly bool) error {
	isNew := false
	err := db.View(func(tx *bbolt.Tx) error {
		if tx.Bucket(formerBucket) != nil {
			return store.FormatError("an earlier format")
		}
		name, _ := tx.Cursor().First()
		isNew = name == nil
		return nil
	})
	if err != nil || !isNew || readOnly {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		for _, bucket := range [][]byte{recordsBucket, totalsBucket, commitBucket} {
			if _, err := tx.CreateBucket(bucket); err != nil {
				return err
			}
		}
		t, err := treeOf(tx)
		if err != nil {
			return err
		}
		return t.stamp()
	})
}

// tooSmall says of a file that has not even its first pages that it is damaged: bbolt has no
// error for that, and tries to write them to a file that it opened for reading.
func tooSmall(path string, err error) error {
	info, statErr := os.Stat(path)
	if statErr != nil || info.Size() > 0 && !strings.Contains(err.Error(), "file size too small") || info.Size() == 0 && !errors.Is(err, syscall.EBADF) {
		return err
	}
	return fmt.Errorf("%w: it has %d bytes", store.ErrCorrupt, info.Size())
}

// complete checks that no page is beyond the end of the file: a copy that broke off, or a
// file system that lost its tail.
func complete(db *bbolt.DB, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return db.View(func(tx *bbolt.Tx) error {
		if info.Size() < tx.Size() {
			return fmt.Errorf("%w: it has %d bytes instead of %d", store.ErrCorrupt, info.Size(), tx.Size())
		}
		return nil
	})
}

// openError names the file and says what to do.
func openError(path string, err error) error {
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return fmt.Errorf("open %s: %w", path, store.ErrLocked)
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrChecksum), errors.Is(err, bbolterrors.ErrVersionMismatch):
		return fmt.Errorf("open %s: %w, or no store at all (%w); %s", path, store.ErrCorrupt, err, advice)
	case errors.Is(err, store.ErrCorrupt):
		return fmt.Errorf("open %s: %w; %s", path, err, advice)
	default:
		if _, isPath := errors.AsType[*os.PathError](err); isPath {
			return err // it names the file
		}
		return fmt.Errorf("open %s: %w", path, err)
	}
}
