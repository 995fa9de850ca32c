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
	at, err := t.r.Get(requestPrefix + id)
	if err == nil && at == nil {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	record := new(storev1.RequestRecord)
	return record, get(t.r, expiryPrefix+string(at)+id, record)
}

// PutRequest writes what is remembered of a request, and its index entry.
func (t *Tx) PutRequest(id string, record *storev1.RequestRecord) error {
	before, err := t.r.Get(requestPrefix + id)
	if err != nil {
		return err
	}
	at := timeKey(record.GetTime().AsTime())
	if before != nil && string(before) != at {
		t.w.Delete(expiryPrefix + string(before) + id)
	}
	key := expiryPrefix + at + id
	if last := t.forgotten.Load(); last != nil && key < *last { // the clock was put back
		t.forgotten.Store(nil)
	}
	t.w.Put(requestPrefix+id, []byte(at))
	return put(t.w, key, record)
}

// ForgetRequests removes the oldest requests from before a time, at most limit of them.
func (t *Tx) ForgetRequests(before time.Time, limit int) error {
	// What was forgotten a moment ago may still be in the way.
	start, end := "", expiryPrefix+timeKey(before)
	if last := t.forgotten.Load(); last != nil {
		start = *last
	}
	forgotten := ""
	err := t.r.Scan(expiryPrefix, start, func(key string, _ []byte) (bool, error) {
		if limit == 0 || key >= end {
			return false, nil
		}
		limit--
		t.w.Delete(key)
		t.w.Delete(requestPrefix + requestOf(key))
		forgotten = key
		return true, nil
	})
	if forgotten != "" {
		t.after = append(t.after, func() { t.forgotten.Store(&forgotten) })
	}
	return err
}

// timeKey returns a time in a form that sorts. It must not be before 1970.
func timeKey(at time.Time) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano())))
}

// requestOf returns the id of a request by its key.
func requestOf(key string) string {
	timeAndID := strings.TrimPrefix(key, expiryPrefix)
	return timeAndID[min(8, len(timeAndID)):]
}

// checkRequests checks that requests and their index agree.
func checkRequests(ctx context.Context, tx *ReadTx, faultf func(string, ...any)) error {
	err := tx.r.Scan(requestPrefix, "", func(key string, at []byte) (bool, error) {
		id := strings.TrimPrefix(key, requestPrefix)
		record, err := tx.r.Get(expiryPrefix + string(at) + id)
		if record == nil && err == nil {
			faultf("index of requests has %q, which no request has", key)
		}
		return true, errors.Join(err, ctx.Err())
	})
	if err != nil {
		return err
	}
	return tx.r.Scan(expiryPrefix, "", func(key string, value []byte) (bool, error) {
		id := requestOf(key)
		record := new(storev1.RequestRecord)
		if err := unmarshal(key, value, record); err != nil {
			faultf("%w", err)
			return true, nil
		}
		at, err := tx.r.Get(requestPrefix + id)
		if err == nil && (expiryPrefix+string(at)+id != key || string(at) != timeKey(record.GetTime().AsTime())) {
			faultf("request %q cannot be found", id)
		}
		return true, errors.Join(err, ctx.Err())
	})
}
