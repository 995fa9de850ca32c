package dpareto_test

import (
	"path/filepath"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/internal/require"
)

// Calls are spans of the trace of the caller.
func TestTracing(t *testing.T) {
	address, stop, err := startServer("127.0.0.1:0", filepath.Join(t.TempDir(), "test.db"))
	require.NoError(t, err)
	defer stop()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	client, err := dpareto.Dial(address, dpareto.WithTracing(provider))
	require.NoError(t, err)
	ctx, root := provider.Tracer("test").Start(t.Context(), "worker")
	require.NoError(t, require.ErrOf(client.CreateStudy(ctx, "toy", toyStudy(1))))
	root.End()
	require.NoError(t, client.Close())
	found := 0
	for _, span := range spans.GetSpans() {
		if span.Name == "dpareto.v1.StudyService/CreateStudy" && span.SpanKind == trace.SpanKindClient &&
			span.Parent.SpanID() == root.SpanContext().SpanID() {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d spans of the call in %v", found, spans.GetSpans())
	}
}
