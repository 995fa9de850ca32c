package call_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/dpareto/dpareto/server/call"
)

// incoming returns the context of a call with a request id.
func incoming(t *testing.T, id string) context.Context {
	t.Helper()
	return metadata.NewIncomingContext(t.Context(), metadata.Pairs(call.RequestIDKey, id))
}

func TestRequestID(t *testing.T) {
	_, info := call.NewContext(incoming(t, "retry-17"))
	if !info.HasOwnID() || info.RequestID() != "retry-17" {
		t.Errorf("request id %q", info.RequestID())
	}
	for _, id := range []string{"", "a b", "a\nb", "é", strings.Repeat("x", 101)} {
		ctx, info := call.NewContext(incoming(t, id))
		if info.HasOwnID() || len(info.RequestID()) != 16 {
			t.Errorf("%q: request id %q", id, info.RequestID())
		}
		if first := info.RequestID(); call.FromContext(ctx) != info || info.RequestID() != first {
			t.Errorf("%q: the request id changes", id)
		}
	}
	if call.FromContext(t.Context()) != nil {
		t.Error("there is a call without one")
	}
}

// Records have what is known of the call when they are written, in every form.
func TestHandler(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(call.Handler(call.Handler(slog.NewTextHandler(&log, nil)))).With("a", 1)
	logger.InfoContext(t.Context(), "nobody's")
	ctx, _ := call.NewContext(incoming(t, "r1"))
	logger.InfoContext(ctx, "anonymous")
	call.SetPrincipal(ctx, "alice")
	call.SetPrincipal(t.Context(), "nobody") // no call, no effect
	ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}}))
	logger.InfoContext(ctx, "known")
	want := []string{
		"msg=nobody's a=1",
		"msg=anonymous a=1 request_id=r1",
		"msg=known a=1 request_id=r1 principal=alice trace_id=01000000000000000000000000000000",
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("log:\n%s", log.String())
	}
	for i := range want {
		if !strings.HasSuffix(lines[i], want[i]) {
			t.Errorf("record %q, want %q", lines[i], want[i])
		}
	}
	log.Reset()
	slog.New(call.Handler(slog.NewTextHandler(&log, nil))).WithGroup("g").InfoContext(ctx, "grouped", "b", 2)
	if !strings.Contains(log.String(), "g.b=2 g.request_id=r1") {
		t.Errorf("record %q", log.String())
	}
}
