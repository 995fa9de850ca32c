package store

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
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
	// Full tells that space is wanting, or a quota.
	Full bool
	// Err is what the operating system or the file format gave.
	Err error
}

// Unwritable returns the error of a write that failed for cause.
func Unwritable(cause error) *UnwritableError {
	// bbolt keeps only the text of some errors.
	is := func(no syscall.Errno) bool {
		return errors.Is(cause, no) || strings.Contains(cause.Error(), no.Error())
	}
	e := &UnwritableError{Reason: "the device reports an error", Err: cause}
	switch {
	case errors.Is(cause, ErrCorrupt):
		e.Reason = "the file is damaged"
	case is(syscall.ENOSPC):
		e.Reason, e.Full = "no space is left on the device", true
	case is(syscall.EDQUOT):
		e.Reason, e.Full = "the disk quota is exceeded", true
	case is(syscall.EFBIG):
		e.Reason, e.Full = "the file has reached the largest size that the system allows", true
	case is(syscall.EROFS):
		e.Reason = "the file system is read-only"
	}
	return e
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
