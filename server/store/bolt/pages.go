package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

// pages reads the pages of a file and believes nothing of what they say. bbolt believes that
// pages are a tree: it would follow a page that leads to itself for ever, and take as much
// memory as a damaged page asks for.
//
// A page begins with its number (8 bytes), its type (2), the number of its elements (2), and
// how many pages it goes on for (4). An element of a branch has the offset of its key from
// itself (4), its length (4), and the number of the page whose keys are not below it (8); one
// of a leaf has its type (4), the offset (4) and length (4) of its key, and the length (4) of
// the value that follows. The value of a bucket is the number of its first page (8) and a
// counter (8), or, where that number is 0, these and the page itself.
type pages struct {
	stop func() error // its error ends what is going on
	file *os.File
	size int
	// root and free are the numbers of the first page of the tree and of the list of free
	// pages, end the number of pages.
	root, free, end uint64
	seen            []uint64 // a bit for every page that was read or is free
}

// Sizes and types of pages.
const (
	pageHeader    = 16
	pageElement   = 16
	bucketHeader  = 16
	branchPage    = 1
	leafPage      = 2
	freePage      = 16
	bucketElement = 1
	noFreePages   = 1<<64 - 1 // in place of the list's number: there is none
	manyFreePages = 1<<16 - 1 // in place of their number: it comes first
	// What one of the first two pages says, after its header.
	metaRoot, metaFree, metaEnd, metaTransaction = 16, 32, 40, 48
	metaSize                                     = 64
)

// element is a key of a leaf.
type element struct {
	bucket     bool
	key, value []byte
}

// page is a page and those that it goes on for.
type page struct {
	kind, count uint16
	content     []byte
}

// newPages returns the pages of a transaction, none of them read yet.
func newPages(tx *bbolt.Tx, file *os.File) (*pages, error) {
	p := &pages{stop: func() error { return nil }, file: file, size: tx.DB().Info().PageSize}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	meta := make([]byte, pageHeader+metaSize)
	for _, at := range []int{tx.ID() % 2, 1 - tx.ID()%2} { // both after a failure
		if _, err := file.ReadAt(meta, int64(at*p.size)); err != nil {
			return nil, err
		}
		field := func(i int) uint64 { return binary.NativeEndian.Uint64(meta[pageHeader+i:]) }
		if field(metaTransaction) != uint64(tx.ID()) {
			continue
		}
		p.root, p.free, p.end = field(metaRoot), field(metaFree), field(metaEnd)
		if p.end > uint64(info.Size())/uint64(p.size) {
			return nil, fmt.Errorf("%w: it has %d bytes instead of %d", store.ErrCorrupt, info.Size(), tx.Size())
		}
		p.seen = make([]uint64, p.end/64+1)
		return p, nil
	}
	return nil, fmt.Errorf("%w: its first pages have changed", store.ErrCorrupt)
}

// use notes that a page is used, and fails if it is already.
func (p *pages) use(id uint64) error {
	switch {
	case id < 2 || id >= p.end:
		return fmt.Errorf("%w: it refers to page %d, and has %d", store.ErrCorrupt, id, p.end)
	case p.seen[id/64]&(1<<(id%64)) != 0:
		return fmt.Errorf("%w: page %d is used twice", store.ErrCorrupt, id)
	}
	p.seen[id/64] |= 1 << (id % 64)
	return nil
}

