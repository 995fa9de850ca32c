package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

// usageError is a mistake in the arguments.
type usageError struct{ err error }

// Error implements error.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap returns the mistake.
func (e *usageError) Unwrap() error { return e.err }

// exitCode returns the exit code of a command that ended with err.
func exitCode(err error) int {
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	return exitFailure
}

// explain returns an error as one line for people. An answer of a server is shown with
// all fields that it names.
func explain(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

// callError is the refusal of a call that was made without the client's own methods.
type callError struct {
	action string
	err    error
}

// Error implements error.
func (e *callError) Error() string {
	s := status.Convert(e.err)
	text := s.Message()
	for _, detail := range s.Details() {
		bad, ok := detail.(*errdetails.BadRequest)
		if !ok {
			continue
		}
		var fields []string
		for _, v := range bad.GetFieldViolations() {
			fields = append(fields, v.GetField()+": "+v.GetDescription())
		}
		text = strings.Join(fields, "; ")
	}
	return fmt.Sprintf("%s: %v: %s", e.action, s.Code(), text)
}

// Unwrap returns the status error.
func (e *callError) Unwrap() error { return e.err }
