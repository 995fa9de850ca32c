package intercept

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc"

	"github.com/dpareto/dpareto/server/failure"
)

// backstop catches panics in other interceptors.
func (g *Guard) backstop(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	resp, err := recoverPanics(ctx, req, info, handler)
	return resp, reportPanic(ctx, g.logger, info.FullMethod, err)
}

// backstopStream is backstop for streams.
func (g *Guard) backstopStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return reportPanic(stream.Context(), g.logger, info.FullMethod, recoverStreamPanics(srv, stream, info, handler))
}

// reportPanic logs an error if it is a panic, and returns the error for clients.
func reportPanic(ctx context.Context, logger *slog.Logger, method string, err error) error {
	if p, ok := errors.AsType[*failure.PanicError](err); ok {
		logger.LogAttrs(ctx, slog.LevelError, "panic", slog.String("method", method), slog.Any("error", p))
	}
	return failure.Status(err)
}

func recoverPanics(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = failure.Recovered(r)
		}
	}()
	return handler(ctx, req)
}

func recoverStreamPanics(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = failure.Recovered(r)
		}
	}()
	return handler(srv, stream)
}