// read reads a page.
func (p *pages) read(id uint64) (page, error) {
	if err := p.stop(); err != nil {
		return page{}, err
	}
	if err := p.use(id); err != nil {
		return page{}, err
	}
	content := make([]byte, p.size)
	if _, err := p.file.ReadAt(content, int64(id)*int64(p.size)); err != nil {
		return page{}, fmt.Errorf("%w: page %d cannot be read: %w", store.ErrCorrupt, id, err)
	}
	if own := binary.NativeEndian.Uint64(content); own != id {
		return page{}, fmt.Errorf("%w: page %d says that it is %d", store.ErrCorrupt, id, own)
	}
	more := uint64(binary.NativeEndian.Uint32(content[12:]))
	for next := id + 1; next <= id+more; next++ {
		if err := p.use(next); err != nil {
			return page{}, err
		}
	}
	if more > 0 {
		content = make([]byte, int(more+1)*p.size)
		if _, err := p.file.ReadAt(content, int64(id)*int64(p.size)); err != nil {
			return page{}, fmt.Errorf("%w: page %d cannot be read: %w", store.ErrCorrupt, id, err)
		}
	}
	return newPage(content), nil
}

func newPage(content []byte) page {
	return page{binary.NativeEndian.Uint16(content[8:]), binary.NativeEndian.Uint16(content[10:]), content}
}

// walk passes the elements of the leaves at and below a page to fn. Their keys must be in
// order, not below low, and below high unless that is nil.
func (p *pages) walk(id uint64, low, high []byte, fn func(element) error) error {
	branch, err := p.read(id)
	if err != nil {
		return err
	}
	if branch.kind == leafPage {
		return branch.elements(id, low, high, fn)
	}
	if branch.kind != branchPage || branch.count == 0 || pageHeader+int(branch.count)*pageElement > len(branch.content) {
		return fmt.Errorf("%w: page %d is of type %d and has %d elements", store.ErrCorrupt, id, branch.kind, branch.count)
	}
	child := func(i int) (key []byte, id uint64, err error) {
		at := branch.content[pageHeader+pageElement*i:]
		key, err = slice(at, binary.NativeEndian.Uint32(at), binary.NativeEndian.Uint32(at[4:]))
		return key, binary.NativeEndian.Uint64(at[8:]), err
	}
	for i := range int(branch.count) {
		key, below, err := child(i)
		end := high
		if err == nil && i+1 < int(branch.count) {
			end, _, err = child(i + 1)
		}
		if err == nil && (bytes.Compare(key, low) < 0 || end != nil && bytes.Compare(key, end) >= 0) {
			err = fmt.Errorf("%w: key %q is not in order", store.ErrCorrupt, key)
		}
		if err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
		if err := p.walk(below, key, end, fn); err != nil {
			return err
		}
	}
	return nil
}

// elements passes the elements of a leaf to fn.
func (p page) elements(id uint64, low, high []byte, fn func(element) error) error {
	if p.kind != leafPage || pageHeader+int(p.count)*pageElement > len(p.content) {
		return fmt.Errorf("%w: page %d is of type %d and has %d elements", store.ErrCorrupt, id, p.kind, p.count)
	}
	for i := range int(p.count) {
		at := p.content[pageHeader+pageElement*i:]
		field := func(i int) uint32 { return binary.NativeEndian.Uint32(at[4*i:]) }
		key, err := slice(at, field(1), field(2))
		if err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
		value, err := slice(at[int(field(1))+len(key):], 0, field(3))
		if err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
		if order := bytes.Compare(key, low); order < 0 || i > 0 && order == 0 || high != nil && bytes.Compare(key, high) >= 0 {
			return fmt.Errorf("%w: page %d: key %q is not in order", store.ErrCorrupt, id, key)
		}
		low = key
		if err := fn(element{field(0)&bucketElement != 0, key, value}); err != nil {
			return err
		}
	}
	return nil
}

// slice returns a part of a page.
func slice(content []byte, offset, length uint32) ([]byte, error) {
	if end := uint64(offset) + uint64(length); end > uint64(len(content)) {
		return nil, fmt.Errorf("%w: an element is beyond the end", store.ErrCorrupt)
	}
	return content[offset:][:length:length], nil
}

