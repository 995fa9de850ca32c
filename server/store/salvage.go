package store

import (
	"bytes"
	"fmt"
)

// Salvage collects the intact records of a damaged store for a new one.
type Salvage struct {
	totals map[Scope]total
	// Kept is the number of records kept.
	Kept int64
}

// Keep writes a sealed record to w if its checksum holds. Otherwise it returns an error that matches
// ErrCorrupt and names the record. Damage can make a record appear twice; a second version that
// differs is also such an error.
func (s *Salvage) Keep(w ReadWriter, key string, sealed []byte) error {
	if _, err := unseal(key, sealed); err != nil {
		return err
	}
	before, err := w.Get(key)
	if err != nil {
		return err
	}
	if before != nil {
		if !bytes.Equal(before, sealed) {
			return damaged(key, "has two versions, of which the first was kept")
		}
		return nil
	}
	if s.totals == nil {
		s.totals = make(map[Scope]total)
	}
	scope, _, _ := split(key)
	t := s.totals[scope]
	t.add(key, sealed)
	s.totals[scope] = t
	s.Kept++
	w.Put(key, bytes.Clone(sealed))
	return nil
}

// Finish writes the totals of the kept records to w. Its faults match ErrCorrupt: one for every
// scope whose old total differs.
func (s *Salvage) Finish(w ReadWriter, damaged Reader) (faults []error, err error) {
	totals := make(map[Scope]total)
	read := sealedReader{damaged}
	err = damaged.Scan(totalPrefix, "", func(key string, _ []byte) (bool, error) {
		scope := Scope(key[len(totalPrefix):])
		t, err := read.total(scope)
		if err != nil {
			faults = append(faults, err)
		} else {
			totals[scope] = t
		}
		return true, nil
	})
	if err != nil {
		faults = append(faults, err)
	}
	for scope, t := range s.totals {
		if want, known := totals[scope]; known && want != t {
			faults = append(faults, &DamageError{string(scope), fmt.Sprintf("had %d records, of which %d were kept", want.records, t.records)})
		}
		delete(totals, scope)
		if err := putTotal(w, scope, t); err != nil {
			return nil, err
		}
	}
	for scope, t := range totals {
		faults = append(faults, &DamageError{string(scope), fmt.Sprintf("had %d records, of which none was kept", t.records)})
	}
	return faults, nil
}
