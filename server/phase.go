package server

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/health"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/suggest"
)

// instrumentation names the server among the sources of spans.
const instrumentation = "github.com/dpareto/dpareto/server"

// observeWith sets up what counts and traces the server's work.
func (s *Server) observeWith(o Options) {
	s.metrics, s.traces = o.Metrics, o.TracerProvider
	if s.metrics == nil {
		s.metrics = metrics.New(o.Version)
	}
	provider := s.traces
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	s.tracer = provider.Tracer(instrumentation)
	s.health = health.NewServer()
	s.readiness.suspect = make(chan struct{}, 1)
	s.metrics.CountStudies(s.totals)
	if s.store != nil { // tests of what needs none
		s.store.Observe(s.observeUpdate)
	}
}

// phase begins a phase of a suggestion, which ends when the function that it returns is
// called.
func (s *Server) phase(ctx context.Context, name string) func() {
	start := time.Now()
	_, span := s.tracer.Start(ctx, "suggestion "+name)
	return func() {
		span.End()
		s.metrics.Phase(name, time.Since(start))
	}
}

// designerPhases are the names of the phases within designers.
var designerPhases = map[suggest.Phase]string{
	suggest.PhaseFit:    metrics.PhaseFit,
	suggest.PhaseSearch: metrics.PhaseSearch,
}

// withPhases returns the context of a designer, whose phases are measured.
func (s *Server) withPhases(ctx context.Context) context.Context {
	return suggest.WithPhases(ctx, func(phase suggest.Phase, observations int) func() {
		start := time.Now()
		_, span := s.tracer.Start(ctx, "suggestion "+designerPhases[phase], trace.WithAttributes(countAttribute.Int(observations)))
		if phase == suggest.PhaseFit {
			s.metrics.Fitted(observations)
		}
		return func() {
			span.End()
			s.metrics.Phase(designerPhases[phase], time.Since(start))
		}
	})
}

// inTraceOf returns a context within parent that belongs to the trace of the first of
// those who wait for a batch. A batch has one trace: the others see only that they wait.
func inTraceOf(parent context.Context, batch []*demand) context.Context {
	return trace.ContextWithSpan(parent, trace.SpanFromContext(batch[0].ctx))
}

// observeUpdate measures an update of the store.
func (s *Server) observeUpdate(ctx context.Context) (context.Context, func(err error, failed bool)) {
	start := time.Now()
	ctx, span := s.tracer.Start(ctx, "store update") //nolint:spancheck // it ends in the function that is returned
	return ctx, func(err error, failed bool) {       //nolint:spancheck // see above
		if failed {
			span.SetStatus(codes.Error, err.Error())
			s.suspectStore()
		}
		span.End()
		s.metrics.Updated(time.Since(start), failed)
	}
}

// events are what happened to the trials of a study within a transaction. They count once
// it is durable.
type events struct {
	moves     []move
	suggested []*dparetov1.Provenance
	expired   int // leases
}

// move is a change of the state of a trial.
type move struct{ from, to dparetov1.TrialState }

// put notes that a trial which was in state before is written.
func (e *events) put(trial *dparetov1.Trial, before dparetov1.TrialState) {
	if before != trial.GetState() {
		e.moves = append(e.moves, move{before, trial.GetState()})
	}
	if before == dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED && trial.GetOrigin() == dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED {
		e.suggested = append(e.suggested, trial.GetProvenance())
	}
}

// deleted notes that a trial is deleted.
func (e *events) deleted(trial *dparetov1.Trial) {
	e.moves = append(e.moves, move{trial.GetState(), dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED})
}

// noteExpiry counts the lease of a trial that is taken from its worker, or renewed, if it
// has run out.
func (c *change) noteExpiry(record *storev1.TrialRecord) {
	if lease := record.GetTrial().GetLease(); lease != nil && !lease.GetExpireTime().AsTime().After(c.now) {
		c.events.expired++
	}
}

// count counts the events of a committed change.
func (s *Server) count(c *change) {
	if isSearch(c.study.GetStudy()) {
		return // nobody may count its trials
	}
	for _, m := range c.events.moves {
		s.metrics.TrialMoved(m.from, m.to)
		if m.to == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			s.recent.add(c.id, c.study.GetStudy().GetUid())
		}
	}
	for _, p := range c.events.suggested {
		s.metrics.Suggested(p.GetAlgorithm(), p.GetFallbackReason() != "")
	}
	if c.events.expired > 0 {
		s.metrics.LeasesExpired(c.events.expired)
	}
}
