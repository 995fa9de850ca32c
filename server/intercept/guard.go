package intercept

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/dpareto/dpareto/server/audit"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/call"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/reload"
)

const (
	// minPing is the shortest time allowed between a client's keepalive pings. Workers are silent
	// for as long as a training run takes.
	minPing = 10 * time.Second
	// streamWorkers is the number of goroutines kept for calls, to reuse their grown stacks. Further
	// concurrent calls get new goroutines.
	streamWorkers = 64
	// pingEvery and pingTimeout detect clients that vanished.
	pingEvery   = 2 * time.Minute
	pingTimeout = 20 * time.Second
	// handshakeTime bounds the time that TLS and HTTP/2 take to begin.
	handshakeTime = 20 * time.Second
	// maxConnectionStreams bounds the concurrent calls on one connection. Further calls wait at the
	// client.
	maxConnectionStreams = 1000
	// maxHeaderBytes bounds the headers of a call.
	maxHeaderBytes = 16 << 10
)

// Options configures a Guard.
type Options struct {
	// Auth identifies callers. Default: everyone may do everything.
	Auth *auth.Authenticator
	// Limits bounds what callers may use. Required.
	Limits limit.Limits
	// Audit records changes. Default: nothing is recorded.
	Audit *audit.Log
	// IsHidden reports whether the study with an id exists and keeps its trials secret. Required.
	IsHidden func(ctx context.Context, id string) (bool, error)
	// Metrics, Logger and Now are required.
	Metrics *metrics.Metrics
	Logger  *slog.Logger
	Now     func() time.Time
}

// Guard decides who may call and for how long, and counts, logs and audits calls. It is safe for
// concurrent use.
type Guard struct {
	auth     *auth.Authenticator // or nil
	limits   limit.Limits
	log      *audit.Log // or nil
	isHidden func(ctx context.Context, id string) (bool, error)
	metrics  *metrics.Metrics
	logger   *slog.Logger
	now      func() time.Time

	calls, streams *limit.Gate

	// Health checks and their streams are open to everyone, so they must not use up the others, nor
	// the streams, which never end, the checks.
	checks, watches *limit.Gate
	failures        limit.Failures

	draining context.Context //nolint:containedctx // ends when Drain is called
	drain    context.CancelFunc
}

// New returns a guard.
func New(o Options) *Guard {
	g := &Guard{
		auth: o.Auth, limits: o.Limits, log: o.Audit, isHidden: o.IsHidden, metrics: o.Metrics, logger: o.Logger, now: o.Now,
		calls:   limit.NewGate("calls", o.Limits.Calls, o.Limits.CallsPerPrincipal),
		streams: limit.NewGate("streams", o.Limits.Streams, o.Limits.StreamsPerPrincipal),

		checks:  limit.NewGate("health checks", o.Limits.Streams, o.Limits.StreamsPerPrincipal),
		watches: limit.NewGate("streams of health checks", o.Limits.Streams, o.Limits.StreamsPerPrincipal),
	}
	g.draining, g.drain = context.WithCancel(context.Background())
	return g
}

// Drain ends endless streams.
func (g *Guard) Drain() { g.drain() }

// ServerOptions returns the options of a gRPC server behind the guard. Panics are caught twice: in
// handlers, so that observe sees them as errors, and around all interceptors, so that none reaches
// the transport.
func (g *Guard) ServerOptions() []grpc.ServerOption {
	options := []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(g.backstop, g.observe, g.authenticate, g.limitCall, refuseUnimplemented, g.audit, g.guardSecrets, recoverPanics),
		grpc.ChainStreamInterceptor(g.backstopStream, g.observeStream, g.authenticateStream, g.limitStream, g.auditStream, g.guardSecretsStream, recoverStreamPanics),
		grpc.MaxRecvMsgSize(g.limits.RequestBytes),
		grpc.MaxConcurrentStreams(maxConnectionStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: g.limits.IdleTime, Time: pingEvery, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
	}
	if g.auth != nil {
		options = append(options, grpc.InTapHandle(g.greet))
	}
	return options
}

// greet refuses an unauthenticated call by its headers alone, without waiting for its request.
// Accepted calls are authenticated again once the request is there.
func (g *Guard) greet(ctx context.Context, about *tap.Info) (context.Context, error) {
	m, ok := auth.Lookup(about.FullMethodName)
	switch {
	case !ok, m.Endless && m.Scope == auth.Public: // refused later, limited later
		return ctx, nil
	case m.Scope == auth.Public:
		return g.greetAnyone(ctx)
	}
	if _, err := g.identify(ctx, about.Header.Get("authorization")); err != nil {
		counted := g.metrics.Method(about.FullMethodName)
		counted.Begin()
		named, _ := call.NewContext(ctx)
		err = g.unauthenticated(named, about.FullMethodName, err)
		counted.End(status.Code(err), 0)
		return ctx, err
	}
	return ctx, nil
}

