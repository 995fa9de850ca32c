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

// total sums up records: their number, the sum of their fingerprints modulo 2^64, the bytes of their
// keys and sealed values, and their number by kind. It does not depend on their order, so a write
// changes it by the difference between two records.
type total struct {
	records int64
	sum     uint64
	bytes   int64
	kinds   [len(kinds)]int64 // in the order of kinds
}

func (t *total) add(key string, sealed []byte) { t.change(key, sealed, 1) }

func (t *total) remove(key string, sealed []byte) { t.change(key, sealed, -1) }

// change adds a record n times, which may be negative.
func (t *total) change(key string, sealed []byte, n int64) {
	t.records += n
	t.sum += uint64(n) * fingerprint(key, sealed)
	t.bytes += n * int64(len(key)+len(sealed))
	_, k, _ := split(key)
	if i := slices.Index(kinds[:], k); i >= 0 {
		t.kinds[i] += n
	}
}

// count returns the number of records of a kind.
func (t total) count(k kind) int64 { return t.kinds[slices.Index(kinds[:], k)] }

// scoped is a Reader that has the totals of scopes.
type scoped interface {
	Reader
	// total returns the total of a scope, in the state of the transaction.
	total(scope Scope) (total, error)
	// beneath returns the reader of sealed values, without a limit to scopes.
	beneath() Reader
	// flushed reports whether the stored totals match the transaction's state.
	flushed() bool
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

// total implements scoped.
func (s sealedReader) total(scope Scope) (total, error) {
	key := totalPrefix + string(scope)
	record := new(storev1.TotalRecord)
	value, err := s.Get(key)
	if err == nil && value != nil {
		err = unmarshal(key, value, record)
	}
	if err != nil || value == nil {
		return total{}, err
	}
	stored := total{records: record.GetRecords(), sum: record.GetSum(), bytes: record.GetBytes()}
	if copy(stored.kinds[:], record.GetKinds()) > 0 {
		return stored, nil
	}
	// An earlier version wrote it, without kinds.
	found, faults := s.sum(scope)
	if len(faults) > 0 {
		return total{}, errors.Join(faults...)
	}
	stored.kinds = found.kinds
	return stored, found.differs(scope, stored)
}

// differs returns the damage of a scope with the total t that should have another.
func (t total) differs(scope Scope, want total) error {
	switch {
	case t == want:
		return nil
	case t.records != want.records:
		return &DamageError{string(scope), fmt.Sprintf("has %d records instead of %d", t.records, want.records)}
	default:
		return &DamageError{string(scope), "has a record that is not the latest"}
	}
}

// beneath implements scoped.
func (s sealedReader) beneath() Reader { return s.r }

// flushed implements scoped.
func (s sealedReader) flushed() bool { return true }

// sealedWriter seals values within an Update and maintains the totals of its scopes.
type sealedWriter struct {
	sealedReader
	w      ReadWriter
	scopes Scopes
	totals map[Scope]*total // of the scopes with writes
	err    error            // of the first failed write
}

func newSealedWriter(w ReadWriter, scopes Scopes) *sealedWriter {
	return &sealedWriter{sealedReader: sealedReader{w}, w: w, scopes: scopes, totals: make(map[Scope]*total)}
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
	var sum *total
	if err == nil {
		scope, _, _ := split(key)
		sum, err = s.changing(scope)
	}
	if err != nil {
		if s.err == nil {
			s.err = err
		}
		return
	}
	if before != nil {
		sum.remove(key, before)
	}
	if sealed == nil {
		s.w.Delete(key)
		return
	}
	sum.add(key, sealed)
	s.w.Put(key, sealed)
}

// changing returns the total of a scope that is about to change.
func (s *sealedWriter) changing(scope Scope) (*total, error) {
	if t := s.totals[scope]; t != nil {
		return t, nil
	}
	t, err := s.sealedReader.total(scope)
	if err == nil {
		s.totals[scope] = &t
	}
	return &t, err
}

// total implements scoped.
func (s *sealedWriter) total(scope Scope) (total, error) {
	if err := s.inside(string(scope) + separator); err != nil {
		return total{}, err
	}
	return s.anyTotal(scope)
}

// anyTotal returns the total of any scope.
func (s *sealedWriter) anyTotal(scope Scope) (total, error) {
	if t := s.totals[scope]; t != nil {
		return *t, nil
	}
	return s.sealedReader.total(scope)
}

// flushed implements scoped.
func (s *sealedWriter) flushed() bool { return len(s.totals) == 0 }

// unprotectedReader reads all scopes within an Update.
type unprotectedReader struct {
	sealedReader
	of *sealedWriter
}

func (r unprotectedReader) total(scope Scope) (total, error) { return r.of.anyTotal(scope) }
func (r unprotectedReader) flushed() bool                    { return r.of.flushed() }

// flush writes the totals of the changed scopes.
func (s *sealedWriter) flush() error {
	if s.err != nil {
		return s.err
	}
	for scope, t := range s.totals {
		if err := putTotal(s.w, scope, *t); err != nil {
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
	value, err := proto.Marshal(&storev1.TotalRecord{Records: t.records, Sum: t.sum, Bytes: t.bytes, Kinds: t.kinds[:]})
	if err != nil {
		return err
	}
	w.Put(key, seal(key, value))
	return nil
}

// sum adds up the records of a scope. The faults match ErrCorrupt, except the faults of the KV.
func (s sealedReader) sum(scope Scope) (found total, faults []error) {
	err := s.r.Scan(string(scope)+separator, "", func(key string, sealed []byte) (bool, error) {
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
	return found, faults
}

// maxFaults bounds the faults reported for a scope: one bad page can cause thousands.
const maxFaults = 100

// Verify compares the records of a scope with its total. It returns their number and the faults,
// which match ErrCorrupt.
func (t *ReadTx) Verify(scope Scope) (records int64, faults []error) {
	want, err := t.r.total(scope)
	if err != nil {
		return 0, []error{err}
	}
	found, faults := sealedReader{t.r.beneath()}.sum(scope)
	if len(faults) == 0 {
		if err := found.differs(scope, want); err != nil {
			faults = append(faults, err)
		}
	}
	return found.records, faults
}

// Size returns how many bytes the records of a scope take, in the state of the transaction.
func (t *ReadTx) Size(scope Scope) (int64, error) {
	kept, err := t.r.total(scope)
	return kept.bytes, err
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
	return t.r.beneath().Scan(totalPrefix, totalPrefix+string(after), func(key string, _ []byte) (bool, error) {
		if scope := Scope(key[len(totalPrefix):]); scope > after {
			return fn(scope)
		}
		return true, nil
	})
}
