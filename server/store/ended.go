package store

import (
	"encoding/binary"
	"fmt"
)

// PutEnded notes the last revision of a study that is deleted, by its uid: what it published
// is published, though its records are gone.
func (t *Tx) PutEnded(uid string, revision int64) {
	t.w.Put(endedPrefix+uid, binary.BigEndian.AppendUint64(nil, uint64(revision)))
}

// Ended returns the last revision of a study that was deleted, 0 if none is noted.
func (t *ReadTx) Ended(uid string) (revision int64, err error) {
	value, err := t.r.Get(endedPrefix + uid)
	if err != nil || value == nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("store: malformed value of %q", endedPrefix+uid)
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}
