package store

import (
	"context"
	"errors"
	"time"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
)

// Request returns the stored response to a request id in a scope, or ErrNotFound.
func (t *ReadTx) Request(scope Scope, id string) (*storev1.RequestRecord, error) {
	record := new(storev1.RequestRecord)
	return record, get(t.r, named(scope, requestKind, id), record)
}

// PutRequest stores the response to a request id.
func (t *Tx) PutRequest(scope Scope, id string, record *storev1.RequestRecord) error {
	return put(t.w, named(scope, requestKind, id), record)
}

// maxForgotten bounds the responses removed in one transaction, and so the time that others wait for
// it.
const maxForgotten = 1000

// ForgetRequests removes the responses in a scope older than a time, in several Updates, and returns
// their number.
func (s *Store) ForgetRequests(ctx context.Context, scope Scope, before time.Time) (forgotten int64, err error) {
	for last := ""; ; {
		var old []string
		err := s.View(ctx, func(tx *ReadTx) error {
			return scan(tx.r, scope, requestKind, last, func(key string, value []byte) (bool, error) {
				record := new(storev1.RequestRecord)
				if err := unmarshal(key, value, record); err != nil {
					return false, err
				}
				if record.GetTime().AsTime().Before(before) {
					old = append(old, key)
				}
				return len(old) < maxForgotten, ctx.Err()
			})
		})
		if err != nil || len(old) == 0 {
			return forgotten, err
		}
		_, _, last = split(old[len(old)-1])
		var n int64
		err = s.Update(ctx, In(scope), func(tx *Tx) error {
			n = 0
			for _, key := range old {
				record := new(storev1.RequestRecord) // it may have been written again
				switch err := get(tx.r, key, record); {
				case errors.Is(err, ErrNotFound):
				case err != nil:
					return err
				case record.GetTime().AsTime().Before(before):
					tx.w.Delete(key)
					n++
				}
			}
			return nil
		})
		if err != nil {
			return forgotten, err
		}
		forgotten += n
	}
}
