package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
)

// Every value is stored behind the CRC-32C of its key and itself, 4 bytes in big-endian order. So a
// damaged value, or one that belongs to another key, is never returned.
const checksumSize = 4

// totalPrefix precedes the scope in the key of its total.
const totalPrefix = "\x00"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the checksum of a key and its value.
func checksum(key string, value []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(key), castagnoli), castagnoli, value)
}

// seal returns the stored form of a value.
func seal(key string, value []byte) []byte {
	sealed := make([]byte, checksumSize, checksumSize+len(value))
	binary.BigEndian.PutUint32(sealed, checksum(key, value))
	return append(sealed, value...)
}

// unseal returns the value of a stored form, or an error that matches ErrCorrupt and names the
// record.
func unseal(key string, sealed []byte) ([]byte, error) {
	if len(sealed) < checksumSize || binary.BigEndian.Uint32(sealed) != checksum(key, sealed[checksumSize:]) {
		return nil, damaged(key, "has a wrong checksum")
	}
	return sealed[checksumSize:], nil
}

// fingerprint returns a hash of a key and its stored value.
func fingerprint(key string, sealed []byte) uint64 {
	h := xxhash.New()
	_, _ = h.WriteString(key)
	_, _ = h.Write(sealed)
	return h.Sum64()
}

// total sums up records: their number, the sum of their fingerprints modulo 2^64, and the bytes of
// their keys and sealed values. It does not depend on their order, so a write changes it by the
// difference between two records.
type total struct {
	records int64
	sum     uint64
	bytes   int64
}

func (t *total) add(key string, sealed []byte) {
	t.records++
	t.sum += fingerprint(key, sealed)
	t.bytes += int64(len(key) + len(sealed))
}

func (t *total) remove(key string, sealed []byte) {
	t.records--
	t.sum -= fingerprint(key, sealed)
	t.bytes -= int64(len(key) + len(sealed))
}

// plus returns the sum of two totals.
func (t total) plus(o total) total {
	return total{t.records + o.records, t.sum + o.sum, t.bytes + o.bytes}
}

// sealedReader unseals the values that it reads from a KV.
type sealedReader struct{ r Reader }

// Get implements Reader.
func (s sealedReader) Get(key string) ([]byte, error) {
	sealed, err := s.r.Get(key)
	if err != nil || sealed == nil {
		return nil, err
	}
	return unseal(key, sealed)
}

// Scan implements Reader.
func (s sealedReader) Scan(prefix, from string, fn func(string, []byte) (bool, error)) error {
	return s.r.Scan(prefix, from, func(key string, sealed []byte) (bool, error) {
		value, err := unseal(key, sealed)
		if err != nil {
			return false, err
		}
		return fn(key, value)
	})
}

// total returns the stored total of a scope.
func (s sealedReader) total(scope Scope) (total, error) {
	record := new(storev1.TotalRecord)
	err := get(s, totalPrefix+string(scope), record)
	if errors.Is(err, ErrNotFound) {
		return total{}, nil
	}
	return total{record.GetRecords(), record.GetSum(), record.GetBytes()}, err
}

// sealedWriter seals values within an Update and maintains the totals of its scopes.
type sealedWriter struct {
	sealedReader
	w       ReadWriter
	scopes  Scopes
	changes map[Scope]*total
	err     error // of the first failed write
}

func newSealedWriter(w ReadWriter, scopes Scopes) *sealedWriter {
	return &sealedWriter{sealedReader: sealedReader{w}, w: w, scopes: scopes, changes: make(map[Scope]*total)}
}

// errOutside says that an Update touches a key outside its scopes.
var errOutside = errors.New("store: outside of the scopes of the update")

// inside returns an error for a key or prefix outside the Update's scopes.
func (s *sealedWriter) inside(key string) error {
	if scope, _, _ := split(key); !s.scopes.has(scope) {
		return fmt.Errorf("%w %q: %s", errOutside, s.scopes, describe(key))
	}
	return nil
}

// Get implements Reader.
func (s *sealedWriter) Get(key string) ([]byte, error) {
	if err := s.inside(key); err != nil {
		return nil, err
	}
	return s.sealedReader.Get(key)
}

// Scan implements Reader.
func (s *sealedWriter) Scan(prefix, from string, fn func(string, []byte) (bool, error)) error {
	if err := s.inside(prefix); err != nil {
		return err
	}
	return s.sealedReader.Scan(prefix, from, fn)
}

// Put implements ReadWriter.
func (s *sealedWriter) Put(key string, value []byte) { s.set(key, seal(key, value)) }

// Delete implements ReadWriter.
func (s *sealedWriter) Delete(key string) { s.set(key, nil) }

