// Package invalid builds INVALID_ARGUMENT errors that name every violated field.
package invalid

import (
	"fmt"
	"math"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Bounds on an error: it travels in a header, whose size clients limit.
const (
	shown          = 5   // violations in the message
	maxViolations  = 50  // violations in the details
	maxDescription = 200 // bytes of a path or description

	// maxDetails is the size from which on violations are only counted, in bytes.
	maxDetails = 4 << 10
)

// Fields collects violations. The zero value is empty and ready to use.
type Fields struct {
	violations []*errdetails.BadRequest_FieldViolation
	bytes      int // of their texts
	omitted    int // violations beyond maxViolations or maxDetails
}

// Addf adds a violation of a field, given by its path in the request ("study.spec.metrics[1].id").
func (f *Fields) Addf(field, format string, args ...any) {
	if len(f.violations) == maxViolations || f.bytes >= maxDetails {
		f.omitted++
		return
	}
	v := &errdetails.BadRequest_FieldViolation{Field: truncate(field), Description: truncate(fmt.Sprintf(format, args...))}
	f.bytes += len(v.GetField()) + len(v.GetDescription())
	f.violations = append(f.violations, v)
}

// CheckPositive adds a violation unless a number is positive and finite.
func (f *Fields) CheckPositive(field string, x float64) {
	if !(x > 0) || math.IsInf(x, 1) {
		f.Addf(field, "must be positive and finite, is %g", x)
	}
}

// truncate cuts a text to maxDescription bytes of valid UTF-8.
func truncate(s string) string {
	if len(s) > maxDescription {
		s = s[:maxDescription] + "..."
	}
	return strings.ToValidUTF8(s, "")
}

// Empty reports whether there are no violations.
func (f *Fields) Empty() bool { return f.Len() == 0 }

// Len returns the number of violations.
func (f *Fields) Len() int { return len(f.violations) + f.omitted }

// Err returns nil if there are no violations, otherwise an INVALID_ARGUMENT status error with a
// google.rpc.BadRequest detail of at most 50 violations.
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
	if more := f.Len() - shown; more > 0 {
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
