package store

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
)

// Request returns what is remembered of a request that changed something in a scope, by its
// id, or ErrNotFound.
func (t *ReadTx) Request(scope Scope, id string) (*storev1.RequestRecord, error) {
	at, err := t.r.Get(named(scope, requestKind, id))
	if err == nil && at == nil {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	record := new(storev1.RequestRecord)
	return record, get(t.r, named(scope, expiryKind, string(at)+id), record)
}

// PutRequest writes what is remembered of a request, and its index entry.
func (t *Tx) PutRequest(scope Scope, id string, record *storev1.RequestRecord) error {
	index := named(scope, requestKind, id)
	before, err := t.r.Get(index)
	if err != nil {
		return err
	}
	at := timeKey(record.GetTime().AsTime())
	if before != nil && string(before) != at {
		t.w.Delete(named(scope, expiryKind, string(before)+id))
	}
	t.w.Put(index, []byte(at))
	return put(t.w, named(scope, expiryKind, at+id), record)
}

// maxForgotten bounds the answers that one transaction forgets, and so the time that others
// wait for it.
const maxForgotten = 1000

// ForgetRequests removes the requests of a scope from before a time, in several Updates, and
// returns their number.
func (s *Store) ForgetRequests(ctx context.Context, scope Scope, before time.Time) (forgotten int64, err error) {
	end := named(scope, expiryKind, timeKey(before))
	old := func(r Reader, most int) (keys []string, err error) {
		err = scan(r, scope, expiryKind, "", func(key string, _ []byte) (bool, error) {
			if key >= end || len(keys) == most {
				return false, nil
			}
			keys = append(keys, key)
			return true, nil
		})
		return keys, err
	}
	for {
		var keys []string
		err := s.View(ctx, func(tx *ReadTx) (err error) {
			keys, err = old(tx.r, 1)
			return err
		})
		if err != nil || len(keys) == 0 {
			return forgotten, err
		}
		err = s.Update(ctx, In(scope), func(tx *Tx) (err error) {
			if keys, err = old(tx.r, maxForgotten); err != nil {
				return err
			}
			for _, key := range keys {
				tx.w.Delete(key)
				tx.w.Delete(named(scope, requestKind, requestOf(key)))
			}
			return nil
		})
		if err != nil {
			return forgotten, err
		}
		forgotten += int64(len(keys))
	}
}

// timeKey returns a time in a form that sorts. It must not be before 1970.
func timeKey(at time.Time) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano())))
}

// requestOf returns the id of a request by the key of what is remembered.
func requestOf(key string) string {
	_, _, timeAndID := split(key)
	return timeAndID[min(8, len(timeAndID)):]
}

// checkRequests checks that the requests of a scope and their index agree.
func checkRequests(ctx context.Context, tx *ReadTx, scope Scope, faultf func(string, ...any)) error {
	err := scan(tx.r, scope, requestKind, "", func(key string, at []byte) (bool, error) {
		_, _, id := split(key)
		record, err := tx.r.Get(named(scope, expiryKind, string(at)+id))
		if record == nil && err == nil {
			faultf("index of requests has %s, which no request has", describe(key))
		}
		return true, errors.Join(err, ctx.Err())
	})
	if err != nil {
		return err
	}
	return scan(tx.r, scope, expiryKind, "", func(key string, value []byte) (bool, error) {
		id := requestOf(key)
		record := new(storev1.RequestRecord)
		if err := unmarshal(key, value, record); err != nil {
			faultf("%w", err)
			return true, nil
		}
		at, err := tx.r.Get(named(scope, requestKind, id))
		if err == nil && (named(scope, expiryKind, string(at)+id) != key || string(at) != timeKey(record.GetTime().AsTime())) {
			faultf("request %q of %q cannot be found", id, scope)
		}
		return true, errors.Join(err, ctx.Err())
	})
}
