package dpareto

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Errors that workers act on, for errors.Is. The text of the returned error adds the
// server's reason.
var (
	// ErrDone is returned by Ask when the study hands out no more trials: its budget
	// is spent, or its space is exhausted, and no trial can come back.
	ErrDone = errors.New("the study hands out no more trials")

	// ErrStop is returned by Report when the trial should stop, because a user asked for
	// it or the server expects nothing more from the run. The measurement was recorded,
	// and the worker should complete the trial with its results so far. It is also the
	// cause with which KeepAlive's context ends.
	ErrStop = errors.New("the server asks to stop the trial")

	// ErrLeaseLost is returned by the methods of a Trial that the worker no longer holds:
	// the lease ran out and another worker has the trial, or the trial is complete or
	// deleted. The worker should drop the trial and ask for another.
	ErrLeaseLost = errors.New("the lease of the trial is lost")
)

// callError is a failed call: the attempt, the server's answer, and the sentinel that
// it stands for, if any.
type callError struct {
	action string
	status *status.Status
	means  error // a sentinel or the error of the context; or nil
}

// newCallError returns the error of a call that was made to perform the action.
func newCallError(ctx context.Context, action string, err error) *callError {
	return &callError{action: action, status: status.Convert(err), means: ctx.Err()}
}

// Error implements error.
func (e *callError) Error() string {
	text := fmt.Sprintf("%s: %s", e.action, answer(e.status))
	if e.means != nil {
		return fmt.Sprintf("%v: %s", e.means, text)
	}
	return text
}

// Unwrap returns the meaning of the error.
func (e *callError) Unwrap() error { return e.means }

// GRPCStatus makes status.Code and status.FromError work.
func (e *callError) GRPCStatus() *status.Status { return e.status }

// answer returns the text of a status: its code and its message or, if the details name
// them, all invalid fields, of which the message has only the first few.
func answer(s *status.Status) string {
	if s.Code() == codes.InvalidArgument {
		var fields []string
		for _, detail := range s.Details() {
			if bad, ok := detail.(*errdetails.BadRequest); ok {
				for _, v := range bad.GetFieldViolations() {
					fields = append(fields, v.GetField()+": "+v.GetDescription())
				}
			}
		}
		if len(fields) > 0 {
			return fmt.Sprintf("%v: %s", s.Code(), strings.Join(slices.Compact(fields), "; "))
		}
	}
	return fmt.Sprintf("%v: %s", s.Code(), s.Message())
}
