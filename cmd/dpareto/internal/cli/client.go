package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

const (
	// unreachableAfter is how long a command of a moment tries to reach a server.
	unreachableAfter = 3 * time.Second
	// noticeEvery is the time between two notices that the server cannot be reached.
	noticeEvery = 10 * time.Second
)

// dial returns a client of the server that the flags name.
func (a *app) dial(options ...dpareto.Option) (*dpareto.Client, error) {
	options = append(options, a.client.options()...)
	client, err := dpareto.Dial(a.client.address, options...)
	if err != nil {
		return nil, command.Usagef("server: %w", err)
	}
	return client, nil
}

// closeClient closes a client at the end of its use, when no failure matters any more.
func closeClient(client *dpareto.Client) { _ = client.Close() }

// session calls a function with a client for a few calls. Where the server cannot be
// reached it does not wait for long.
func (a *app) session(ctx context.Context, calls func(context.Context, *dpareto.Client) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	client, err := a.dial(dpareto.WithRetryNotice(func(err error) {
		if status.Code(err) == codes.Unavailable && time.Since(start) > unreachableAfter {
			cancel(&unreachableError{a.client.address, err})
		}
	}))
	if err != nil {
		return err
	}
	defer closeClient(client)
	err = calls(ctx, client)
	if unreachable, ok := errors.AsType[*unreachableError](context.Cause(ctx)); ok && err != nil {
		return unreachable
	}
	return err
}

// unreachableError says that the server could not be called: it is not there, speaks TLS
// where the client does not or the other way round, or has no time or means for calls.
type unreachableError struct {
	address string
	err     error
}

// Error implements error.
func (e *unreachableError) Error() string {
	message := status.Convert(e.err).Message()
	switch {
	case strings.Contains(message, "server preface"):
		return fmt.Sprintf("the server at %s does not take plain text (%s); connect with --tls-ca or --tls", e.address, message)
	case strings.Contains(message, "does not look like a TLS handshake"):
		return fmt.Sprintf("the server at %s does not speak TLS (%s); connect without, or with --plaintext", e.address, message)
	case strings.Contains(message, "handshake failed"):
		return fmt.Sprintf("no secure connection with the server at %s: %s", e.address, message)
	case strings.Contains(message, "connection error"), strings.Contains(message, "name resolver"):
		return fmt.Sprintf("no server at %s (%s); start one with dpareto serve, or name another with --server", e.address, message)
	default: // its own answer
		return fmt.Sprintf("the server at %s is not available: %s", e.address, message)
	}
}

// Unwrap returns what the attempt to connect gave.
func (e *unreachableError) Unwrap() error { return e.err }

// notice returns a function that logs, now and then, that calls are repeated.
func (a *app) notice() func(error) {
	var last atomic.Int64 // Unix time in nanoseconds
	return func(err error) {
		now := time.Now().UnixNano()
		if before := last.Load(); now-before > int64(noticeEvery) && last.CompareAndSwap(before, now) {
			a.Logger.Warn("the server does not answer; trying again", "server", a.client.address, "error", status.Convert(err).Message())
		}
	}
}
