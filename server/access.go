package server

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/propagation"
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
	"github.com/dpareto/dpareto/server/reload"
)

const (
	// minPing is the shortest time between keepalive pings that clients may send:
	// workers are quiet for as long as a training run takes.
	minPing = 10 * time.Second
	// streamWorkers is the number of goroutines that are kept for calls, whose stacks
	// have grown already. More calls at once get goroutines of their own.
	streamWorkers = 64
	// pingEvery and pingTimeout find clients that vanished.
	pingEvery   = 2 * time.Minute
	pingTimeout = 20 * time.Second
	// handshakeTime bounds the time of a connection before its first call.
	handshakeTime = 20 * time.Second
	// maxConnectionStreams bounds the calls of one connection at a time; more wait at the
	// client.
	maxConnectionStreams = 1000
	// maxHeaderBytes bounds the headers of a call.
	maxHeaderBytes = 16 << 10
)

// access is what decides whether and for how long somebody may call.
type access struct {
	auth     *auth.Authenticator // nil: everybody may do everything
	limits   limit.Limits
	log      *audit.Log // or nil
	reflects bool

	calls, streams *limit.Gate
	healthStreams  *limit.Gate // which take no token, and must not keep out those that do
	failures       limit.Failures

	draining context.Context //nolint:containedctx // ends when Drain is called
	drain    context.CancelFunc
}

func newAccess(o Options) *access {
	limits := o.Limits.OrDefault()
	a := &access{
		auth: o.Auth, limits: limits, log: o.Audit, reflects: !o.NoReflection,
		calls:   limit.NewGate("calls", limits.Calls, limits.CallsPerPrincipal),
		streams: limit.NewGate("streams", limits.Streams, limits.StreamsPerPrincipal),

		healthStreams: limit.NewGate("streams", limits.Streams, limits.StreamsPerPrincipal),
	}
	a.draining, a.drain = context.WithCancel(context.Background())
	return a
}

// serverOptions are the options of every gRPC server over s.
func (s *Server) serverOptions() []grpc.ServerOption {
	options := s.interceptors()
	if s.traces != nil {
		options = append(options, grpc.StatsHandler(otelgrpc.NewServerHandler(
			otelgrpc.WithTracerProvider(s.traces), otelgrpc.WithPropagators(propagation.TraceContext{}))))
	}
	if s.access.auth != nil {
		options = append(options, grpc.InTapHandle(s.greet))
	}
	return append(options,
		grpc.MaxRecvMsgSize(s.access.limits.RequestBytes),
		grpc.MaxConcurrentStreams(maxConnectionStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingEvery, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
	)
}

// greet refuses a call of nobody who is known by its headers: its request, which may never
// come or be large, is not waited for and not decoded. Who makes the others is found out
// again when their request is there.
func (s *Server) greet(ctx context.Context, about *tap.Info) (context.Context, error) {
	m, ok := auth.Lookup(about.FullMethodName)
	if !ok || m.Scope == auth.Public { // unknown methods are refused anyway
		return ctx, nil
	}
	if _, err := s.identify(ctx, about.Header.Get("authorization")); err != nil {
		counted := s.metrics.Method(about.FullMethodName)
		counted.Begin()
		named, _ := call.NewContext(ctx)
		err = s.unauthenticated(named, about.FullMethodName, err)
		counted.End(status.Code(err), 0)
		return ctx, err
	}
	return ctx, nil
}

// caller returns the context of a call with its principal, and without the token.
func (s *Server) caller(ctx context.Context, method string) (context.Context, error) {
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
	if s.access.auth == nil {
		return auth.NewContext(ctx, auth.Anonymous()), nil
	}
	p, err := s.identify(ctx, values)
	if err != nil {
		return nil, s.unauthenticated(ctx, method, err)
	}
	call.SetPrincipal(ctx, p.Name)
	return auth.NewContext(ctx, p), nil
}

// identify returns who presents the values of the authorization header or, without one,
// the certificate of the connection.
func (s *Server) identify(ctx context.Context, authorization []string) (auth.Principal, error) {
	switch len(authorization) {
	case 0:
		return s.access.auth.Authenticate(ctx, "", certificate(ctx))
	case 1:
		token, err := auth.Bearer(authorization[0])
		if err != nil {
			return auth.Principal{}, err
		}
		return s.access.auth.Authenticate(ctx, token, certificate(ctx))
	default:
		return auth.Principal{}, auth.ErrMalformed
	}
}

// certificate returns the certificate of the other end that the transport has verified.
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

// unauthenticated returns the error of a caller that nobody knows. One that fails often is
// told to wait, and not logged.
func (s *Server) unauthenticated(ctx context.Context, method string, err error) error {
	address := peerAddress(ctx)
	host, _, splitErr := net.SplitHostPort(address)
	if splitErr != nil {
		host = address
	}
	if !s.access.failures.Allow(host, s.now()) {
		return limit.Busy("too many failed authentications from this address")
	}
	s.logger.LogAttrs(ctx, slog.LevelWarn, "authentication failed",
		slog.String("method", method), slog.String("peer", address), slog.String("reason", err.Error()))
	return status.Error(codes.Unauthenticated, err.Error())
}

// peerAddress returns the address that a call comes from: of a call that a gateway in this
// process passes on, the one that the gateway saw.
func peerAddress(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return ""
	}
	if p.Addr.Network() == "bufconn" {
		headers, _ := metadata.FromIncomingContext(ctx)
		if forwarded := headers.Get("x-forwarded-for"); len(forwarded) > 0 {
			hops := strings.Split(forwarded[len(forwarded)-1], ",")
			return strings.TrimSpace(hops[len(hops)-1]) // those before are the caller's words
		}
	}
	return p.Addr.String()
}

