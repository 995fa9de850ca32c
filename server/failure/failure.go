package failure

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/server/store"
)

// Status maps any error of a handler to a status error. An error not meant for clients becomes
// INTERNAL, without its text.
func Status(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	switch {
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "the call was cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, "the deadline passed")
	case errors.Is(err, store.ErrClosed):
		return status.Error(codes.Unavailable, "the server is shutting down")
	case errors.Is(err, store.ErrUnwritable), errors.Is(err, store.ErrCorrupt):
		return storeStatus(err)
	case errors.Is(err, store.ErrUnavailable):
		return status.Error(codes.Unavailable, "the server cannot reach its database")
	default:
		return status.Error(codes.Internal, "internal error; see the server's log")
	}
}

// storeStatus returns the status of a call that failed because of the store. It gives the reason and
// the damaged record, but no file name.
func storeStatus(err error) error {
	if unwritable, ok := errors.AsType[*store.UnwritableError](err); ok {
		if unwritable.Unknown {
			return status.Errorf(codes.Unavailable,
				"%s: this call may have taken effect; repeat it with the same request_id, which has no second effect", unwritable.Reason)
		}
		return status.Errorf(codes.Unavailable,
			"the server cannot write its store (%s); this call changed nothing, and read-only calls still work", unwritable.Reason)
	}
	what := "it"
	if damage, ok := errors.AsType[*store.DamageError](err); ok {
		what = damage.Record
	}
	return status.Errorf(codes.DataLoss, "the server's store is damaged: %s must be restored from a backup", what)
}

// PanicError is a panic in a handler. Clients see INTERNAL; the log has the stack.
type PanicError struct {
	value any
	stack []byte
}

// Recovered returns the error for a recovered panic. Call it in the deferred function that recovers,
// so that the stack is the panic's.
func Recovered(value any) error { return &PanicError{value, debug.Stack()} }

// Error implements error.
func (p *PanicError) Error() string { return "panic" }

// LogValue implements slog.LogValuer.
func (p *PanicError) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("panic", p.value), slog.String("stack", string(p.stack)))
}
