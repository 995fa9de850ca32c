package health

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/background"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/store"
)

const (
	// probeEvery is the time between probes of a writable store.
	probeEvery = 10 * time.Second
	// reprobeEvery is the time between probes of a store that cannot be written.
	reprobeEvery = time.Second
	// calm is how long the store must have been writable before the log says so. Near a limit, small
	// writes still succeed between large ones that fail.
	calm = time.Minute
	// probePatience is how long a probe may take.
	probePatience = 5 * time.Second
)

// errDraining says that the server is about to stop.
var errDraining = errors.New("the server is shutting down")

// writingServices are the services that are useless while the store cannot be written. "" is the
// server as a whole.
var writingServices = []string{
	"",
	dparetov1.StudyService_ServiceDesc.ServiceName,
	dparetov1.ReleaseService_ServiceDesc.ServiceName,
	dparetov1.AdminService_ServiceDesc.ServiceName,
}

// readingServices are the services that still work then.
var readingServices = []string{
	dparetov1.FrontService_ServiceDesc.ServiceName,
	dparetov1.AnalysisService_ServiceDesc.ServiceName,
	dparetov1.PrivacyService_ServiceDesc.ServiceName,
}

// Watch tells health checks whether the store can be written. It is safe for concurrent use.
type Watch struct {
	store      *store.Store
	logger     *slog.Logger
	metrics    *metrics.Metrics
	background *background.Group
	services   *health.Server

	mu       sync.Mutex
	err      error // why the store cannot be written, nil if it can
	draining bool
	told     bool      // the log says that the store cannot be written
	failed   time.Time // when a probe failed last

	suspect chan struct{} // receives when an update has failed
}

// New returns a watch of a store. It probes nothing before Run.
func New(db *store.Store, logger *slog.Logger, m *metrics.Metrics, background *background.Group) *Watch {
	return &Watch{store: db, logger: logger, metrics: m, background: background, services: health.NewServer(), suspect: make(chan struct{}, 1)}
}

// Service returns the gRPC health service.
func (h *Watch) Service() healthv1.HealthServer { return h.services }

// Ready returns nil if the server can do all its work, otherwise the reason.
func (h *Watch) Ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		return errDraining
	}
	return h.err
}

// Drain makes health checks answer NOT_SERVING from now on, so that clients send no new work.
func (h *Watch) Drain() {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	h.services.Shutdown()
}

// setHealth records whether the store can be written.
func (h *Watch) setHealth(err error) {
	now := time.Now()
	h.mu.Lock()
	h.err = err
	if err != nil {
		h.failed = now
	}
	begins := err != nil && !h.told
	ends := err == nil && h.told && now.Sub(h.failed) >= calm
	h.told = (h.told || begins) && !ends
	h.mu.Unlock()
	h.metrics.Writable(err == nil)
	status := healthv1.HealthCheckResponse_SERVING
	if err != nil {
		status = healthv1.HealthCheckResponse_NOT_SERVING
	}
	for _, service := range writingServices {
		h.services.SetServingStatus(service, status)
	}
	switch {
	case begins:
		h.logger.ErrorContext(h.background.Context(), "the store cannot be written", "error", err)
	case ends:
		h.logger.InfoContext(h.background.Context(), "the store can be written again")
	}
}

// Suspect requests a probe of the store at once.
func (h *Watch) Suspect() {
	select {
	case h.suspect <- struct{}{}:
	default: // one is already requested
	}
}

// Run probes the store until the server closes.
func (h *Watch) Run() {
	h.setHealth(nil) // opening the store wrote to it
	for _, service := range readingServices {
		h.services.SetServingStatus(service, healthv1.HealthCheckResponse_SERVING)
	}
	// A write that hangs cannot be abandoned: the next probe waits for it.
	var writing chan error
	interval := probeEvery
	for {
		select {
		case <-h.background.Context().Done():
			return
		case <-h.suspect:
		case <-time.After(interval):
		}
		if writing == nil {
			writing = make(chan error, 1)
			done := writing
			h.background.Go(func() { done <- h.store.Probe(h.background.Context()) })
		}
		err := fmt.Errorf("a write to the store has not ended for %v", probePatience)
		select {
		case err = <-writing:
			writing = nil
		case <-time.After(probePatience):
		case <-h.background.Context().Done():
			continue
		}
		if h.background.IsClosed() {
			continue
		}
		h.setHealth(err)
		interval = probeEvery
		if err != nil {
			interval = reprobeEvery
		}
	}
}
