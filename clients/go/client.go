package dpareto

import (
	"context"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// DefaultTimeout is the time limit of one attempt of a call.
const DefaultTimeout = 15 * time.Second

// Client is a connection to a server. It is safe for concurrent use.
//
// Its fields are the generated clients, for everything without a method here. They share
// the connection, its time limits and its retries (see the package documentation), and
// return plain status errors.
type Client struct {
	Studies  dparetov1.StudyServiceClient
	Fronts   dparetov1.FrontServiceClient
	Analyses dparetov1.AnalysisServiceClient
	Privacy  dparetov1.PrivacyServiceClient
	Releases dparetov1.ReleaseServiceClient
	Admin    dparetov1.AdminServiceClient
	// Health asks whether the server serves. Its calls are not retried.
	Health healthv1.HealthClient

	conn  *grpc.ClientConn
	retry *retry
}

// Option configures a Client.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	plaintext bool
	retry     retry
	dial      []grpc.DialOption
	security  security
}

// WithPlaintext also connects without TLS to servers that are not on this machine.
func WithPlaintext() Option {
	return optionFunc(func(c *config) { c.plaintext = true })
}

// WithTimeout sets the time limit of one attempt of a call, which must be positive.
// Calls that may fit a model or account for many runs get eight times as much.
// Default: DefaultTimeout.
func WithTimeout(limit time.Duration) Option {
	if limit <= 0 {
		panic("dpareto: timeout is not positive")
	}
	return optionFunc(func(c *config) { c.retry.timeout = limit })
}

// WithRetryNotice calls notice with the error of every attempt that will be retried, for
// example because the server cannot be reached. notice must be safe for concurrent use.
func WithRetryNotice(notice func(error)) Option {
	return optionFunc(func(c *config) { c.retry.notice = notice })
}

// WithDialOptions adds options of the connection. They come after the client's own,
// so that, for example, transport credentials given here are used.
func WithDialOptions(options ...grpc.DialOption) Option {
	return optionFunc(func(c *config) { c.dial = append(c.dial, options...) })
}

// Dial returns a client of the server at the address, which has the form host:port
// or is any target that gRPC understands, such as unix:///run/dpareto.sock. It does
// not connect: the first call does.
//
// The connection uses TLS with the system's roots, except to addresses of this
// machine (localhost, 127.0.0.0/8, ::1, Unix sockets), where it is plain text unless
// an option asks for TLS (WithTLS, WithCA, WithClientCertificate, WithServerName).
func Dial(address string, options ...Option) (*Client, error) {
	c := config{retry: retry{timeout: DefaultTimeout}}
	for _, o := range options {
		o.apply(&c)
	}
	local, err := isLocal(address)
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w", address, err)
	}
	transport, perCall, err := c.security.credentials(local, c.plaintext)
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w", address, err)
	}
	c.dial = append(perCall, c.dial...)
	conn, err := grpc.NewClient(address, append([]grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithChainUnaryInterceptor(c.retry.intercept),
		// Find a restarted server within about a second.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		// A machine that vanished is noticed when it does not confirm a call or a ping
		// for the timeout. A server with gRPC's default policy takes no more than two
		// pings during one call, so they must be rare.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 90 * time.Second, Timeout: 10 * time.Second}),
		// A page of trials with all their measurements has no useful upper bound.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
	}, c.dial...)...)
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w", address, err)
	}
	return &Client{
		Studies:  dparetov1.NewStudyServiceClient(conn),
		Fronts:   dparetov1.NewFrontServiceClient(conn),
		Analyses: dparetov1.NewAnalysisServiceClient(conn),
		Privacy:  dparetov1.NewPrivacyServiceClient(conn),
		Releases: dparetov1.NewReleaseServiceClient(conn),
		Admin:    dparetov1.NewAdminServiceClient(conn),
		Health:   healthv1.NewHealthClient(conn),
		conn:     conn,
		retry:    &c.retry,
	}, nil
}

// isLocal reports whether an address is on this machine. An address that is neither
// host:port nor a target with a scheme is an error.
func isLocal(address string) (bool, error) {
	if strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "unix-abstract:") {
		return true, nil
	}
	isTarget := strings.Contains(address, "://")
	endpoint := address
	if isTarget {
		endpoint = address[strings.LastIndex(address, "/")+1:]
	}
	host, port, err := net.SplitHostPort(endpoint)
	switch {
	case err == nil && port == "":
		return false, fmt.Errorf("address %s: missing port in address", endpoint)
	case err == nil:
		return host == "" || host == "localhost" || net.ParseIP(host).IsLoopback(), nil
	case isTarget:
		return false, nil // only the resolver of the scheme understands it
	default:
		return false, err
	}
}

// Close closes the connection. Calls in flight fail with code Canceled.
func (c *Client) Close() error { return c.conn.Close() }

// CreateStudy creates a study, or loads the existing one with that id if its spec is
// equal. Only the message's name (which may be empty), display name, description, labels
// and spec matter. If the specs differ the error has the code AlreadyExists and names the
// fields that differ.
func (c *Client) CreateStudy(ctx context.Context, id string, study *dparetov1.Study) (*Study, error) {
	s := c.Study(id)
	_, err := c.Studies.CreateStudy(ctx, &dparetov1.CreateStudyRequest{StudyId: id, Study: study})
	if err != nil {
		return nil, newCallError(ctx, "create "+s.name, err)
	}
	return s, nil
}

// Study returns a handle of the study with an id. It makes no call; the first call shows
// whether the study exists.
func (c *Client) Study(id string) *Study {
	return &Study{client: c, name: "studies/" + id}
}
