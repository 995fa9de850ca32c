package space

import "strings"

// FieldError is one violation, named by the field in which it was found, for
// example {Field: "parameters[2].max", Message: "must be at least min"}.
type FieldError struct {
	Field   string
	Message string
}

// Error returns "field: message".
func (e FieldError) Error() string { return e.Field + ": " + e.Message }

// FieldErrors is every violation found in one value, in the order of its
// fields. As an error it is never empty: use [FieldErrors.Err].
type FieldErrors []FieldError

// Add appends a violation.
func (e *FieldErrors) Add(field, message string) {
	*e = append(*e, FieldError{Field: field, Message: message})
}

// Err returns e as an error, or nil when e holds no violation.
func (e FieldErrors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// Error joins the violations with "; ".
func (e FieldErrors) Error() string {
	parts := make([]string, len(e))
	for i, f := range e {
		parts[i] = f.Error()
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns the violations one by one, so that errors.As finds a
// [FieldError].
func (e FieldErrors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, f := range e {
		errs[i] = f
	}
	return errs
}
