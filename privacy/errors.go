package privacy

import (
	"errors"
	"fmt"
	"math"
)

// FieldError is returned when a parameter is outside its domain. Field is the
// parameter's name in lower_snake_case, such as "noise_multiplier"; a field of a
// composition's part is "parts[i].field".
type FieldError struct {
	Field   string
	Message string
}

// Error returns "privacy: field: message".
func (e *FieldError) Error() string { return "privacy: " + e.Field + ": " + e.Message }

// FieldErrors returns every FieldError in the tree of err, in order; none when
// err names no field.
func FieldErrors(err error) []*FieldError {
	switch e := err.(type) { //nolint:errorlint // this function is the traversal.
	case nil:
		return nil
	case *FieldError:
		return []*FieldError{e}
	case interface{ Unwrap() []error }:
		var all []*FieldError
		for _, inner := range e.Unwrap() {
			all = append(all, FieldErrors(inner)...)
		}
		return all
	default:
		return FieldErrors(errors.Unwrap(err))
	}
}

// UnsupportedError is returned when an accountant cannot account a mechanism.
type UnsupportedError struct {
	Accountant string // as Accountant.Name returns it
	Mechanism  string // as Mechanism.Name returns it
	Reason     string
}

// Error returns the refusal and its reason.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("privacy: accountant %s cannot account mechanism %s: %s", e.Accountant, e.Mechanism, e.Reason)
}

// FieldErrorf returns a FieldError for field, with a message formatted as by fmt.Sprintf.
func FieldErrorf(field, format string, args ...any) error {
	return &FieldError{Field: field, Message: fmt.Sprintf(format, args...)}
}

// checkPositive reports an error unless x is positive and finite.
func checkPositive(field string, x float64) error {
	if x > 0 && !math.IsInf(x, 1) {
		return nil
	}
	return FieldErrorf(field, "must be positive and finite, is %g", x)
}

func checkSteps(steps int64) error {
	if steps < 0 {
		return FieldErrorf("steps", "must not be negative, is %d", steps)
	}
	return nil
}

// checkDelta reports an error unless 0 < delta < 1.
func checkDelta(delta float64) error {
	if delta > 0 && delta < 1 {
		return nil
	}
	return FieldErrorf("delta", "must lie strictly between 0 and 1, is %g", delta)
}

// checkAdjacency reports an error unless a is one of the named adjacencies.
func checkAdjacency(a Adjacency) error {
	if a == AddRemove || a == ReplaceOne {
		return nil
	}
	return FieldErrorf("adjacency", "must be %s or %s, is %s", AddRemove, ReplaceOne, a)
}
