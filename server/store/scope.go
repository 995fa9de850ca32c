package store

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Scope is a part of the store that is locked as a whole: a study, a ledger, or the store itself.
// Every record belongs to a scope, and its key begins with it. The scope of a study or ledger is its
// resource name.
type Scope string

// StoreScope is the scope of records that belong to no study or ledger.
const StoreScope Scope = "store"

// StudyScope returns the scope of a study.
func StudyScope(id string) Scope { return Scope("studies/" + id) }

// LedgerScope returns the scope of a ledger.
func LedgerScope(id string) Scope { return Scope("ledgers/" + id) }

// Scopes are the scopes of an Update, sorted and without duplicates. An implementation that locks
// scopes locks them in this order.
type Scopes []Scope

// In returns some scopes as Scopes. It leaves out empty ones.
func In(scopes ...Scope) Scopes {
	sorted := slices.DeleteFunc(slices.Clone(scopes), func(s Scope) bool { return s == "" })
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// has reports whether the scopes include a scope.
func (s Scopes) has(scope Scope) bool {
	_, found := slices.BinarySearch(s, scope)
	return found
}

// separator ends the scope in a key. No id contains it, and it sorts before every other byte, so
// scopes sort like their names.
const separator = "\x00"

// kind is the type of a record, the second part of its key.
type kind string

// The kinds of records. Records that are written together sort together: the last trial, the
// measurements and the open trials; the last revision and the study.
const (
	formatKind      kind = "format"
	studyKind       kind = "study"
	trialKind       kind = "trial"
	measurementKind kind = "underway"
	openKind        kind = "unfinished"
	attemptKind     kind = "attempt"
	deletedKind     kind = "deleted"
	revisionKind    kind = "revision"
	importKind      kind = "import"
	requestKind     kind = "request"
	ledgerKind      kind = "ledger"
	chargeKind      kind = "charge"
	releaseKind     kind = "release"
	repeatKind      kind = "repeat"
	workerKind      kind = "worker"
)

// numberedKinds are the kinds whose records have numbers.
var numberedKinds = []kind{trialKind, openKind, deletedKind, revisionKind, chargeKind, releaseKind}

// partKinds are the kinds whose records have the number of a trial and one of their own: the step of
// a measurement, or the number of an attempt.
var partKinds = []kind{measurementKind, attemptKind}

// kinds lists all kinds. Totals are stored in this order: add new kinds at the end.
var kinds = [...]kind{
	formatKind, studyKind, trialKind, measurementKind, openKind, attemptKind, deletedKind, revisionKind, importKind, requestKind,
	ledgerKind, chargeKind, releaseKind, repeatKind, workerKind,
}

// keyOf returns the key of a kind's only record in a scope, or the prefix of the kind's keys.
func keyOf(scope Scope, k kind) string { return string(scope) + separator + string(k) + "/" }

// named returns the key of a record with a name.
func named(scope Scope, k kind, name string) string { return keyOf(scope, k) + name }

// numbered returns the key of a record with a number. Keys sort by number.
func numbered(scope Scope, k kind, number int64) string {
	return keyOf(scope, k) + string(binary.BigEndian.AppendUint64(nil, uint64(number)))
}

// numberedPart returns the key of a record that is part of a numbered trial. Keys sort by trial, then
// by the part's own number.
func numberedPart(scope Scope, k kind, trial, number int64) string {
	return numbered(scope, k, trial) + string(binary.BigEndian.AppendUint64(nil, uint64(number)))
}

// split returns the parts of a key.
func split(key string) (scope Scope, k kind, name string) {
	before, after, _ := strings.Cut(key, separator)
	of, name, _ := strings.Cut(after, "/")
	return Scope(before), kind(of), name
}

// numberOf returns the number in a key.
func numberOf(key string) (int64, error) {
	_, _, name := split(key)
	if len(name) != 8 {
		return 0, damaged(key, "has no number")
	}
	return int64(binary.BigEndian.Uint64([]byte(name))), nil
}

// describe returns the name of a record for errors.
func describe(key string) string {
	if scope, isTotal := strings.CutPrefix(key, totalPrefix); isTotal {
		return "the total of " + scope
	}
	scope, k, name := split(key)
	switch {
	case name == "":
		return fmt.Sprintf("%s of %s", k, scope)
	case len(name) == 8 && slices.Contains(numberedKinds, k):
		return fmt.Sprintf("%s %d of %s", k, binary.BigEndian.Uint64([]byte(name)), scope)
	case len(name) == 16 && slices.Contains(partKinds, k):
		return fmt.Sprintf("%s %d of trial %d of %s", k, binary.BigEndian.Uint64([]byte(name[8:])), binary.BigEndian.Uint64([]byte(name)), scope)
	default:
		return fmt.Sprintf("%s %q of %s", k, name, scope)
	}
}

// scan calls fn for the records of a kind in a scope, starting at a name.
func scan(r Reader, scope Scope, k kind, from string, fn func(key string, value []byte) (bool, error)) error {
	return r.Scan(keyOf(scope, k), named(scope, k, from), fn)
}

// scopesFrom calls fn for every scope above after whose name begins with a prefix, in ascending
// order, until fn returns false or an error. It seeks past each scope's records.
func scopesFrom(r Reader, prefix string, after Scope, fn func(Scope) (bool, error)) error {
	from := prefix
	if after != "" {
		from = string(after) + "\x01"
	}
	for {
		var next Scope
		err := r.Scan(prefix, from, func(key string, _ []byte) (bool, error) {
			next, _, _ = split(key)
			return false, nil
		})
		if err != nil || next == "" {
			return err
		}
		if more, err := fn(next); err != nil || !more {
			return err
		}
		from = string(next) + "\x01"
	}
}
