package bolt

import (
	"bytes"
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

// reader reads a bbolt bucket. bbolt panics where a page is not what it should be; that
// becomes an error here.
type reader struct{ bucket *bbolt.Bucket }

// newReader returns a reader of a transaction.
func newReader(tx *bbolt.Tx) (r reader, err error) {
	defer catchPanic(&err)
	if r.bucket = tx.Bucket(root); r.bucket == nil {
		err = errNoBucket
	}
	return r, err
}

func (r reader) Get(key string) (value []byte, err error) {
	defer catchPanic(&err)
	return r.bucket.Get([]byte(key)), nil
}

func (r reader) Scan(prefix, from string, fn func(string, []byte) (bool, error)) error {
	start, p := []byte(max(prefix, from)), []byte(prefix)
	cursor := r.bucket.Cursor()
	key, value, err := move(func() ([]byte, []byte) { return cursor.Seek(start) })
	for err == nil && key != nil && bytes.HasPrefix(key, p) {
		if more, err := fn(string(key), value); !more || err != nil {
			return err
		}
		key, value, err = move(cursor.Next)
	}
	return err
}

// errNoBucket is the error of a file of bbolt that is not a store.
var errNoBucket = fmt.Errorf("%w: it holds no bucket %q", store.ErrCorrupt, root)

// move moves a cursor.
func move(cursor func() (key, value []byte)) (key, value []byte, err error) {
	defer catchPanic(&err)
	key, value = cursor()
	return key, value, nil
}

// catchPanic is deferred around calls of bbolt alone, whose every panic says that the file
// is damaged.
func catchPanic(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", store.ErrCorrupt, r)
	}
}

// catchFault makes a fault of the memory that the file is mapped to an error, until the
// function that it returns is called, which must be deferred. Other panics go on.
func catchFault(path string, err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if r := recover(); r != nil {
			cause := faultOf(r)
			if cause == nil {
				panic(r)
			}
			*err = fmt.Errorf("%s: %w", path, cause)
		}
	}
}

// faultOf returns the error of a panic that was a fault of mapped memory: the file is shorter
// than its pages say, or its device cannot be read. It returns nil for other panics, also
// those of nil pointers.
func faultOf(r any) error {
	if _, ok := r.(interface {
		error
		Addr() uintptr
	}); ok { // its text speaks of nil pointers
		return fmt.Errorf("%w: a page cannot be read: it is beyond the end of the file, or the device fails", store.ErrCorrupt)
	}
	return nil
}
