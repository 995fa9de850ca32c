package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

const (
	// unreachableAfter is how long a session tries to reach a server.
	unreachableAfter = 3 * time.Second
	// noticeEvery is the time between two notices that the server cannot be reached.
	noticeEvery = 10 * time.Second
)

// Server is the server that a command calls.
type Server struct {
	env   *command.Env
	flags flags
}

// New returns a server that flags are to name.
func New(env *command.Env) *Server { return &Server{env: env} }

// AddFlags adds the flags of the connection. Omitted settings come from a context.
func (s *Server) AddFlags(cmd *cobra.Command) {
	s.flags.add(cmd.Flags())
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return s.flags.applyContext(cmd.Flags()) }
}

// Address returns the address of the server.
func (s *Server) Address() string { return s.flags.address }

// Dial returns a client of the server.
func (s *Server) Dial(options ...dpareto.Option) (*dpareto.Client, error) {
	options = append(options, s.flags.options()...)
	client, err := dpareto.Dial(s.flags.address, options...)
	if err != nil {
		return nil, command.Usagef("server: %w", err)
	}
	return client, nil
}

// DialPatiently returns a client that waits for the server as long as it is away, and logs
// that now and then.
func (s *Server) DialPatiently(options ...dpareto.Option) (*dpareto.Client, error) {
	return s.Dial(append(options, dpareto.WithRetryNotice(Notice(s.env.Logger, s.flags.address)))...)
}

// ForCompletion returns a client of the server that the flags of a command name, which has not run: its
// environment and context have not been read.
func ForCompletion(env *command.Env, cmd *cobra.Command) (*dpareto.Client, error) {
	server := New(env)
	scratch := new(cobra.Command)
	server.AddFlags(scratch)
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if own := scratch.Flags().Lookup(flag.Name); own != nil {
			_ = own.Value.Set(flag.Value.String()) // which it was given as
			own.Changed = true
		}
	})
	if err := errors.Join(command.ReadEnvironment(scratch.Flags()), server.flags.applyContext(scratch.Flags())); err != nil {
		return nil, err
	}
	return server.Dial()
}

// Close closes a client at the end of its use, when its failure does not matter any more.
func Close(client *dpareto.Client) { _ = client.Close() }

// Session calls a function with a client for a few calls. It gives up soon if the server
// cannot be reached.
func (s *Server) Session(ctx context.Context, calls func(context.Context, *dpareto.Client) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	client, err := s.Dial(dpareto.WithRetryNotice(func(err error) {
		if status.Code(err) == codes.Unavailable && time.Since(start) > unreachableAfter {
			cancel(&UnreachableError{s.flags.address, err})
		}
	}), dpareto.WithDialOptions(grpc.WithChainUnaryInterceptor(showWork(s.env))))
	if err != nil {
		return err
	}
	defer Close(client)
	err = calls(ctx, client)
	if unreachable, ok := errors.AsType[*UnreachableError](context.Cause(ctx)); ok && err != nil {
		return unreachable
	}
	return err
}

// showWork shows on a terminal the server's progress in calls that take longer than a second.
func showWork(env *command.Env) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		label := "waiting for the server …"
		switch service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/"); service {
		case dparetov1.FrontService_ServiceDesc.ServiceName, dparetov1.AnalysisService_ServiceDesc.ServiceName:
			label = "fitting the model …"
		case dparetov1.PrivacyService_ServiceDesc.ServiceName:
			label = "computing ε …"
		}
		defer env.Working(label)()
		return invoke(ctx, method, req, reply, conn, options...)
	}
}

// UnreachableError says that the server could not be called: it is not there, speaks TLS
// where the client does not or the other way round, or has no time or means for calls.
type UnreachableError struct {
	Address string
	Err     error
}

// Error implements error.
func (e *UnreachableError) Error() string {
	message := status.Convert(e.Err).Message()
	switch {
	case strings.Contains(message, "server preface"):
		return fmt.Sprintf("the server at %s does not take plain text (%s); connect with --tls-ca or --tls", e.Address, message)
	case strings.Contains(message, "does not look like a TLS handshake"):
		return fmt.Sprintf("the server at %s does not speak TLS (%s); connect without, or with --plaintext", e.Address, message)
	case strings.Contains(message, "handshake failed"):
		return fmt.Sprintf("no secure connection with the server at %s: %s", e.Address, message)
	case strings.Contains(message, "connection error"), strings.Contains(message, "name resolver"):
		return fmt.Sprintf("no server at %s (%s); start one with dpareto serve, or name another with --server or --context", e.Address, cause(message))
	default: // its own answer
		return fmt.Sprintf("the server at %s is not available: %s", e.Address, message)
	}
}

// cause returns the operating system's error for a connection, without the layers of the program above it.
func cause(message string) string {
	_, quoted, ok := strings.Cut(message, "Error while dialing: ")
	if !ok {
		return message
	}
	return strings.TrimSuffix(quoted, `"`)
}

// Unwrap returns the error of the attempt to connect.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Notice returns a function that logs, now and then, that calls to the server at an address
// are repeated.
func Notice(logger *slog.Logger, address string) func(error) {
	var last atomic.Int64 // Unix time in nanoseconds
	return func(err error) {
		now := time.Now().UnixNano()
		if before := last.Load(); now-before > int64(noticeEvery) && last.CompareAndSwap(before, now) {
			logger.Warn("the server does not answer; trying again", "server", address, "error", status.Convert(err).Message())
		}
	}
}
