package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/tidwall/btree"
	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

var (
	// journalBucket holds, by their number, the records of the commits whose writes are not
	// in their places yet. Each is in a bucket of its own: of a bucket's last values bbolt
	// writes up to four again when one is added.
	journalBucket = []byte("journal")
	// recordKey and timeKey are the keys of such a bucket. The time, in nanoseconds since
	// 1970, serves only to tell people what was lost.
	recordKey, timeKey = []byte("writes"), []byte("time")
)

const (
	// generation is how many bytes of writes a table takes before they are moved to their
	// places: enough for many of them to share a page there, and little enough for memory,
	// for opening a file, and for the list of free pages, which every commit writes.
	generation = 8 << 20
	// moveFactor is how many bytes are moved for every one that comes: a table must be
	// empty before the next one is full.
	moveFactor = 2
	// maxRecords is how many generations the records of a table may take, more than the table
	// where keys are written again and again; maxJournal is that of a journal, from which on
	// all of it is moved at once. Only a program that is started again and again, before a
	// table is empty, gets there.
	maxRecords, maxJournal = 4, 6
	// largePart is the part of a generation, one in so many, from which on a commit gains
	// nothing from the journal.
	largePart = 8
	// degree of the trees of tables, half the number of entries of a node: what a commit
	// changes is copied by the node.
	degree = 8
	// entrySize is about what an entry of a table takes besides its key and value.
	entrySize = 64
	// recordSize is what a record counts for besides its writes: it takes at least a page, and
	// thousands of small ones are removed in one commit.
	recordSize = 4 << 10
)

// overlaid is what the journal of a file says, in memory: the writes that hide those in
// their places. A published one never changes.
type overlaid struct {
	// transaction is the id of the transaction of bbolt over whose pages this lies, and proof
	// that of another one with the same content, or 0: the next one if all it does is to show
	// that the file can be written, or the one before of a copy (see hide).
	transaction, proof int
	// young takes the writes of new commits. old, if there is one, is being moved: keys
	// below moved are in their places. What young has hides what old has.
	young, old *table
	moved      string
	// first and last are the numbers of the first and the last record of the journal, frozen
	// that of the last one of which something can be in its place: the last one of old, or of
	// what it was before the file was opened. There is none where first is above last.
	first, frozen, last uint64
}

// table is a sorted map of writes; a nil value marks a deletion.
type table struct {
	writes *btree.Map[string, []byte]
	bytes  int
	// recorded is about how many bytes the records of the table have.
	recorded int
}

func newTable() *table { return &table{writes: btree.NewMap[string, []byte](degree)} }

// set sets the value of a key.
func (t *table) set(key string, value []byte) {
	before, replaced := t.writes.Set(key, value)
	t.bytes += len(value)
	if replaced {
		t.bytes -= len(before)
	} else {
		t.bytes += len(key) + entrySize
	}
}

// replay sets the value of a key that a record has.
func (t *table) replay(key string, value []byte) {
	t.set(key, value)
	t.recorded += len(key) + len(value) + entrySize
}

// drop takes out the entry of a key.
func (t *table) drop(key string) {
	if before, ok := t.writes.Delete(key); ok {
		t.bytes -= len(key) + len(before) + entrySize
	}
}

// next returns a copy for the commit of a transaction, which shares what does not change.
// Of what readers look at it changes nothing, also not in o.
func (o *overlaid) next(transaction int) *overlaid {
	next := *o
	next.transaction, next.proof = transaction, 0
	young := *o.young
	young.writes = o.young.writes.Copy()
	next.young = &young
	return &next
}

// recorded is about how many bytes the records of the journal have.
func (o *overlaid) recorded() (bytes int) {
	for _, t := range o.layers() {
		bytes += t.recorded
	}
	return bytes
}

// liesOver reports whether this belongs to the pages of a transaction.
func (o *overlaid) liesOver(transaction int) bool {
	return transaction == o.transaction || transaction == o.proof
}

// layers returns the tables, newest first.
func (o *overlaid) layers() []*table {
	if o.old == nil {
		return []*table{o.young}
	}
	return []*table{o.young, o.old}
}

// readJournal reads the journal of a file.
func readJournal(tx *bbolt.Tx, file *os.File) (*overlaid, error) {
	o := &overlaid{transaction: tx.ID(), young: newTable(), first: 1}
	p, err := newPages(tx, file)
	if err != nil {
		return nil, err
	}
	buckets, err := p.buckets()
	if err != nil {
		return nil, err
	}
	err = p.journal(buckets, func(r record) error { return o.replay(r, o.young.replay) })
	noted := buckets[string(journalBucket)].sequence()
	switch {
	case err == nil && noted != 0 && noted != o.last:
		err = fmt.Errorf("%w: the journal ends at record %d instead of %d", store.ErrCorrupt, o.last, noted)
	case noted == 0: // it is empty, or was written by a program that noted nothing
		o.frozen = o.last
	default:
		o.frozen = buckets[string(root)].sequence() - 1
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errJournal, err)
	}
	return o, err
}

// errJournal tells that the journal is damaged, and nothing that says where it is.
var errJournal = errors.New("the journal is damaged")

