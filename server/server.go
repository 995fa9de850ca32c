package server

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/server/accounting"
	"github.com/dpareto/dpareto/server/audit"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/call"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/yield"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/surrogate"
)

// Options configures a Server.
type Options struct {
	// Store keeps the state. Required. The caller closes it after the Server.
	Store *store.Store
	// Version is the version of the program, for provenance and GetServerInfo.
	Version string
	// Logger receives one record for every failed or slow call. Default:
	// slog.Default().
	Logger *slog.Logger
	// Metrics counts what the server does. Default: metrics that nobody reads.
	Metrics *metrics.Metrics
	// TracerProvider makes the spans of calls. Default: there are none.
	TracerProvider trace.TracerProvider
	// Now is the clock of leases and timestamps. Default: time.Now.
	Now func() time.Time
	// Auth tells who calls. Default: everybody may do everything.
	Auth *auth.Authenticator
	// Limits bounds what callers can use. Zero fields mean the defaults.
	Limits limit.Limits
	// Audit records changes. Default: nobody does.
	Audit *audit.Log
	// Entropy is where all noise of releases comes from. Default: noise.System, the
	// operating system. Anything else is for tests: releases are as private as it is
	// unpredictable.
	Entropy *noise.Source
	// NoReflection leaves out gRPC server reflection.
	NoReflection bool
}

// Server implements the services. It is safe for concurrent use.
type Server struct {
	store   *store.Store
	version string
	logger  *slog.Logger
	now     func() time.Time
	started time.Time
	access  *access
	entropy *noise.Source // of releases

	designer func(*spec.Study) suggest.Designer // of a study

	metrics *metrics.Metrics
	traces  trace.TracerProvider // nil for none
	tracer  trace.Tracer
	recent  recentStudies

	health    *health.Server
	readiness healthState
	watching  sync.Once

	studies    studyCache
	suggesters suggesters
	watchers   watchers
	importing  idSet // the studies that calls import or delete

	background context.Context //nolint:containedctx // the lifetime of the server: ends when Close is called
	cancel     context.CancelFunc
	running    sync.WaitGroup // what runs in the background
}

// New returns a server over a store.
func New(o Options) *Server { return newServer(o, designerOf) }

// newServer returns a server with the designers of studies.
func newServer(o Options, designer func(*spec.Study) suggest.Designer) *Server {
	s := &Server{store: o.Store, version: o.Version, logger: o.Logger, now: o.Now, designer: designer}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	s.logger = slog.New(call.Handler(s.logger.Handler()))
	s.observeWith(o)
	if s.now == nil {
		s.now = time.Now
	}
	if s.entropy = o.Entropy; s.entropy == nil {
		s.entropy = noise.System()
	}
	s.studies.limit, s.studies.maximum = maxCachedEvaluations, maxCachedStudies
	s.started = s.now()
	s.access = newAccess(o)
	s.background, s.cancel = context.WithCancel(surrogate.WithWorkers(context.Background(), surrogate.Workers{Max: yield.Processors(), Run: yield.Run}))
	if s.store != nil { // else nothing is kept
		s.inBackground(s.dropImports)
		s.inBackground(s.maintain)
	}
	return s
}

// Close stops the computation of suggestions and waits until it has ended. Calls
// that wait for one fail.
func (s *Server) Close() {
	s.suggesters.mu.Lock() // no new one starts after this
	s.cancel()
	s.suggesters.mu.Unlock()
	s.running.Wait()
}

// inBackground runs fn in a goroutine that Close waits for, or returns false if the
// server is closed.
func (s *Server) inBackground(fn func()) bool {
	s.suggesters.mu.Lock() // as Close does
	defer s.suggesters.mu.Unlock()
	if s.background.Err() != nil {
		return false
	}
	s.running.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				s.logger.ErrorContext(s.background, "panic in the background", "panic", r, "stack", string(debug.Stack()))
			}
		}()
		fn()
	})
	return true
}

// GRPC returns a gRPC server with all services, health checking and, unless the options
// say otherwise, reflection registered. Further options, for example transport
// credentials, can be given.
func (s *Server) GRPC(options ...grpc.ServerOption) *grpc.Server {
	g := grpc.NewServer(append(s.serverOptions(), options...)...)
	dparetov1.RegisterStudyServiceServer(g, &studyService{Server: s})
	dparetov1.RegisterFrontServiceServer(g, &frontService{Server: s})
	dparetov1.RegisterPrivacyServiceServer(g, privacyService{Server: s})
	dparetov1.RegisterReleaseServiceServer(g, &releaseService{Server: s})
	dparetov1.RegisterAdminServiceServer(g, &adminService{Server: s})
	s.watching.Do(func() { s.inBackground(s.watchHealth) })
	healthv1.RegisterHealthServer(g, s.health)
	if s.access.reflects {
		reflection.Register(g)
	}
	return g
}

// studyService implements StudyService.
type studyService struct {
	dparetov1.UnimplementedStudyServiceServer
	*Server
}

// frontService implements FrontService.
type frontService struct {
	dparetov1.UnimplementedFrontServiceServer
	*Server
}

// privacyService implements PrivacyService.
type privacyService struct {
	dparetov1.UnimplementedPrivacyServiceServer
	accounting.Service
	*Server
}

// ComputeEpsilon implements PrivacyService.
func (s privacyService) ComputeEpsilon(ctx context.Context, req *dparetov1.ComputeEpsilonRequest) (*dparetov1.ComputeEpsilonResponse, error) {
	return s.Service.ComputeEpsilon(ctx, req)
}

// CalibrateMechanism implements PrivacyService.
func (s privacyService) CalibrateMechanism(ctx context.Context, req *dparetov1.CalibrateMechanismRequest) (*dparetov1.CalibrateMechanismResponse, error) {
	return s.Service.CalibrateMechanism(ctx, req)
}

// adminService implements AdminService.
type adminService struct {
	dparetov1.UnimplementedAdminServiceServer
	*Server
}