// set stores a sealed value, or deletes the key if it is nil.
func (s *sealedWriter) set(key string, sealed []byte) {
	err := s.inside(key)
	var before []byte
	if err == nil {
		before, err = s.w.Get(key)
	}
	if err == nil && before != nil {
		_, err = unseal(key, before) // a damaged value would spoil the total
	}
	if err != nil {
		if s.err == nil {
			s.err = err
		}
		return
	}
	scope, _, _ := split(key)
	change := s.changes[scope]
	if change == nil {
		change = new(total)
		s.changes[scope] = change
	}
	if before != nil {
		change.remove(key, before)
	}
	if sealed == nil {
		s.w.Delete(key)
		return
	}
	change.add(key, sealed)
	s.w.Put(key, sealed)
}

// flush writes the totals of the changed scopes.
func (s *sealedWriter) flush() error {
	if s.err != nil {
		return s.err
	}
	for scope, change := range s.changes {
		kept, err := s.total(scope)
		if err != nil {
			return err
		}
		if err := putTotal(s.w, scope, kept.plus(*change)); err != nil {
			return err
		}
	}
	return nil
}

// putTotal writes the total of a scope. An empty scope has no total.
func putTotal(w ReadWriter, scope Scope, t total) error {
	key := totalPrefix + string(scope)
	if t == (total{}) {
		w.Delete(key)
		return nil
	}
	if t.records <= 0 {
		return damaged(key, "would count %d records", t.records)
	}
	value, err := proto.Marshal(&storev1.TotalRecord{Records: t.records, Sum: t.sum, Bytes: t.bytes})
	if err != nil {
		return err
	}
	w.Put(key, seal(key, value))
	return nil
}

// verify compares the records of a scope with its stored total plus a change. Its faults match
// ErrCorrupt.
func (s sealedReader) verify(scope Scope, change total) (records int64, faults []error) {
	kept, err := s.total(scope)
	if err != nil {
		return 0, []error{err}
	}
	var found total
	err = s.r.Scan(string(scope)+separator, "", func(key string, sealed []byte) (bool, error) {
		found.add(key, sealed)
		_, err := unseal(key, sealed)
		if err == nil {
			var direct []byte // damage in the tree may hide a record from Get but not from Scan
			direct, err = s.r.Get(key)
			if err == nil && !slices.Equal(direct, sealed) {
				err = damaged(key, "cannot be found by its key")
			}
		}
		if err != nil {
			faults = append(faults, err)
		}
		return len(faults) < maxFaults, nil
	})
	if err != nil {
		faults = append(faults, err)
	}
	switch want := kept.plus(change); {
	case err != nil || len(faults) > 0 || found == want:
	case found.records != want.records:
		faults = append(faults, &DamageError{string(scope), fmt.Sprintf("has %d records instead of %d", found.records, want.records)})
	default:
		faults = append(faults, &DamageError{string(scope), "has a record that is not the latest"})
	}
	return found.records, faults
}

// maxFaults bounds the faults reported for a scope: one bad page can cause thousands.
const maxFaults = 100

// Verify compares the records of a scope with its total. It returns their number and the faults,
// which match ErrCorrupt.
func (t *ReadTx) Verify(scope Scope) (records int64, faults []error) {
	switch r := t.r.(type) {
	case sealedReader:
		return r.verify(scope, total{})
	case *sealedWriter:
		if err := r.inside(string(scope) + separator); err != nil {
			return 0, []error{err}
		}
		var change total
		if c := r.changes[scope]; c != nil {
			change = *c
		}
		return r.verify(scope, change)
	default:
		panic("store: a transaction over no store")
	}
}

// Size returns how many bytes the records of a scope take, in the state of the transaction.
func (t *ReadTx) Size(scope Scope) (int64, error) {
	switch r := t.r.(type) {
	case sealedReader:
		kept, err := r.total(scope)
		return kept.bytes, err
	case *sealedWriter:
		kept, err := r.total(scope)
		if change := r.changes[scope]; change != nil {
			kept = kept.plus(*change)
		}
		return kept.bytes, err
	default:
		panic("store: a transaction over no store")
	}
}

// CheckWhole returns an error that matches ErrCorrupt if a record of the scope is damaged, lost or
// stale.
func (t *ReadTx) CheckWhole(scope Scope) error {
	_, faults := t.Verify(scope)
	return errors.Join(faults...)
}

// Scopes calls fn for every scope above after that has a total, in ascending order, until fn returns
// false or an error. Every scope with records has a total.
func (t *ReadTx) Scopes(after Scope, fn func(Scope) (bool, error)) error {
	var r Reader
	switch t := t.r.(type) {
	case sealedReader:
		r = t.r
	case *sealedWriter:
		r = t.w
	}
	return r.Scan(totalPrefix, totalPrefix+string(after), func(key string, _ []byte) (bool, error) {
		if scope := Scope(key[len(totalPrefix):]); scope > after {
			return fn(scope)
		}
		return true, nil
	})
}
