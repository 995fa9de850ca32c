package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/server/analysis"
	"github.com/dpareto/dpareto/server/audit"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/background"
	"github.com/dpareto/dpareto/server/call"
	"github.com/dpareto/dpareto/server/clock"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/health"
	"github.com/dpareto/dpareto/server/history"
	"github.com/dpareto/dpareto/server/intercept"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/list"
	"github.com/dpareto/dpareto/server/maintenance"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/publish/private"
	"github.com/dpareto/dpareto/server/publish/release"
	"github.com/dpareto/dpareto/server/spending"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/server/transfer"
)

// instrumentation is the name of the server's tracer.
const instrumentation = "github.com/dpareto/dpareto/server"

// Options configures a Server.
type Options struct {
	// Store keeps the state. Required. The caller closes it after the Server.
	Store *store.Store
	// Version is the program's version, for provenance and GetServerInfo.
	Version string
	// Logger gets a record for every failed or slow call. Default: slog.Default().
	Logger *slog.Logger
	// Metrics counts the server's work. Default: new metrics, which are not served.
	Metrics *metrics.Metrics
	// TracerProvider makes the spans of calls. Default: no tracing.
	TracerProvider trace.TracerProvider
	// Clock tells the time for leases and timestamps. Default: clock.System.
	Clock clock.Clock
	// Auth identifies callers. Default: everyone may do everything.
	Auth *auth.Authenticator
	// Limits bounds what callers may use. Zero fields mean the defaults.
	Limits limit.Limits
	// Audit records changes. Default: nothing is recorded.
	Audit *audit.Log
	// Entropy is the source of all noise in releases. Default: noise.System, the operating system.
	// Anything else is for tests: releases are only as private as it is unpredictable.
	Entropy *noise.Source
	// NoReflection leaves out gRPC server reflection.
	NoReflection bool
	// PageURL is the URL of the page, with the address that the HTTP port listens on, for
	// GetServerInfo. Default: none.
	PageURL string
}

// orDefault returns the options with defaults for fields that are not set.
func (o Options) orDefault() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Logger = slog.New(call.Handler(o.Logger.Handler()))
	if o.Metrics == nil {
		o.Metrics = metrics.New(o.Version)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	o.Clock = clock.Logged(o.Clock, o.Logger)
	if o.Entropy == nil {
		o.Entropy = noise.System()
	}
	o.Limits = o.Limits.OrDefault()
	return o
}

// Server implements the services. It is safe for concurrent use.
type Server struct {
	options    Options
	background *background.Group
	started    time.Time
	watching   sync.Once

	guard    *intercept.Guard
	health   *health.Watch
	services services
}

// services are the parts that implement the calls.
type services struct {
	pool     *pool.Pool
	studies  *study.Studies
	engine   *engine.Engine
	lists    *list.Lists
	fronts   *front.Fronts
	analyses *analysis.Analyses
	ledgers  *ledger.Ledgers
	spending *spending.Spending
	releases *release.Releases
	transfer *transfer.Transfer
}

// New returns a server over a store.
func New(o Options) *Server {
	o = o.orDefault()
	s := &Server{options: o, started: o.Clock.Now(), background: background.New(o.Logger)}
	s.health = health.New(o.Store, o.Logger, o.Metrics, s.background)
	s.services = s.newServices()
	s.guard = intercept.New(intercept.Options{
		Auth: o.Auth, Limits: o.Limits, Audit: o.Audit, IsHidden: s.services.studies.IsHidden, Metrics: o.Metrics, Logger: o.Logger, Now: o.Clock.Now,
	})
	s.background.Go(s.services.studies.Preparations().Resume)
	s.background.Go(maintenance.New(o.Store, o.Logger, clock.Steady(o.Clock), o.Metrics, s.background).Run)
	return s
}