// authorize returns nil if the caller may make a call, and otherwise the error for it.
func (s *Server) authorize(ctx context.Context, p auth.Principal, method string, req any) error {
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
	if s.auditReady(ctx, method) == nil { // else what is kept until it is would have no end
		s.record(ctx, p, method, message, nil, err)
	}
	return err
}

// authenticate lets those calls through that their caller may make.
func (s *Server) authenticate(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, err := s.caller(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	if err := s.authorize(ctx, auth.FromContext(ctx), info.FullMethod, req); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// authenticateStream is authenticate for streams. It looks at every request, and before
// every answer again at whether the caller still may have it. A stream without an end is
// also ended where there is nothing to answer.
func (s *Server) authenticateStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, err := s.caller(stream.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	if err := s.authorize(ctx, auth.FromContext(ctx), info.FullMethod, nil); err != nil {
		return err
	}
	a := &authorizedStream{ServerStream: stream, ctx: ctx, server: s, method: info.FullMethod}
	if m, _ := auth.Lookup(info.FullMethod); !m.Endless || s.access.auth == nil {
		return handler(srv, a)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.ctx = ctx
	go a.endWithRights(cancel)
	if err = handler(srv, a); err != nil {
		if lost := a.still(a.request()); lost != nil {
			return lost // also in place of news that the caller may not have any more
		}
	}
	return err
}

type authorizedStream struct {
	grpc.ServerStream

	ctx    context.Context //nolint:containedctx // of the stream
	server *Server
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
	return a.ServerStream.SendMsg(withoutLeaseTokens(a.method, m))
}

// request returns the first request, nil before it.
func (a *authorizedStream) request() any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.first
}

// endWithRights calls cancel when the caller may not have the stream any more.
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

// still authorizes again by what the credentials are now.
func (a *authorizedStream) still(req any) error {
	p := auth.FromContext(a.ctx)
	if a.server.access.auth != nil && p.Credential != "" {
		renewed, err := a.server.access.auth.Renew(p)
		if err != nil {
			return status.Error(codes.Unauthenticated, err.Error())
		}
		p = renewed
	}
	return a.server.authorize(a.ctx, p, a.method, req)
}

// limitCall bounds the calls at a time and the time of each.
func (s *Server) limitCall(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if m, ok := auth.Lookup(info.FullMethod); ok && m.Scope == auth.Public {
		return handler(ctx, req) // health is told however busy the server is
	}
	leave, err := s.access.calls.Enter(s.countedAs(ctx))
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, s.access.limits.CallTime)
	defer cancel()
	return handler(ctx, req)
}

// countedAs returns under which name the calls of a caller are counted.
func (s *Server) countedAs(ctx context.Context) string {
	switch p := auth.FromContext(ctx); {
	case p.Credential != "":
		return p.Name
	case s.access.auth != nil: // streams of health checks
		host, _, err := net.SplitHostPort(peerAddress(ctx))
		if err != nil {
			return "unknown"
		}
		return host
	default:
		return ""
	}
}

// limitStream bounds the streams at a time, and ends those without an end when the server
// drains.
func (s *Server) limitStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	m, ok := auth.Lookup(info.FullMethod)
	gate := s.access.streams
	if ok && m.Scope == auth.Public {
		gate = s.access.healthStreams
	}
	leave, err := gate.Enter(s.countedAs(stream.Context()))
	if err != nil {
		return err
	}
	defer leave()
	if !ok || !m.Endless {
		return handler(srv, stream)
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.access.draining, cancel)()
	err = handler(srv, &endlessStream{stream, ctx})
	if err != nil && s.access.draining.Err() != nil && stream.Context().Err() == nil {
		return status.Error(codes.Unavailable, "the server is shutting down")
	}
	return err
}

// endlessStream is a stream that ends when the server drains.
type endlessStream struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // of the stream
}

// Context implements grpc.ServerStream.
func (e *endlessStream) Context() context.Context { return e.ctx }

// RecvMsg implements grpc.ServerStream. A request that never comes does not keep the
// stream open.
func (e *endlessStream) RecvMsg(m any) error {
	received := make(chan error, 1)
	go func() { received <- e.ServerStream.RecvMsg(m) }()
	select {
	case err := <-received:
		return err
	case <-e.ctx.Done():
		return e.ctx.Err() // the handler returns, and with it the pending one
	}
}
