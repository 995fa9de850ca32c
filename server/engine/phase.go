package engine

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/suggest"
)

// countAttribute is the attribute of spans that says how many evaluations a model is fitted to.
const countAttribute = attribute.Key("dpareto.observations")

// studyAttributeKey is the attribute of spans that says whose suggestion is prepared.
const studyAttributeKey = attribute.Key("dpareto.study")

// phase begins a phase of a suggestion, which ends when the function that it returns is
// called.
func (e *Engine) phase(ctx context.Context, name string) func() {
	start := time.Now()
	_, span := e.tracer.Start(ctx, "suggestion "+name)
	return func() {
		span.End()
		e.metrics.Phase(name, time.Since(start))
	}
}

// designerPhases are the names of the phases within designers.
var designerPhases = map[suggest.Phase]string{
	suggest.PhaseFit:    metrics.PhaseFit,
	suggest.PhaseSearch: metrics.PhaseSearch,
}

// withPhases returns the context of a designer, whose phases are measured.
func (e *Engine) withPhases(ctx context.Context) context.Context {
	return suggest.WithPhases(ctx, func(phase suggest.Phase, observations int) func() {
		start := time.Now()
		_, span := e.tracer.Start(ctx, "suggestion "+designerPhases[phase], trace.WithAttributes(countAttribute.Int(observations)))
		if phase == suggest.PhaseFit {
			e.metrics.Fitted(observations)
		}
		return func() {
			span.End()
			e.metrics.Phase(designerPhases[phase], time.Since(start))
		}
	})
}

// inTraceOf returns a context within parent that belongs to the trace of the first of
// those who wait for a batch. A batch has one trace: the others see only that they wait.
func inTraceOf(parent context.Context, batch []*demand) context.Context {
	return trace.ContextWithSpan(parent, trace.SpanFromContext(batch[0].ctx))
}
