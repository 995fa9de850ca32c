package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

// The buckets of a file: the records, what they add up to, and what a commit says of itself.
// Each has pages of its own. Prefixes of keys take the place of further buckets.
var (
	recordsBucket = []byte("records")
	totalsBucket  = []byte("totals")
	commitBucket  = []byte("commit")
)

// formerBucket is the bucket of all keys of formats before 6.
var formerBucket = []byte("dpareto")

// The keys of commitBucket: the number of the transaction that wrote it, and of the last one
// that ended a clean stop but for one.
var (
	transactionKey = []byte("transaction")
	stoppedKey     = []byte("stopped")
)

// errNoBucket is the error of a file of bbolt that is not a store.
var errNoBucket = fmt.Errorf("%w: it holds no bucket %q", store.ErrCorrupt, recordsBucket)

// reader implements store.Reader over a bbolt transaction.
type reader struct{ records, totals *bbolt.Bucket }

// newReader returns a reader of a transaction, or an error that matches store.ErrCorrupt if its
// pages are not those of its own commit.
func newReader(tx *bbolt.Tx) (r reader, err error) {
	defer catchPanic(&err)
	if _, err := transactionOf(tx); err != nil {
		return reader{}, err
	}
	r = reader{tx.Bucket(recordsBucket), tx.Bucket(totalsBucket)}
	if r.records == nil || r.totals == nil {
		return reader{}, errNoBucket
	}
	return r, nil
}

// transactionOf returns the number of the transaction that wrote what tx sees. It is that of tx
// itself or, where the latest of bbolt's two first pages is damaged and the other one leads to
// the same content, the next one. Otherwise the page that leads to all others is an old one.
func transactionOf(tx *bbolt.Tx) (int, error) {
	commit := tx.Bucket(commitBucket)
	if commit == nil {
		return 0, errNoBucket
	}
	wrote := number(commit.Get(transactionKey))
	if id := tx.ID(); wrote != id && wrote != id+1 {
		return 0, fmt.Errorf("%w: transaction %d finds the pages of transaction %d", store.ErrCorrupt, id, wrote)
	}
	return wrote, nil
}

// inspect checks what every use of a file begins with. The notice tells of damage that has done
// no harm.
func inspect(db *bbolt.DB) (notice string, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer catchPanic(&err)
	err = db.View(func(tx *bbolt.Tx) error {
		if _, err := newReader(tx); err != nil {
			return err
		}
		wrote, err := transactionOf(tx)
		if wrote == tx.ID()+1 || number(tx.Bucket(commitBucket).Get(stoppedKey)) == tx.ID() {
			notice = "the latest of the two pages that a store begins with is damaged; the other one has the same content, nothing is lost"
		}
		return err
	})
	return notice, err
}

// stopped ends the use of a file: both of bbolt's first pages lead to the same content then, so
// that damage to the latest is noticed and loses nothing. On a full disk it does nothing.
func stopped(db *bbolt.DB) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer catchPanic(&err)
	for _, key := range [][]byte{stoppedKey, nil} {
		err := db.Update(func(tx *bbolt.Tx) error {
			w, err := newWriter(tx)
			if err == nil && key != nil {
				err = w.commit.Put(key, bytesOf(tx.ID()))
			}
			if err != nil {
				return err
			}
			return w.stamp()
		})
		if err != nil {
			if store.Unwritable(err).Full {
				return nil
			}
			return err
		}
	}
	return nil
}

func bytesOf(transaction int) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(transaction))
}

func number(b []byte) int {
	if len(b) != 8 {
		return -1
	}
	return int(binary.BigEndian.Uint64(b))
}

// bucket returns the bucket of the keys with a prefix.
func (r reader) bucket(prefix string) *bbolt.Bucket {
	if strings.HasPrefix(prefix, "\x00") {
		return r.totals
	}
	return r.records
}

// Get implements store.Reader.
func (r reader) Get(key string) (value []byte, err error) {
	defer catchPanic(&err)
	return r.bucket(key).Get([]byte(key)), nil
}

// Scan implements store.Reader.
func (r reader) Scan(prefix, from string, fn func(string, []byte) (bool, error)) error {
	cursor := r.bucket(prefix).Cursor()
	next := func() ([]byte, []byte) { return cursor.Seek([]byte(max(prefix, from))) }
	for last := ""; ; {
		key, value, err := move(next)
		if err != nil || key == nil || !strings.HasPrefix(string(key), prefix) {
			return err
		}
		if last != "" && string(key) <= last {
			return fmt.Errorf("%w: the key %q comes after %q", store.ErrCorrupt, key, last)
		}
		last = string(key)
		if more, err := fn(last, value); !more || err != nil {
			return err
		}
		next = cursor.Next
	}
}

// writer applies writes to a bbolt transaction.
type writer struct {
	reader
	commit *bbolt.Bucket
	id     int
}

func newWriter(tx *bbolt.Tx) (w writer, err error) {
	defer catchPanic(&err)
	for _, name := range [][]byte{recordsBucket, totalsBucket, commitBucket} {
		if tx.Bucket(name) == nil {
			return writer{}, errNoBucket
		}
	}
	w = writer{reader{tx.Bucket(recordsBucket), tx.Bucket(totalsBucket)}, tx.Bucket(commitBucket), tx.ID()}
	w.records.FillPercent = fillPercent
	return w, nil
}

// apply writes what an Update wrote. If it fails some of it is written.
func (w writer) apply(overlay *store.Overlay) (err error) {
	defer catchPanic(&err)
	return overlay.Apply(func(key string, value []byte) error {
		if value == nil {
			return w.bucket(key).Delete([]byte(key))
		}
		return w.bucket(key).Put([]byte(key), value)
	})
}

// stamp notes the number of the transaction that is about to be committed.
func (w writer) stamp() (err error) {
	defer catchPanic(&err)
	return w.commit.Put(transactionKey, bytesOf(w.id))
}

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
		if *err = faultOf(r); *err == nil {
			*err = fmt.Errorf("%w: %v", store.ErrCorrupt, r)
		}
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
	err, isError := r.(error)
	var fault interface{ Addr() uintptr }
	if isError && errors.As(err, &fault) { // its text speaks of nil pointers
		return fmt.Errorf("%w: a page cannot be read: it is beyond the end of the file, or the device fails", store.ErrCorrupt)
	}
	return nil
}
