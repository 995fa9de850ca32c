package bolt

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/dpareto/dpareto/server/store"
)

const (
	// lockTimeout is how long Open waits for another process to release the file.
	lockTimeout = time.Second
	// minSize is the size of two pages of the smallest size.
	minSize = 2 * 1024
	// onWindows is set where open files cannot be removed, and folders not be synced.
	onWindows = runtime.GOOS == "windows"
	// advice says what to do about a damaged file.
	advice = "restore it from a backup (dpareto restore), or salvage the undamaged records (dpareto restore --salvage)"
)

// mapSize returns the initial size of the memory mapping in bytes: 64 GB with 64-bit addresses, where
// that is free, otherwise 1 GB. When a file outgrows its mapping, bbolt waits for all readers,
// including backups, before it maps the file again. On Windows bbolt makes the file as long as its
// mapping: there the mapping grows with the file.
func mapSize() int {
	if onWindows {
		return 0
	}
	return 1 << (30 + 6*(^uint(0)>>63))
}

// Ways to open a file.
var (
	toWrite = bbolt.Options{PreLoadFreelist: true} // in openFile, which turns panics and faults into errors
	toRead  = bbolt.Options{ReadOnly: true, PreLoadFreelist: true}
	// toSalvage does not need the list of free pages, which may be damaged.
	toSalvage = bbolt.Options{ReadOnly: true}
)

// openFile opens a file with bbolt. Any problem becomes an error that names the file. After a panic
// in bbolt the process keeps the file open and locked.
func openFile(path string, how bbolt.Options) (db *bbolt.DB, err error) {
	defer func() {
		if err != nil {
			db, err = nil, openError(path, err)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer catchPanic(&err)
	if info, err := os.Stat(path); err == nil && info.Size() < minSize && (how.ReadOnly || info.Size() > 0) {
		return nil, fmt.Errorf("%w: it has %d bytes", store.ErrCorrupt, info.Size()) // bbolt would initialise it
	}
	var file *os.File
	how.Timeout, how.FreelistType, how.InitialMmapSize = lockTimeout, bbolt.FreelistMapType, mapSize()
	how.OpenFile = func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
		file, err = os.OpenFile(name, flag, mode)
		return file, err
	}
	if db, err = bbolt.Open(path, 0o600, &how); err != nil {
		return nil, err
	}
	if err = inPlace(path, file); err == nil {
		err = prepare(db, how.ReadOnly)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// inPlace returns store.ErrLocked if the process that held the lock has replaced the file meanwhile.
func inPlace(path string, file *os.File) error {
	locked, err := file.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Stat(path); err != nil || !os.SameFile(locked, there) {
		return store.ErrLocked
	}
	return nil
}

// prepare creates the buckets of a new file. It refuses files of an earlier format, and truncated
// files.
func prepare(db *bbolt.DB, readOnly bool) error {
	isNew := false
	err := db.View(func(tx *bbolt.Tx) error {
		if info, err := os.Stat(db.Path()); err != nil || info.Size() < tx.Size() {
			return errors.Join(err, fmt.Errorf("%w: it is shorter than its %d bytes", store.ErrCorrupt, tx.Size()))
		}
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

// openError adds the file name and advice to an error.
func openError(path string, err error) error {
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout), errors.Is(err, store.ErrLocked):
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
