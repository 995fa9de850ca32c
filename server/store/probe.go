package store

import (
	"context"
	"errors"
)

// Probe writes what is there already, durably: it finds out whether the store can be
// written and changes nothing. No observer sees it.
func (s *Store) Probe(ctx context.Context) error {
	return s.kv.Update(ctx, In(StoreScope), func(w ReadWriter) error {
		value, err := w.Get(formatKey)
		if err != nil {
			return err
		}
		if value == nil {
			return errors.New("store: the record of the format is missing")
		}
		w.Put(formatKey, append([]byte(nil), value...)) // as it is kept
		return nil
	})
}
