package store

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Scope is a part of the store that is locked as a whole: a study, a ledger, or the store
// itself. Every record belongs to one, and its key begins with it. The scope of a study or
// ledger is its resource name.
type Scope string

// StoreScope is the scope of what belongs to no study or ledger.
const StoreScope Scope = "store"

// StudyScope returns the scope of a study.
func StudyScope(id string) Scope { return Scope("studies/" + id) }

// LedgerScope returns the scope of a ledger.
func LedgerScope(id string) Scope { return Scope("ledgers/" + id) }

// Scopes are the scopes of an Update, sorted and each once. An implementation that locks
// scopes does so in this order.
type Scopes []Scope

// In returns the scopes of an Update of some scopes, sorted; empty ones are left out.
func In(scopes ...Scope) Scopes {
	sorted := slices.DeleteFunc(slices.Clone(scopes), func(s Scope) bool { return s == "" })
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// has reports whether a scope is among them.
func (s Scopes) has(scope Scope) bool {
	_, found := slices.BinarySearch(s, scope)
	return found
}

// separator ends the scope in a key. It is in no id and sorts before every other byte, so that
// the scopes sort as their names do.
const separator = "\x00"

// kind is what a record is, the second part of its key.
type kind string

// The kinds of records. What is written together has names that sort together: the last trial and
// the open ones, the last revision and the study.
const (
	formatKind   kind = "format"
	studyKind    kind = "study"
	trialKind    kind = "trial"
	openKind     kind = "unfinished"
	deletedKind  kind = "deleted"
	revisionKind kind = "revision"
	importKind   kind = "import"
	requestKind  kind = "request"
	ledgerKind   kind = "ledger"
	chargeKind   kind = "charge"
	releaseKind  kind = "release"
	repeatKind   kind = "repeat"
	endedKind    kind = "ended"
)

// numberedKinds are those whose records are told apart by a number.
var numberedKinds = []kind{trialKind, openKind, deletedKind, revisionKind, chargeKind, releaseKind}

// kinds are all of them.
var kinds = []kind{
	formatKind, studyKind, trialKind, openKind, deletedKind, revisionKind, importKind, requestKind,
	ledgerKind, chargeKind, releaseKind, repeatKind, endedKind,
}

// keyOf returns the key of the record of a kind that a scope has once, and the prefix of the
// keys of one that it has many of.
func keyOf(scope Scope, k kind) string { return string(scope) + separator + string(k) + "/" }

// named returns the key of one of several records of a kind.
func named(scope Scope, k kind, name string) string { return keyOf(scope, k) + name }

// numbered is named for records with numbers; keys sort by number.
func numbered(scope Scope, k kind, number int64) string {
	return keyOf(scope, k) + string(binary.BigEndian.AppendUint64(nil, uint64(number)))
}

// split returns the parts of a key.
func split(key string) (scope Scope, k kind, name string) {
	before, after, _ := strings.Cut(key, separator)
	of, name, _ := strings.Cut(after, "/")
	return Scope(before), kind(of), name
}

// numberOf returns the number in the key of a record of a kind.
func numberOf(key string) (int64, error) {
	_, _, name := split(key)
	if len(name) != 8 {
		return 0, damaged(key, "has no number")
	}
	return int64(binary.BigEndian.Uint64([]byte(name))), nil
}

// describe names a record for errors.
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
	default:
		return fmt.Sprintf("%s %q of %s", k, name, scope)
	}
}

// scan calls fn for every record of a kind in a scope from a name on.
func scan(r Reader, scope Scope, k kind, from string, fn func(key string, value []byte) (bool, error)) error {
	return r.Scan(keyOf(scope, k), named(scope, k, from), fn)
}

// scopesFrom calls fn for every scope whose name begins with a prefix and is above after, in
// ascending order, until fn returns false or an error. It jumps over their records.
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
