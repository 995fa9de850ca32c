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

// CheckPositive returns a FieldError unless x is positive and finite.
func CheckPositive(field string, x float64) error {
	if x > 0 && !math.IsInf(x, 1) {
		return nil
	}
	return FieldErrorf(field, "must be positive and finite, is %g", x)
}

// CheckSteps returns a FieldError for "steps" unless it is at least 0.
func CheckSteps(steps int64) error {
	if steps < 0 {
		return FieldErrorf("steps", "must not be negative, is %d", steps)
	}
	return nil
}

// CheckDelta returns a FieldError for "delta" if DeltaFault finds one.
func CheckDelta(delta float64) error {
	if fault := DeltaFault(delta); fault != "" {
		return FieldErrorf("delta", "%s", fault)
	}
	return nil
}

// DeltaFault returns the fault of a δ that a guarantee is asked for, or "" if it is in [2.3e-308, 1). Numbers below
// lose digits: results computed from them could be less than the truth.
func DeltaFault(delta float64) string {
	const least = 2.3e-308 // subnormal numbers are below 2.23e-308
	switch {
	case !(delta > 0 && delta < 1):
		return fmt.Sprintf("must be in (0, 1), is %g", delta)
	case delta < least:
		return fmt.Sprintf("must be at least %g, is %g: smaller numbers lose digits", least, delta)
	default:
		return ""
	}
}

// CheckAdjacency returns a FieldError for "adjacency" unless a is one of the named adjacencies.
func CheckAdjacency(a Adjacency) error {
	if a == AddRemove || a == ReplaceOne {
		return nil
	}
	return FieldErrorf("adjacency", "must be %s or %s, is %s", AddRemove, ReplaceOne, a)
}

// CheckRuns returns m's validation error, or FieldErrors for "mechanism", "steps" and "adjacency", unless steps
// >= 1 runs of m can be accounted together with what has the guarantee g.
func CheckRuns(g Guarantee, m Mechanism, steps int64) error {
	if m == nil {
		return FieldErrorf("mechanism", "must be set")
	}
	if err := m.Validate(); err != nil {
		return err
	}
	if steps < 1 {
		return FieldErrorf("steps", "must be at least 1, is %d", steps)
	}
	if m.Adjacency() != g.Adjacency {
		return FieldErrorf("adjacency", "is %s, of the accesses so far %s", m.Adjacency(), g.Adjacency)
	}
	return nil
}