// greetAnyone limits the number and time of health checks, whose requests may never come.
func (g *Guard) greetAnyone(ctx context.Context) (context.Context, error) {
	leave, err := g.checks.Enter(peerNetwork(ctx))
	if err != nil {
		return ctx, err
	}
	ctx, cancel := context.WithTimeout(ctx, g.limits.IdleTime)
	context.AfterFunc(ctx, func() { // the context ends with the call
		cancel()
		leave()
	})
	return ctx, nil
}

// caller returns the context of a call with its principal and without the token.
func (g *Guard) caller(ctx context.Context, method string) (context.Context, error) {
	headers, _ := metadata.FromIncomingContext(ctx)
	values := headers.Get("authorization")
	if len(values) > 0 {
		headers = headers.Copy()
		headers.Delete("authorization")
		headers.Delete("grpcgateway-authorization") // its copy
		ctx = metadata.NewIncomingContext(ctx, headers)
	}
	if m, ok := auth.Lookup(method); ok && m.Scope == auth.Public {
		return auth.NewContext(ctx, auth.Principal{}), nil
	}
	if g.auth == nil {
		return auth.NewContext(ctx, auth.Anonymous()), nil
	}
	p, err := g.identify(ctx, values)
	if err != nil {
		return nil, g.unauthenticated(ctx, method, err)
	}
	call.SetPrincipal(ctx, p.Name)
	return auth.NewContext(ctx, p), nil
}

// identify authenticates a caller by the authorization header or, without one, by the connection's
// certificate.
func (g *Guard) identify(ctx context.Context, authorization []string) (auth.Principal, error) {
	switch len(authorization) {
	case 0:
		return g.auth.Authenticate(ctx, "", certificate(ctx))
	case 1:
		token, err := auth.Bearer(authorization[0])
		if err != nil {
			return auth.Principal{}, err
		}
		return g.auth.Authenticate(ctx, token, certificate(ctx))
	default:
		return auth.Principal{}, auth.ErrMalformed
	}
}

// certificate returns the client certificate, if the transport has verified one.
func certificate(ctx context.Context) *x509.Certificate {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 || len(info.State.VerifiedChains[0]) == 0 {
		return nil
	}
	return info.State.VerifiedChains[0][0]
}

// unauthenticated returns the error of a caller that is not authenticated. Frequent failures from
// one address get RESOURCE_EXHAUSTED and are not logged.
func (g *Guard) unauthenticated(ctx context.Context, method string, err error) error {
	if !g.failures.Allow(peerNetwork(ctx), g.now()) {
		return limit.Busy("too many failed authentications from this address")
	}
	g.logger.LogAttrs(ctx, slog.LevelWarn, "authentication failed",
		slog.String("method", clip(method)), slog.String("peer", peerAddress(ctx)), slog.String("reason", err.Error()))
	return status.Error(codes.Unauthenticated, err.Error())
}

// peerAddress returns the address a call comes from. For calls from the gateway in this process,
// that is the address the gateway saw.
func peerAddress(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return ""
	}
	if p.Addr.Network() == "bufconn" {
		headers, _ := metadata.FromIncomingContext(ctx)
		if forwarded := headers.Get("x-forwarded-for"); len(forwarded) > 0 {
			hops := strings.Split(forwarded[len(forwarded)-1], ",")
			return strings.TrimSpace(hops[len(hops)-1]) // earlier hops are claims by the caller
		}
	}
	return p.Addr.String()
}

// peerNetwork returns what calls of strangers are counted under: the address that a call comes from
// without its port, for IPv6 its network.
func peerNetwork(ctx context.Context) string {
	host := peerAddress(ctx)
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return limit.Network(address).String()
	}
	return host
}

// authorize returns nil if the caller may make a call, otherwise PERMISSION_DENIED.
func (g *Guard) authorize(ctx context.Context, p auth.Principal, method string, req any) error {
	message, ok := req.(proto.Message)
	var err error
	if ok {
		err = p.Authorize(method, message.ProtoReflect())
	} else {
		err = p.Authorize(method, nil)
	}
	if err == nil {
		return nil
	}
	err = status.Error(codes.PermissionDenied, err.Error())
	if g.auditReady(ctx, method) == nil { // otherwise pending records would pile up
		g.record(ctx, p, method, message, nil, err)
	}
	return err
}

