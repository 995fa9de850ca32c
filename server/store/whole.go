package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Damage to a page can hide records that are intact. So what a read finds is compared with the totals,
// which are stored apart.

// oneRecord are the kinds of which a scope has at most one record.
var oneRecord = []kind{studyKind, ledgerKind, importKind}

// numbering returns the kinds that share one sequence of numbers from 1, the given one first. A trial
// that is deleted keeps its number. It returns nil for kinds whose numbers have gaps.
func numbering(k kind) []kind {
	switch k {
	case trialKind:
		return []kind{trialKind, deletedKind}
	case chargeKind, releaseKind:
		return []kind{k}
	default:
		return nil
	}
}

// missing returns the error for a key without a record: ErrNotFound, or a *DamageError if the totals
// show that the record existed.
func missing(r scoped, key string) error {
	scope, k, name := split(key)
	family := numbering(k)
	if len(family) == 0 && !slices.Contains(oneRecord, k) {
		return ErrNotFound
	}
	want, err := r.total(scope)
	switch {
	case err != nil:
		return err
	case len(family) == 0 && want.count(k) > 0:
		return damaged(key, "is lost")
	case len(name) == 8:
		number := int64(binary.BigEndian.Uint64([]byte(name)))
		if number < 1 || number > last(want, family) {
			return ErrNotFound
		}
		if err := checkGaps(r, scope, family, want, number, number, number, 0); err != nil {
			return err
		}
	}
	return ErrNotFound
}

// last returns the last number of a numbering without gaps.
func last(t total, family []kind) (n int64) {
	for _, k := range family {
		n += t.count(k)
	}
	return n
}

// numberedKeys calls fn for every numbered record of a kind in a scope, starting at number from, in
// ascending order, until fn returns false or an error.
//
// If records are lost, it returns an error that matches ErrCorrupt after the calls of fn: always if it
// reads all records of the kind, and for trials, charges and releases also if it reads a part.
func numberedKeys(r scoped, scope Scope, k kind, from int64, fn func(key string, value []byte) (bool, error)) error {
	want, err := r.total(scope) // before fn writes
	if err != nil {
		return err
	}
	start := ""
	if from > 0 {
		start = numbered(scope, k, from)
	}
	var found, reached int64
	ended := true
	err = r.Scan(keyOf(scope, k), start, func(key string, value []byte) (bool, error) {
		found++
		if numbering(k) != nil {
			number, err := numberOf(key)
			if err != nil {
				return false, err
			}
			reached = number
		}
		more, err := fn(key, value)
		ended = more
		return more, err
	})
	switch {
	case err != nil:
		return err
	case ended && from <= 1:
		return checkCount(scope, k, found, want)
	case numbering(k) == nil:
		return nil
	}
	end := reached
	if ended {
		reached, end = max(reached, last(want, numbering(k))), math.MaxInt64
	}
	return checkGaps(r, scope, numbering(k), want, max(1, from), reached, end, found)
}

// checkCount compares the number of records of a kind with the total of the scope.
func checkCount(scope Scope, k kind, found int64, want total) error {
	if n := want.count(k); found != n {
		return &DamageError{string(scope), fmt.Sprintf("has %d records of the kind %q instead of %d", found, k, n)}
	}
	return nil
}

// checkGaps returns an error if records of a numbering are lost, of which found have numbers in [from, end],
// all of them up to to. Usually all other numbers up to there were deleted, which is quick to see. Only an
// import can leave numbers out: then all records of the kind are read.
func checkGaps(r scoped, scope Scope, family []kind, want total, from, to, end, found int64) error {
	gaps := to - from + 1 - found
	for _, k := range family[1:] {
		if gaps <= 0 {
			break
		}
		err := r.Scan(keyOf(scope, k), numbered(scope, k, from), func(key string, _ []byte) (bool, error) {
			if key > numbered(scope, k, to) {
				return false, nil
			}
			gaps--
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	if gaps == 0 && to <= last(want, family) {
		return nil
	}
	for i, k := range family {
		within, err := countKeys(r, scope, k, want, numbered(scope, k, from), numbered(scope, k, end))
		if err != nil {
			return err
		}
		if i == 0 && within != found {
			return &DamageError{string(scope), fmt.Sprintf("has %d records of the kind %q, of which %d can be found by their numbers", within, k, found)}
		}
	}
	return nil
}

// countKeys compares the number of records of a kind with the total of the scope, and returns how many
// are in [from, to].
func countKeys(r scoped, scope Scope, k kind, want total, from, to string) (within int64, err error) {
	found := int64(0)
	err = r.Scan(keyOf(scope, k), "", func(key string, _ []byte) (bool, error) {
		found++
		if key >= from && key <= to {
			within++
		}
		return true, nil
	})
	if err != nil {
		return 0, err
	}
	return within, checkCount(scope, k, found, want)
}

// wholeScopes is scopesFrom. It returns an error that matches ErrCorrupt if a scope has lost its
// records or its total.
func wholeScopes(r scoped, prefix string, after Scope, fn func(Scope) (bool, error)) error {
	if !r.flushed() {
		return scopesFrom(r, prefix, after, fn)
	}
	ended := true
	check := func(scope Scope) error {
		kept, err := nextTotal(r, prefix, after)
		switch after = scope; {
		case err != nil || kept == scope:
			return err
		case kept != "" && (scope == "" || kept < scope):
			return &DamageError{string(kept), "has lost its first records"}
		default:
			return &DamageError{string(scope), "has lost its total"}
		}
	}
	err := scopesFrom(r, prefix, after, func(scope Scope) (bool, error) {
		if err := check(scope); err != nil {
			return false, err
		}
		more, err := fn(scope)
		ended = more
		return more, err
	})
	if err != nil || !ended {
		return err
	}
	return check("")
}

// nextTotal returns the first scope above after that has a total and whose name begins with a prefix,
// "" for none.
func nextTotal(r scoped, prefix string, after Scope) (next Scope, err error) {
	err = r.beneath().Scan(totalPrefix+prefix, totalPrefix+string(after), func(key string, _ []byte) (bool, error) {
		if scope := Scope(strings.TrimPrefix(key, totalPrefix)); scope > after {
			next = scope
		}
		return next == "", nil
	})
	return next, err
}
