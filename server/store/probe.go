package store

import (
	"context"
	"errors"
)

// Probe rewrites an existing record, durably, to find out whether the store can be written. It
// changes nothing, and observers do not see it.
func (s *Store) Probe(ctx context.Context) error {
	return s.kv.Update(ctx, In(StoreScope), func(w ReadWriter) error {
		value, err := w.Get(formatKey)
		if err != nil {
			return err
		}
		if value == nil {
			return errors.New("store: the format record is missing")
		}
		w.Put(formatKey, append([]byte(nil), value...)) // still sealed
		return nil
	})
}
