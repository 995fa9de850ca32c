package cli

import (
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

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
