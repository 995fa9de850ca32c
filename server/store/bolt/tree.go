package bolt

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

// Buckets of a file: records, their totals, and commit metadata. Each has separate pages, unless it
// is so small that it fits into the root page. Key prefixes replace further buckets.
var (
	recordsBucket = []byte("records")
	totalsBucket  = []byte("totals")
	commitBucket  = []byte("commit")
)

// formerBucket held all keys in formats before 6.
var formerBucket = []byte("dpareto")

// Keys of commitBucket: the number of the transaction that wrote it, and the first of the two
// transactions that the last clean stop committed.
var (
	transactionKey = []byte("transaction")
	stoppedKey     = []byte("stopped")
)

// errNoBucket says that a bbolt file is not a store.
var errNoBucket = fmt.Errorf("%w: it holds no bucket %q", store.ErrCorrupt, recordsBucket)

// tree holds the buckets of a transaction. It implements store.Reader.
type tree struct {
	records, totals, commit *bbolt.Bucket
	id                      int // of the transaction
}

// treeOf returns the tree of a transaction.
func treeOf(tx *bbolt.Tx) (t tree, err error) {
	defer catchPanic(&err)
	t = tree{tx.Bucket(recordsBucket), tx.Bucket(totalsBucket), tx.Bucket(commitBucket), tx.ID()}
	if t.records == nil || t.totals == nil || t.commit == nil {
		return tree{}, errNoBucket
	}
	t.records.FillPercent = fillPercent
	return t, nil
}

// committed is treeOf for reading. The transaction number in the tree must be the transaction's own,
// otherwise the root page is stale. In a copy (see [DB.CopyTo]) the older meta page leads to the
// next transaction's content. It is used if the latest meta page is damaged.
func committed(tx *bbolt.Tx) (t tree, isCopy bool, err error) {
	t, err = treeOf(tx)
	if err != nil {
		return tree{}, false, err
	}
	defer catchPanic(&err)
	wrote := string(t.commit.Get(transactionKey))
	if isCopy = wrote == strconv.Itoa(t.id+1); !isCopy && wrote != strconv.Itoa(t.id) {
		return tree{}, false, fmt.Errorf("%w: transaction %d finds the pages of transaction %q", store.ErrCorrupt, t.id, wrote)
	}
	return t, isCopy, nil
}

// inspect makes the checks at the start of every use of a file. It returns the number of the last
// transaction, and a notice if it finds harmless damage.
func inspect(db *bbolt.DB) (last int, notice string, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer catchPanic(&err)
	err = db.View(func(tx *bbolt.Tx) error {
		t, isCopy, err := committed(tx)
		if last = t.id; err == nil && (isCopy || string(t.commit.Get(stoppedKey)) == strconv.Itoa(t.id)) {
			notice = "the latest of the two meta pages is damaged, or a stop was interrupted; the other page leads to the same content, so nothing is lost"
		}
		return err
	})
	return last, notice, err
}

// commitTwice commits twice without a change, so that both meta pages lead to the same content.
// Damage to the latest is then detected and loses nothing. On a full disk it does nothing.
func commitTwice(db *bbolt.DB) error {
	err := change(db, func(t tree) error { return t.commit.Put(stoppedKey, []byte(strconv.Itoa(t.id))) })
	if err == nil {
		err = change(db, func(tree) error { return nil })
	}
	if err != nil && store.Unwritable(err).Full {
		return nil
	}
	return err
}

// change calls fn in a write transaction.
func change(db *bbolt.DB, fn func(tree) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer catchPanic(&err)
	return db.Update(func(tx *bbolt.Tx) error {
		t, err := treeOf(tx)
		if err == nil {
			err = fn(t)
		}
		if err != nil {
			return err
		}
		return t.stamp()
	})
}

// bucket returns the bucket for keys with a prefix.
func (t tree) bucket(prefix string) *bbolt.Bucket {
	if strings.HasPrefix(prefix, "\x00") {
		return t.totals
	}
	return t.records
}

// Get implements store.Reader.
func (t tree) Get(key string) (value []byte, err error) {
	defer catchPanic(&err)
	return t.bucket(key).Get([]byte(key)), nil
}

// Scan implements store.Reader.
func (t tree) Scan(prefix, from string, fn func(string, []byte) (bool, error)) error {
	cursor := t.bucket(prefix).Cursor()
	next := func() ([]byte, []byte) { return cursor.Seek([]byte(max(prefix, from))) }
	for last := ""; ; {
		key, value, err := move(next)
		if err == nil && last == "" && key != nil && string(key) < max(prefix, from) {
			return fmt.Errorf("%w: the key %q is where %q should be", store.ErrCorrupt, key, max(prefix, from))
		}
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

// apply writes the writes of an Update. If it fails, some of them are written.
func (t tree) apply(overlay *store.Overlay) (err error) {
	defer catchPanic(&err)
	return overlay.Apply(func(key string, value []byte) error {
		if value == nil {
			return t.bucket(key).Delete([]byte(key))
		}
		return t.bucket(key).Put([]byte(key), value)
	})
}

// stamp writes the number of the transaction before it commits.
func (t tree) stamp() (err error) {
	defer catchPanic(&err)
	return t.commit.Put(transactionKey, []byte(strconv.Itoa(t.id)))
}

// move moves a cursor.
func move(cursor func() (key, value []byte)) (key, value []byte, err error) {
	defer catchPanic(&err)
	key, value = cursor()
	return key, value, nil
}

// catchPanic, deferred, turns a panic in bbolt into ErrCorrupt. Defer it only around calls of bbolt.
func catchPanic(err *error) {
	if r := recover(); r != nil {
		*err = panicked(r)
	}
}

// panicked returns the error for a panic in bbolt.
func panicked(r any) error {
	if err := faultOf(r); err != nil {
		return err
	}
	return fmt.Errorf("%w: %v", store.ErrCorrupt, r)
}

// catchFault turns faults in the file's mapping into errors until the returned function runs, which
// must be deferred. Other panics pass through.
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

// faultOf returns an error if a panic is a fault in mapped memory: the file is too short for its
// pages, or the device cannot be read. It returns nil for other panics, including nil dereferences.
func faultOf(r any) error {
	err, isError := r.(error)
	var fault interface{ Addr() uintptr }
	if isError && errors.As(err, &fault) { // its own text blames a nil pointer
		return fmt.Errorf("%w: a page cannot be read: it is beyond the end of the file, or the device fails", store.ErrCorrupt)
	}
	return nil
}