// newServices connects the parts of a server.
func (s *Server) newServices() services {
	o := s.options
	var provider trace.TracerProvider = noop.NewTracerProvider()
	if o.TracerProvider != nil {
		provider = o.TracerProvider
	}
	tracer := provider.Tracer(instrumentation)
	processors := pool.New(pool.Slots(), o.Metrics)
	o.Store.Observe(observeUpdates(tracer, o.Metrics, s.health))
	studies := study.New(study.Options{
		Store: o.Store, Logger: o.Logger, Clock: o.Clock, Limits: o.Limits, Background: s.background, Pool: processors,
		Policies: private.Policies(o.Entropy, o.Logger), Ledgers: ledger.SpecChecks{},
	})
	histories := history.New(studies, o.Store)
	engine := engine.New(engine.Options{
		Studies: studies, Store: o.Store, Histories: histories, Logger: o.Logger, Now: clock.Steady(o.Clock), Background: s.background,
		Metrics: o.Metrics, Pool: processors, Tracer: tracer, Version: o.Version,
	})
	fronts := front.New(front.Options{Studies: studies, Histories: histories, Engine: engine, Background: s.background, Pool: processors})
	front.NewTotals(studies, o.Store, fronts, o.Metrics)
	spending := spending.New(studies, o.Store)
	return services{
		pool:     processors,
		studies:  studies,
		engine:   engine,
		lists:    list.New(studies, o.Store, processors),
		fronts:   fronts,
		analyses: analysis.New(analysis.Options{Fronts: fronts, Engine: engine, Pool: processors}),
		ledgers:  ledger.New(studies, o.Store, o.Clock.Now),
		spending: spending,
		releases: release.New(release.Options{Studies: studies, Store: o.Store, Fronts: fronts, Spending: spending, Entropy: o.Entropy, Now: o.Clock.Now}),
		transfer: transfer.New(transfer.Options{Studies: studies, Store: o.Store, Logger: o.Logger, Now: o.Clock.Now, Background: s.background}),
	}
}

// Close stops background computations and waits for them. Calls that wait for one fail.
func (s *Server) Close() { s.background.Close() }

// Ready returns nil if the server can do all its work, otherwise the reason.
func (s *Server) Ready() error { return s.health.Ready() }

// Drain is the first step of a graceful stop. Health checks answer NOT_SERVING from now on, so that
// clients send no new work, and endless streams (WatchStudy) end with UNAVAILABLE. Other calls
// continue.
func (s *Server) Drain() {
	s.health.Drain()
	s.guard.Drain()
}

// GRPC returns a gRPC server with all services, health checking and, unless NoReflection is set,
// reflection. The options are added to the server's, for example transport credentials.
func (s *Server) GRPC(options ...grpc.ServerOption) *grpc.Server {
	all := s.guard.ServerOptions()
	if traces := s.options.TracerProvider; traces != nil {
		all = append(all, grpc.StatsHandler(otelgrpc.NewServerHandler(
			otelgrpc.WithTracerProvider(traces), otelgrpc.WithPropagators(propagation.TraceContext{}))))
	}
	g := grpc.NewServer(append(all, options...)...)
	s.Register(g)
	s.watching.Do(func() { s.background.Go(s.health.Run) })
	healthv1.RegisterHealthServer(g, s.health.Service())
	if !s.options.NoReflection {
		reflection.Register(g)
	}
	return g
}

// Register adds the services of the contract to a registrar. The registrar must authenticate and
// authorize callers, and put the principal into the context of each call, as GRPC's guard does.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	own := &s.services
	dparetov1.RegisterStudyServiceServer(r, studyService{Studies: own.studies, Trials: study.NewTrials(own.studies), Lists: own.lists, Engine: own.engine})
	dparetov1.RegisterFrontServiceServer(r, frontService{Fronts: own.fronts})
	dparetov1.RegisterAnalysisServiceServer(r, analysisService{Analyses: own.analyses})
	dparetov1.RegisterPrivacyServiceServer(r, privacyService{Studies: own.studies, pool: own.pool, spending: own.spending})
	dparetov1.RegisterReleaseServiceServer(r, releaseService{Releases: own.releases, Ledgers: own.ledgers})
	dparetov1.RegisterAdminServiceServer(r, adminService{options: s.options, started: s.started, Transfer: own.transfer})
}

// observeUpdates measures the updates of a store, and requests a probe if the store fails.
func observeUpdates(tracer trace.Tracer, m *metrics.Metrics, watch *health.Watch) func(context.Context) (context.Context, func(error, bool)) {
	return func(ctx context.Context) (context.Context, func(error, bool)) {
		start := time.Now()
		ctx, span := tracer.Start(ctx, "store update") //nolint:spancheck // the returned function ends it
		return ctx, func(err error, failed bool) {     //nolint:spancheck // see above
			if failed {
				span.SetStatus(codes.Error, err.Error())
				watch.Suspect()
			}
			span.End()
			m.Updated(time.Since(start), failed)
		}
	}
}
