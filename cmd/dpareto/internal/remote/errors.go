package remote

import (
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

// CallError is the failure of a call that was made with the generated client.
type CallError struct {
	Action string // that failed, such as "list ledgers"
	Err    error
}

// Error implements error.
func (e *CallError) Error() string {
	s := status.Convert(e.Err)
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
	return fmt.Sprintf("%s: %v: %s", e.Action, s.Code(), text)
}

// Unwrap returns the status error.
func (e *CallError) Unwrap() error { return e.Err }
