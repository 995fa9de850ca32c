package bolt

import (
	"fmt"
	"runtime/debug"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

// reader reads a bbolt bucket beneath tables that hide what it has. bbolt panics where a page
// is not what it should be; that becomes an error here.
type reader struct {
	bucket *bbolt.Bucket
	layers []*table // newest first
}

// newReader returns a reader of a transaction beneath layers.
func newReader(tx *bbolt.Tx, layers []*table) (r reader, err error) {
	defer catchPanic(&err)
	r.layers = layers
	if r.bucket = tx.Bucket(root); r.bucket == nil {
		err = errNoBucket
	}
	return r, err
}

func (r reader) Get(key string) (value []byte, err error) {
	for _, t := range r.layers {
		if value, ok := t.writes.Get(key); ok {
			return value, nil
		}
	}
	defer catchPanic(&err)
	return r.bucket.Get([]byte(key)), nil
}

// source is where a scan takes keys from. After the last one ok is false.
type source struct {
	key   string
	value []byte // nil marks a deletion
	ok    bool
	next  func(*source) error
}

func (r reader) Scan(prefix, from string, fn func(string, []byte) (bool, error)) error {
	start := max(prefix, from)
	sources := make([]source, 0, 3)
	for _, t := range r.layers {
		entries, seeked := t.writes.Iter(), false
		sources = append(sources, source{next: func(s *source) error {
			if s.ok = seeked && entries.Next() || !seeked && entries.Seek(start); s.ok {
				s.key, s.value = entries.Key(), entries.Value()
			}
			seeked = true
			return nil
		}})
	}
	cursor, seeked := r.bucket.Cursor(), false
	sources = append(sources, source{next: func(s *source) error {
		key, value, err := move(func() ([]byte, []byte) {
			if seeked {
				return cursor.Next()
			}
			return cursor.Seek([]byte(start))
		})
		s.key, s.value, s.ok, seeked = string(key), value, key != nil, true
		if s.value == nil {
			s.value = []byte{} // in its place is no mark of a deletion
		}
		return err
	}})
	for i := range sources {
		if err := sources[i].next(&sources[i]); err != nil {
			return err
		}
	}
	for {
		least := -1 // the newest of those with the least key
		for i, s := range sources {
			if s.ok && (least < 0 || s.key < sources[least].key) {
				least = i
			}
		}
		if least < 0 || !strings.HasPrefix(sources[least].key, prefix) {
			return nil
		}
		key, value := sources[least].key, sources[least].value
		if value != nil {
			if more, err := fn(key, value); !more || err != nil {
				return err
			}
		}
		for i := range sources {
			if s := &sources[i]; s.ok && s.key == key {
				if err := s.next(s); err != nil {
					return err
				}
			}
		}
	}
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
