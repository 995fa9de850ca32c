package store

import (
	"errors"
	"fmt"
)

var (
	// ErrUnwritable is the error of every Update that could not be committed, and of all
	// that follow until the store can be written again. Reads go on. Nothing of a failed
	// Update is left. The error is an *UnwritableError.
	ErrUnwritable = errors.New("store: cannot be written")
	// ErrCorrupt is returned when the store's file is damaged.
	ErrCorrupt = errors.New("store: the file is damaged")
)

// UnwritableError says why a store cannot be written.
type UnwritableError struct {
	// Reason is the cause in a few words, without names of files: it may be shown to
	// anybody.
	Reason string
	// Err is what the operating system or the file format gave.
	Err error
}

// Error implements error.
func (e *UnwritableError) Error() string {
	return fmt.Sprintf("%v: %s: %v", ErrUnwritable, e.Reason, e.Err)
}

// Unwrap returns ErrUnwritable and the cause.
func (e *UnwritableError) Unwrap() []error { return []error{ErrUnwritable, e.Err} }

// Healthy returns nil if the store can be written as far as is known, else why not. It
// costs nothing.
func (s *Store) Healthy() error {
	if kv, ok := s.kv.(interface{ Health() error }); ok {
		return kv.Health()
	}
	return nil
}
