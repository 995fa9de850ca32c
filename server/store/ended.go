package store

import (
	"encoding/binary"
)

// PutEnded records the last revision of a deleted study by its uid: what the study published stays
// published. The record belongs to the StoreScope.
func (t *Tx) PutEnded(uid string, revision int64) {
	t.w.Put(named(StoreScope, endedKind, uid), binary.BigEndian.AppendUint64(nil, uint64(revision)))
}

// Ended returns the last revision of a deleted study, 0 if there is no record. The record belongs to
// the StoreScope.
func (t *ReadTx) Ended(uid string) (revision int64, err error) {
	key := named(StoreScope, endedKind, uid)
	value, err := t.r.Get(key)
	if err != nil || value == nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, damaged(key, "has a malformed value")
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}