// bucket passes the elements of a bucket to fn.
func (p *pages) bucket(b element, fn func(element) error) error {
	if !b.bucket || len(b.value) < bucketHeader {
		return fmt.Errorf("%w: key %q is no bucket", store.ErrCorrupt, b.key)
	}
	if root := binary.NativeEndian.Uint64(b.value); root != 0 {
		return p.walk(root, nil, nil, fn)
	}
	if len(b.value) < bucketHeader+pageHeader {
		return fmt.Errorf("%w: the bucket of key %q is cut off", store.ErrCorrupt, b.key)
	}
	return newPage(b.value[bucketHeader:]).elements(0, nil, nil, fn)
}

// sequence returns the counter of a bucket, 0 if it is none.
func (b element) sequence() uint64 {
	if !b.bucket || len(b.value) < bucketHeader {
		return 0
	}
	return binary.NativeEndian.Uint64(b.value[8:])
}

// buckets returns the buckets of the store, by their names.
func (p *pages) buckets() (map[string]element, error) {
	found := make(map[string]element, 2)
	err := p.walk(p.root, nil, nil, func(e element) error {
		found[string(e.key)] = e
		return nil
	})
	if err == nil && !found[string(root)].bucket {
		err = errNoBucket
	}
	return found, err
}

// places passes all that is in its place to fn.
func (p *pages) places(buckets map[string]element, fn func(element) error) error {
	return p.bucket(buckets[string(root)], func(e element) error {
		if e.bucket {
			return fmt.Errorf("%w: key %q is a bucket", store.ErrCorrupt, e.key)
		}
		return fn(e)
	})
}

// freePages reads the list of free pages, and returns their number.
func (p *pages) freePages() (n int64, err error) {
	if p.free == noFreePages {
		return 0, nil
	}
	list, err := p.read(p.free)
	if err != nil {
		return 0, fmt.Errorf("the list of free pages: %w", err)
	}
	ids, count := list.content[pageHeader:], uint64(list.count)
	if count == manyFreePages {
		count, ids = binary.NativeEndian.Uint64(ids), ids[8:]
	}
	if list.kind != freePage || count > uint64(len(ids)/8) {
		return 0, fmt.Errorf("%w: the list of free pages has type %d and %d pages", store.ErrCorrupt, list.kind, count)
	}
	for i := range count {
		if err := p.use(binary.NativeEndian.Uint64(ids[8*i:])); err != nil {
			return 0, fmt.Errorf("the list of free pages: %w", err)
		}
	}
	return int64(count), nil
}

// check reads all pages, and returns the number of those that are free.
func (p *pages) check() (free int64, err error) {
	if free, err = p.freePages(); err != nil {
		return 0, err
	}
	buckets, err := p.buckets()
	if err != nil {
		return free, err
	}
	if err := p.places(buckets, func(element) error { return nil }); err != nil {
		return free, err
	}
	return free, p.journal(buckets, func(r record) error { return r.err })
}

// record is a record of the journal.
type record struct {
	number uint64
	time   time.Time // zero if it is not known
	writes []byte    // see decodeWrites
	err    error     // says that it cannot be read
}

// journal passes the records of the journal to fn, in the order of their numbers.
func (p *pages) journal(buckets map[string]element, fn func(record) error) error {
	journal, ok := buckets[string(journalBucket)]
	if !ok { // written by a program that had none
		return nil
	}
	return p.bucket(journal, func(e element) error {
		if len(e.key) != 8 {
			return fmt.Errorf("%w: the journal has key %q", store.ErrCorrupt, e.key)
		}
		r := record{number: binary.BigEndian.Uint64(e.key)}
		r.err = p.bucket(e, func(e element) error {
			switch {
			case e.bucket:
				return fmt.Errorf("%w: key %q is a bucket", store.ErrCorrupt, e.key)
			case string(e.key) == string(recordKey):
				r.writes = e.value
			case string(e.key) == string(timeKey) && len(e.value) == 8:
				r.time = time.Unix(0, int64(binary.BigEndian.Uint64(e.value)))
			}
			return nil
		})
		return fn(r)
	})
}
