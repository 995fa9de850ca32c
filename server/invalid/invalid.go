// Package invalid builds INVALID_ARGUMENT errors that name every violated field.
package invalid

import (
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// shown is the number of violations that the error's message repeats; the details
// hold all of them.
const shown = 5

// Fields collects violations. The zero value is empty and ready to use.
type Fields struct {
	violations []*errdetails.BadRequest_FieldViolation
}

// Addf records that a field, given by its path in the request ("study.spec.metrics[1].id"),
// violates a rule.
func (f *Fields) Addf(field, format string, args ...any) {
	f.violations = append(f.violations, &errdetails.BadRequest_FieldViolation{
		Field:       field,
		Description: fmt.Sprintf(format, args...),
	})
}

// Empty reports whether there are no violations.
func (f *Fields) Empty() bool { return len(f.violations) == 0 }

// Len returns the number of violations.
func (f *Fields) Len() int { return len(f.violations) }

// Err returns nil if there are no violations, else a status error with code
// INVALID_ARGUMENT and a google.rpc.BadRequest detail.
func (f *Fields) Err() error {
	if f.Empty() {
		return nil
	}
	var message strings.Builder
	for i, v := range f.violations[:min(shown, len(f.violations))] {
		if i > 0 {
			message.WriteString("; ")
		}
		fmt.Fprintf(&message, "%s: %s", v.GetField(), v.GetDescription())
	}
	if more := len(f.violations) - shown; more > 0 {
		fmt.Fprintf(&message, "; and %d more", more)
	}
	s := status.New(codes.InvalidArgument, message.String())
	if detailed, err := s.WithDetails(&errdetails.BadRequest{FieldViolations: f.violations}); err == nil {
		s = detailed
	}
	return s.Err()
}

// Field returns the error of a single violation.
func Field(field, format string, args ...any) error {
	var f Fields
	f.Addf(field, format, args...)
	return f.Err()
}
