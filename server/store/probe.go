package store

import (
	"context"
	"errors"
)

// Probe writes what is there already, durably: it finds out whether the store can be
// written and changes nothing. No observer sees it.
func (s *Store) Probe(ctx context.Context) error {
	return s.kv.Update(ctx, func(w ReadWriter) error {
		value, err := w.Get(FormatKey)
		if err != nil {
			return err
		}
		if value == nil {
			return errors.New("store: the record of the format is missing")
		}
		w.Put(FormatKey, append([]byte(nil), value...))
		return nil
	})
}
