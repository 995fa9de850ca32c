package server

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/server/store"
)

// interceptors returns what every call passes through, from the outside in. Panics are
// caught twice: those of handlers where observe still sees them as errors, and all others
// before they reach the transport.
func (s *Server) interceptors() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(s.backstop, s.observe, s.authenticate, hideLeaseTokens, s.limitCall, refuseUnimplemented, s.audit, s.guardSecrets, recoverPanics),
		grpc.ChainStreamInterceptor(s.backstopStream, s.observeStream, s.authenticateStream, s.limitStream, s.auditStream, s.guardSecretsStream, recoverStreamPanics),
	}
}

// backstop catches the panics of other interceptors.
func (s *Server) backstop(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	resp, err := recoverPanics(ctx, req, info, handler)
	return resp, s.reportPanic(ctx, info.FullMethod, err)
}

// backstopStream is backstop for streams.
func (s *Server) backstopStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return s.reportPanic(stream.Context(), info.FullMethod, recoverStreamPanics(srv, stream, info, handler))
}

// reportPanic logs an error if it is a panic, and returns the one that clients see.
func (s *Server) reportPanic(ctx context.Context, method string, err error) error {
	if p, ok := errors.AsType[*panicError](err); ok {
		s.logger.LogAttrs(ctx, slog.LevelError, "panic", slog.String("method", method), slog.Any("error", p))
	}
	return toStatus(err)
}

// toStatus maps every error that a handler can return to a status error. What is not
// meant for clients becomes INTERNAL without its text.
func toStatus(err error) error {
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
	default:
		return status.Error(codes.Internal, "internal error; the server's log has the details")
	}
}

// panicError is a panic of a handler; its stack goes to the log.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return "panic" }

// LogValue implements slog.LogValuer.
func (p *panicError) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("panic", p.value), slog.String("stack", string(p.stack)))
}

func recoverPanics(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{r, debug.Stack()}
		}
	}()
	return handler(ctx, req)
}

func recoverStreamPanics(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{r, debug.Stack()}
		}
	}()
	return handler(srv, stream)
}