// replay passes the writes of the next record to set, if it is whole and the next.
func (o *overlaid) replay(r record, set func(key string, value []byte)) error {
	if o.last != 0 && r.number != o.last+1 {
		return fmt.Errorf("%w: record %d of the journal comes after %d", store.ErrCorrupt, r.number, o.last)
	}
	err := r.err
	if err == nil {
		err = decodeWrites(r.writes, set)
	}
	if err != nil {
		return fmt.Errorf("%w: record %d of the journal: %w", store.ErrCorrupt, r.number, err)
	}
	if o.last == 0 {
		o.first = r.number
	}
	o.last = r.number
	o.young.recorded += recordSize
	return nil
}

// batchWriter collects the writes of the Updates of a commit.
type batchWriter struct {
	generation int // see the constant
	main       *bbolt.Bucket
	overlaid   *overlaid
	writes     map[string][]byte // as in a table
	bytes      int
}

// set adds a write of an Update; nil deletes.
func (b *batchWriter) set(key string, value []byte) {
	b.writes[key] = value
	b.bytes += len(key) + len(value) + entrySize
	if value == nil && !b.beneath(key) {
		b.overlaid.young.drop(key) // scans would have to pass it
		return
	}
	b.overlaid.young.set(key, value)
}

// beneath reports whether a key is known beneath the young table.
func (b *batchWriter) beneath(key string) bool {
	if b.overlaid.old != nil {
		if _, ok := b.overlaid.old.writes.Get(key); ok {
			return true
		}
	}
	return b.main.Get([]byte(key)) != nil
}

// commit writes the collected writes: to the journal, with some older ones moved to their
// places, or, if there are many, all of them to their places.
func (b *batchWriter) commit(journal *bbolt.Bucket) error {
	if err := b.write(journal); err != nil {
		return err
	}
	return b.note(journal)
}

// note notes, where the file has counters, what else does not show when it is damaged: the
// number of the last record, 0 if there is none, with the journal, and one more than that of
// the last record of which something can be in its place with the places.
func (b *batchWriter) note(journal *bbolt.Bucket) error {
	o := b.overlaid
	last := o.last
	if o.first > o.last {
		last, o.frozen = 0, 0
	}
	if journal.Sequence() != last {
		if err := journal.SetSequence(last); err != nil {
			return err
		}
	}
	if b.main.Sequence() != o.frozen+1 { // which writes another page
		return b.main.SetSequence(o.frozen + 1)
	}
	return nil
}

// write does what commit does.
func (b *batchWriter) write(journal *bbolt.Bucket) error {
	o := b.overlaid
	if b.bytes >= b.generation/largePart || o.recorded() >= maxJournal*b.generation {
		return b.moveAll(journal)
	}
	// A program that knows no journal must find out that it does not know this format.
	if format, ok := b.writes[store.FormatKey]; ok {
		if err := b.main.Put([]byte(store.FormatKey), format); err != nil {
			return err
		}
	}
	o.last++
	o.young.recorded += b.bytes + recordSize
	record, err := journal.CreateBucket(binary.BigEndian.AppendUint64(nil, o.last))
	if err == nil {
		err = record.Put(timeKey, binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano())))
	}
	if err == nil {
		err = record.Put(recordKey, encodeWrites(b.writes))
	}
	if err != nil {
		return err
	}
	if o.old == nil && (o.young.bytes >= b.generation || o.young.recorded >= maxRecords*b.generation) {
		o.young, o.old, o.moved, o.frozen = newTable(), o.young, "", o.last
	}
	if o.old == nil {
		return nil
	}
	done, err := b.move(o.old, moveFactor*(b.bytes+recordSize))
	if err != nil || !done {
		return err
	}
	o.old = nil
	return o.forget(journal, o.frozen)
}

// move moves about as many bytes of a table as are given, from o.moved on, and returns
// whether it came to the end.
func (b *batchWriter) move(t *table, limit int) (done bool, err error) {
	done = true
	t.writes.Ascend(b.overlaid.moved, func(key string, value []byte) bool {
		if limit <= 0 {
			b.overlaid.moved, done = key, false
			return false
		}
		if t != b.overlaid.young {
			if _, newer := b.overlaid.young.writes.Get(key); newer {
				return true // which the journal has, too
			}
		}
		limit -= len(key) + len(value) + entrySize
		if value == nil {
			err = b.main.Delete([]byte(key))
		} else {
			err = b.main.Put([]byte(key), value)
		}
		return err == nil
	})
	return done && err == nil, err
}

// moveAll moves everything.
func (b *batchWriter) moveAll(journal *bbolt.Bucket) error {
	o := b.overlaid
	for _, t := range slices.Backward(o.layers()) {
		if t == o.young {
			o.moved = ""
		}
		if _, err := b.move(t, math.MaxInt); err != nil {
			return err
		}
	}
	o.young, o.old = newTable(), nil
	return o.forget(journal, o.last)
}

// forget removes the records up to a number from the journal.
func (o *overlaid) forget(journal *bbolt.Bucket, last uint64) error {
	for ; o.first <= last; o.first++ {
		if err := journal.DeleteBucket(binary.BigEndian.AppendUint64(nil, o.first)); err != nil {
			return err
		}
	}
	return nil
}
