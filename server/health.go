package server

import (
	"errors"
	"fmt"
	"sync"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

const (
	// probeEvery is the time between probes of a store that can be written.
	probeEvery = 10 * time.Second
	// reprobeEvery is that of one that cannot.
	reprobeEvery = time.Second
	// probePatience is how long a probe may take.
	probePatience = 5 * time.Second
)

// errDraining is why a server is not ready that is about to stop.
var errDraining = errors.New("the server is shutting down")

// writingServices are those that are of no use while nothing can be written; "" is the
// server as a whole. The others go on with what there is to read.
var writingServices = []string{
	"",
	dparetov1.StudyService_ServiceDesc.ServiceName,
	dparetov1.ReleaseService_ServiceDesc.ServiceName,
	dparetov1.AdminService_ServiceDesc.ServiceName,
}

// readingServices are the other services.
var readingServices = []string{
	dparetov1.FrontService_ServiceDesc.ServiceName,
	dparetov1.PrivacyService_ServiceDesc.ServiceName,
}

// healthState is what is known of the server's health.
type healthState struct {
	mu       sync.Mutex
	err      error // why the store cannot be written, nil if it can
	draining bool

	suspect chan struct{} // holds an element when an update has failed
}

// Ready returns nil if the server can do all its work, else why it cannot.
func (s *Server) Ready() error {
	s.readiness.mu.Lock()
	defer s.readiness.mu.Unlock()
	if s.readiness.draining {
		return errDraining
	}
	return s.readiness.err
}

// Drain is the first step of a graceful stop: health checks answer NOT_SERVING from now
// on, so that nobody sends new work, and streams without an end (WatchStudy) end with
// UNAVAILABLE. Calls go on.
func (s *Server) Drain() {
	s.readiness.mu.Lock()
	s.readiness.draining = true
	s.readiness.mu.Unlock()
	s.health.Shutdown()
	s.access.drain()
}

// setHealth notes whether the store can be written.
func (s *Server) setHealth(err error) {
	s.readiness.mu.Lock()
	before := s.readiness.err
	s.readiness.err = err
	s.readiness.mu.Unlock()
	s.metrics.Writable(err == nil)
	status := healthv1.HealthCheckResponse_SERVING
	if err != nil {
		status = healthv1.HealthCheckResponse_NOT_SERVING
	}
	for _, service := range writingServices {
		s.health.SetServingStatus(service, status)
	}
	switch {
	case err != nil && before == nil:
		s.logger.ErrorContext(s.background, "the store cannot be written", "error", err)
	case err == nil && before != nil:
		s.logger.InfoContext(s.background, "the store can be written again")
	}
}

// suspectStore has the store probed at once.
func (s *Server) suspectStore() {
	select {
	case s.readiness.suspect <- struct{}{}:
	default: // it will be
	}
}

// watchHealth probes the store until the server is closed.
func (s *Server) watchHealth() {
	s.setHealth(nil) // opening it has written
	for _, service := range readingServices {
		s.health.SetServingStatus(service, healthv1.HealthCheckResponse_SERVING)
	}
	// A write that hangs cannot be abandoned: the next probe waits for it.
	var writing chan error
	interval := probeEvery
	for {
		select {
		case <-s.background.Done():
			return
		case <-s.readiness.suspect:
		case <-time.After(interval):
		}
		if writing == nil {
			writing = make(chan error, 1)
			done := writing
			s.inBackground(func() { done <- s.store.Probe(s.background) })
		}
		err := fmt.Errorf("a write to the store has not ended for %v", probePatience)
		select {
		case err = <-writing:
			writing = nil
		case <-time.After(probePatience):
		case <-s.background.Done():
			continue
		}
		if s.background.Err() != nil {
			continue
		}
		s.setHealth(err)
		interval = probeEvery
		if err != nil {
			interval = reprobeEvery
		}
	}
}
