package store

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
)

// Request returns what is remembered of a request by its id, or ErrNotFound.
func (t *ReadTx) Request(id string) (*storev1.RequestRecord, error) {
	record := new(storev1.RequestRecord)
	return record, get(t.r, requestPrefix+id, record)
}

// PutRequest writes what is remembered of a request, and its index entry.
func (t *Tx) PutRequest(id string, record *storev1.RequestRecord) error {
	before, err := t.Request(id)
	switch {
	case err == nil:
		t.w.Delete(expiryKey(id, before))
	case !errors.Is(err, ErrNotFound):
		return err
	}
	t.w.Put(expiryKey(id, record), nil)
	return put(t.w, requestPrefix+id, record)
}

// ForgetRequests removes the oldest requests from before a time, at most limit of them.
func (t *Tx) ForgetRequests(before time.Time, limit int) error {
	end := expiryPrefix + timeKey(before)
	return t.r.Scan(expiryPrefix, "", func(key string, _ []byte) (bool, error) {
		if limit == 0 || key >= end {
			return false, nil
		}
		limit--
		t.w.Delete(key)
		t.w.Delete(requestPrefix + requestOf(key))
		return true, nil
	})
}

// expiryKey returns the key of the index entry of a request.
func expiryKey(id string, record *storev1.RequestRecord) string {
	return expiryPrefix + timeKey(record.GetTime().AsTime()) + id
}

// timeKey returns a time in a form that sorts. It must not be before 1970.
func timeKey(at time.Time) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano())))
}

// requestOf returns the id of the request that an index entry is of.
func requestOf(key string) string {
	timeAndID := strings.TrimPrefix(key, expiryPrefix)
	return timeAndID[min(8, len(timeAndID)):]
}

// checkRequests checks that requests and their index agree.
func checkRequests(ctx context.Context, tx *ReadTx, faultf func(string, ...any)) error {
	err := tx.r.Scan(requestPrefix, "", func(key string, value []byte) (bool, error) {
		id := strings.TrimPrefix(key, requestPrefix)
		record := new(storev1.RequestRecord)
		if err := unmarshal(key, value, record); err != nil {
			faultf("%w", err)
			return true, nil
		}
		entry, err := tx.r.Get(expiryKey(id, record))
		if entry == nil && err == nil {
			faultf("request %q never expires", id)
		}
		return true, errors.Join(err, ctx.Err())
	})
	if err != nil {
		return err
	}
	return tx.r.Scan(expiryPrefix, "", func(key string, _ []byte) (bool, error) {
		id := requestOf(key)
		value, err := tx.r.Get(requestPrefix + id)
		if err != nil {
			return false, err
		}
		record := new(storev1.RequestRecord)
		if value == nil || unmarshal(key, value, record) == nil && expiryKey(id, record) != key {
			faultf("index of requests has %q, which no request has", key)
		}
		return true, ctx.Err()
	})
}