// authenticate lets authorized calls through.
func (g *Guard) authenticate(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, err := g.caller(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	if err := g.authorize(ctx, auth.FromContext(ctx), info.FullMethod, req); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// authenticateStream is authenticate for streams. It checks every request, and checks the caller's
// rights again before every response. Endless streams also end when they are idle and the caller
// loses its rights.
func (g *Guard) authenticateStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, err := g.caller(stream.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	if err := g.authorize(ctx, auth.FromContext(ctx), info.FullMethod, nil); err != nil {
		return err
	}
	a := &authorizedStream{ServerStream: stream, ctx: ctx, guard: g, method: info.FullMethod}
	if m, _ := auth.Lookup(info.FullMethod); !m.Endless || g.auth == nil {
		return handler(srv, a)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.ctx = ctx
	go a.endWithRights(cancel)
	if err = handler(srv, a); err != nil {
		if lost := a.still(a.request()); lost != nil {
			return lost // hide an error that the caller may no longer see
		}
	}
	return err
}

type authorizedStream struct {
	grpc.ServerStream

	ctx    context.Context //nolint:containedctx // the stream's
	guard  *Guard
	method string

	mu    sync.Mutex
	first any // request
}

// Context implements grpc.ServerStream.
func (a *authorizedStream) Context() context.Context { return a.ctx }

// RecvMsg implements grpc.ServerStream.
func (a *authorizedStream) RecvMsg(m any) error {
	if err := a.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	a.mu.Lock()
	if a.first == nil {
		a.first = m
	}
	a.mu.Unlock()
	return a.still(m)
}

// SendMsg implements grpc.ServerStream.
func (a *authorizedStream) SendMsg(m any) error {
	if err := a.still(a.request()); err != nil {
		return err
	}
	return a.ServerStream.SendMsg(m)
}

// request returns the first request, nil before it arrives.
func (a *authorizedStream) request() any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.first
}

// endWithRights calls cancel once the caller has lost its rights to the stream.
func (a *authorizedStream) endWithRights(cancel context.CancelFunc) {
	ticker := time.NewTicker(reload.Every)
	defer ticker.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-ticker.C:
			if a.still(a.request()) != nil {
				cancel()
				return
			}
		}
	}
}

// still authorizes the caller again, with its current credentials.
func (a *authorizedStream) still(req any) error {
	p := auth.FromContext(a.ctx)
	if a.guard.auth != nil && p.Credential != "" {
		renewed, err := a.guard.auth.Renew(p)
		if err != nil {
			return status.Error(codes.Unauthenticated, err.Error())
		}
		p = renewed
	}
	return a.guard.authorize(a.ctx, p, a.method, req)
}

// limitCall bounds the number of concurrent calls and the time of each.
func (g *Guard) limitCall(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if m, ok := auth.Lookup(info.FullMethod); ok && m.Scope == auth.Public {
		return handler(ctx, req) // health checks work however busy the server is
	}
	leave, err := g.calls.Enter(g.countedAs(ctx))
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, g.limits.CallTime)
	defer cancel()
	return handler(ctx, req)
}

// countedAs returns the name that a caller's calls are counted under.
func (g *Guard) countedAs(ctx context.Context) string {
	switch p := auth.FromContext(ctx); {
	case p.Credential != "":
		return p.Name
	case g.auth != nil: // streams of health checks
		return peerNetwork(ctx)
	default:
		return ""
	}
}

// limitStream bounds the number of concurrent streams, and ends endless ones when the server drains.
func (g *Guard) limitStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	m, ok := auth.Lookup(info.FullMethod)
	gate := g.streams
	if ok && m.Scope == auth.Public {
		gate = g.watches
	}
	leave, err := gate.Enter(g.countedAs(stream.Context()))
	if err != nil {
		return err
	}
	defer leave()
	if !ok || !m.Endless {
		return handler(srv, stream)
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(g.draining, cancel)()
	err = handler(srv, &endlessStream{stream, ctx})
	if err != nil && g.draining.Err() != nil && stream.Context().Err() == nil {
		return status.Error(codes.Unavailable, "the server is shutting down")
	}
	return err
}

// endlessStream is a stream that ends when the server drains.
type endlessStream struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // the stream's
}

// Context implements grpc.ServerStream.
func (e *endlessStream) Context() context.Context { return e.ctx }

// RecvMsg implements grpc.ServerStream. It returns when the server drains, even if no request has
// come.
func (e *endlessStream) RecvMsg(m any) error {
	received := make(chan error, 1)
	go func() { received <- e.ServerStream.RecvMsg(m) }()
	select {
	case err := <-received:
		return err
	case <-e.ctx.Done():
		return e.ctx.Err() // once the handler returns, the pending RecvMsg also does
	}
}
