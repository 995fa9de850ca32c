package bolt

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/dpareto/dpareto/server/store"
)

// advice is what to do about a damaged file, and rescue what else if Salvage can help.
const (
	advice = "restore it from a backup (dpareto restore)"
	rescue = "dpareto restore --salvage keeps what was written before the damage"
)

// openFile opens a file with bbolt. Whatever is wrong with it becomes an error that names
// the file.
func openFile(path string, readOnly bool) (db *bbolt.DB, file *os.File, err error) {
	defer func() {
		if r := recover(); r != nil { // bbolt asserts what a page must be
			if err = faultOf(r); err == nil {
				err = fmt.Errorf("%w: %v", store.ErrCorrupt, r)
			}
		}
		if err != nil {
			if file != nil {
				_ = release(file) // where bbolt has not done so
			}
			db, file, err = nil, nil, openError(path, err)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if !readOnly {
		if err := checkFree(path); err != nil {
			return nil, nil, err
		}
	}
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         lockTimeout,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mapSize,
		ReadOnly:        readOnly, // then the list of free pages is not read
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			opened, err := os.OpenFile(name, flag, mode)
			file = opened
			return opened, err
		},
	})
	if err != nil {
		return nil, file, tooSmall(path, err)
	}
	if err := complete(db, file); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	if readOnly {
		return db, file, nil
	}
	if err := createBuckets(db); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, file, nil
}

// errFree tells that the list of free pages is damaged, of which nothing else is made.
var errFree = errors.New("the list of free pages is damaged")

// checkFree checks the list of free pages of a file, if there is one at path: bbolt would take
// as much memory for it as it says that it has entries.
func checkFree(path string) error {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil //nolint:nilerr // what else is wrong shows when it is opened
	}
	db, file, err := openFile(path, true)
	if err != nil {
		return err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		p, err := newPages(tx, file)
		if err != nil {
			return err
		}
		if p.free == noFreePages { // bbolt makes the list from all others
			_, err = p.check()
		} else {
			_, err = p.freePages()
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", errFree, err)
		}
		return err
	})
	return errors.Join(err, db.Close())
}

// createBuckets creates the buckets that a new file has not, nor the second one of them
// a file of a program that knew no journal.
func createBuckets(db *bbolt.DB) error {
	complete := false
	err := db.View(func(tx *bbolt.Tx) error {
		complete = tx.Bucket(root) != nil && tx.Bucket(journalBucket) != nil
		return nil
	})
	if complete || err != nil {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		for _, bucket := range [][]byte{root, journalBucket} {
			if _, err := tx.CreateBucketIfNotExists(bucket); err != nil {
				return err
			}
		}
		return nil
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
	case errors.Is(err, errJournal), errors.Is(err, errFree):
		return fmt.Errorf("open %s: %w; %s; if there is none that is recent, %s", path, err, advice, rescue)
	case errors.Is(err, store.ErrCorrupt):
		return fmt.Errorf("open %s: %w; %s", path, err, advice)
	default:
		if _, isPath := errors.AsType[*os.PathError](err); isPath {
			return err // it names the file
		}
		return fmt.Errorf("open %s: %w", path, err)
	}
}
