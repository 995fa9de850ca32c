package store

import (
	"encoding/binary"
	"errors"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
)

// ledgerReader is the part of a ReadTx that reads ledgers and releases.
type ledgerReader struct{ r scoped }

// Ledger returns a ledger by its id, or ErrNotFound.
func (t ledgerReader) Ledger(ledger string) (*storev1.LedgerRecord, error) {
	record := new(storev1.LedgerRecord)
	return record, get(t.r, keyOf(LedgerScope(ledger), ledgerKind), record)
}

// Ledgers calls fn for every ledger whose id is above after, in ascending order, until fn
// returns false or an error.
func (t ledgerReader) Ledgers(after string, fn func(*storev1.LedgerRecord) (bool, error)) error {
	return wholeScopes(t.r, string(LedgerScope("")), scopeAfter(LedgerScope, after), func(scope Scope) (bool, error) {
		record := new(storev1.LedgerRecord)
		switch err := get(t.r, keyOf(scope, ledgerKind), record); {
		case errors.Is(err, ErrNotFound):
			return true, nil
		case err != nil:
			return false, err
		default:
			return fn(record)
		}
	})
}

// PutLedger writes a ledger.
func (t *Tx) PutLedger(ledger string, record *storev1.LedgerRecord) error {
	return put(t.w, keyOf(LedgerScope(ledger), ledgerKind), record)
}

// Charges calls fn with the number of every charge of a ledger above after, in ascending
// order, until fn returns false or an error.
func (t ledgerReader) Charges(ledger string, after int64, fn func(int64, *storev1.ChargeRecord) (bool, error)) error {
	return records(t.r, LedgerScope(ledger), chargeKind, after+1, numbers(fn))
}

// PutCharge writes a charge of a ledger under a new number.
func (t *Tx) PutCharge(ledger string, number int64, record *storev1.ChargeRecord) error {
	return put(t.w, numbered(LedgerScope(ledger), chargeKind, number), record)
}

// Release returns a release of a parent, "studies/{study}" or "ledgers/{ledger}", or ErrNotFound.
func (t ledgerReader) Release(parent string, number int64) (*storev1.ReleaseRecord, error) {
	record := new(storev1.ReleaseRecord)
	return record, get(t.r, numbered(Scope(parent), releaseKind, number), record)
}

// Releases calls fn with the number of every release of a parent above after, in ascending
// order, until fn returns false or an error.
func (t ledgerReader) Releases(parent string, after int64, fn func(int64, *storev1.ReleaseRecord) (bool, error)) error {
	return records(t.r, Scope(parent), releaseKind, after+1, numbers(fn))
}

// LastRelease returns the highest number of a parent's releases, 0 if it has none.
func (t ledgerReader) LastRelease(parent string) (last int64, err error) {
	err = numberedKeys(t.r, Scope(parent), releaseKind, 0, func(key string, _ []byte) (bool, error) {
		last, err = numberOf(key)
		return true, err
	})
	return last, err
}

// RepeatedRelease returns the release that a caller's request made earlier, or ErrNotFound.
func (t ledgerReader) RepeatedRelease(parent, caller, requestID string) (*storev1.ReleaseRecord, error) {
	key := repeatKey(parent, caller, requestID)
	value, err := t.r.Get(key)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, ErrNotFound
	}
	if len(value) != 8 {
		return nil, damaged(key, "has a malformed value")
	}
	return t.Release(parent, int64(binary.BigEndian.Uint64(value)))
}

// PutRelease writes a release of a parent under a new number, and indexes its request.
func (t *Tx) PutRelease(parent string, number int64, record *storev1.ReleaseRecord) error {
	if record.GetRequestId() != "" {
		t.w.Put(repeatKey(parent, record.GetCaller(), record.GetRequestId()), binary.BigEndian.AppendUint64(nil, uint64(number)))
	}
	return put(t.w, numbered(Scope(parent), releaseKind, number), record)
}

// repeatKey returns the key of the index entry of a release's request.
func repeatKey(parent, caller, requestID string) string {
	return named(Scope(parent), repeatKind, caller+"\x00"+requestID)
}
