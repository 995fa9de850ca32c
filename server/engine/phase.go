package engine

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/suggest"
)

// countAttribute is the span attribute with the number of evaluations a model is fitted to.
const countAttribute = attribute.Key("dpareto.observations")

// studyAttributeKey is the span attribute with the study whose suggestion is prepared.
const studyAttributeKey = attribute.Key("dpareto.study")

// phases measures and traces the phases of suggestions.
type phases struct {
	tracer  trace.Tracer
	metrics *metrics.Metrics
}

// phase starts a phase of a suggestion. The returned function ends it.
func (p *phases) phase(ctx context.Context, name string) func() {
	start := time.Now()
	_, span := p.tracer.Start(ctx, "suggestion "+name)
	return func() {
		span.End()
		p.metrics.Phase(name, time.Since(start))
	}
}

// designerPhases are the metric names of phases inside designers.
var designerPhases = map[suggest.Phase]string{
	suggest.PhaseFit:    metrics.PhaseFit,
	suggest.PhaseSearch: metrics.PhaseSearch,
}

// withPhases returns a context that measures the phases of a designer.
func (p *phases) withPhases(ctx context.Context) context.Context {
	return suggest.WithPhases(ctx, func(phase suggest.Phase, observations int) func() {
		start := time.Now()
		_, span := p.tracer.Start(ctx, "suggestion "+designerPhases[phase], trace.WithAttributes(countAttribute.Int(observations)))
		if phase == suggest.PhaseFit {
			p.metrics.Fitted(observations)
		}
		return func() {
			span.End()
			p.metrics.Phase(designerPhases[phase], time.Since(start))
		}
	})
}

// inTraceOf returns a context within parent in the trace of a batch's first demand. The other
// demands' traces show only that they wait.
func inTraceOf(parent context.Context, batch []*demand) context.Context {
	return trace.ContextWithSpan(parent, trace.SpanFromContext(batch[0].ctx))
}
