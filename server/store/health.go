package store

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

var (
	// ErrUnwritable matches the error of an Update whose commit failed, an *UnwritableError. Nothing
	// of the Update is left, unless its Unknown is set. Reads still work.
	ErrUnwritable = errors.New("store: cannot be written")
	// ErrUnavailable matches the error of a View whose database cannot be reached, and of an Update that
	// has not begun because of that.
	ErrUnavailable = errors.New("store: the database cannot be reached")
	// ErrCorrupt matches every error about damage. If the damaged record is known, the error is a
	// *DamageError.
	ErrCorrupt = errors.New("store: damaged")
)

// DamageError is an error about a damaged record.
type DamageError struct {
	// Record names the record, or the study or ledger that has lost one.
	Record string
	// Reason says what is wrong with it.
	Reason string
}

// Error implements error.
func (e *DamageError) Error() string { return fmt.Sprintf("%v: %s %s", ErrCorrupt, e.Record, e.Reason) }

// Unwrap returns ErrCorrupt.
func (e *DamageError) Unwrap() error { return ErrCorrupt }

// damaged returns a DamageError about the record with a key.
func damaged(key, format string, args ...any) error {
	return &DamageError{describe(key), fmt.Sprintf(format, args...)}
}

// UnwritableError says why a store cannot be written.
type UnwritableError struct {
	// Reason is the cause in a few words, without file names: it may be shown to anyone.
	Reason string
	// Full is set if the disk or a quota is full.
	Full bool
	// Unknown is set if the Update may have been committed: the answer of the database was lost.
	Unknown bool
	// Err is the error of the operating system or the file format.
	Err error
}

// Unwritable returns the error of a write that failed with cause.
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
