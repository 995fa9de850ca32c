package call

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
)

// RequestIDKey is the metadata key of a request's identifier, chosen by the caller.
const RequestIDKey = "x-request-id"

// maxRequestID bounds the length of an identifier, in bytes.
const maxRequestID = 100

// Info is the server's knowledge about a call. It is safe for concurrent use.
type Info struct {
	given     string // by the caller
	random    uint64
	principal atomic.Pointer[string]
}

// key is the context key of an Info.
type key struct{}

// NewContext returns a context for a call, and the new Info in it.
func NewContext(ctx context.Context) (context.Context, *Info) {
	info := &Info{random: rand.Uint64()}
	if ids := metadata.ValueFromIncomingContext(ctx, RequestIDKey); len(ids) > 0 && isPrintable(ids[0]) {
		info.given = ids[0]
	}
	return context.WithValue(ctx, key{}, info), info
}

// FromContext returns the Info of the call that a context belongs to, or nil.
func FromContext(ctx context.Context) *Info {
	info, _ := ctx.Value(key{}).(*Info)
	return info
}

// RequestID returns the caller's identifier, or a random one if there is none.
func (i *Info) RequestID() string {
	if i.given != "" {
		return i.given
	}
	return fmt.Sprintf("%016x", i.random)
}

// HasOwnID reports whether the caller gave the identifier.
func (i *Info) HasOwnID() bool { return i.given != "" }

// SetPrincipal records who makes the call that a context belongs to, if any.
func SetPrincipal(ctx context.Context, name string) {
	if info := FromContext(ctx); info != nil {
		info.principal.Store(&name)
	}
}

// Principal returns who makes the call, "" if unknown.
func (i *Info) Principal() string {
	if name := i.principal.Load(); name != nil {
		return *name
	}
	return ""
}

// isPrintable reports whether an identifier is short and visible ASCII, and so fit for logs and
// headers.
func isPrintable(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// Attrs returns the log attributes of a context's call: request_id, principal and trace_id, if
// known.
func Attrs(ctx context.Context) []slog.Attr {
	var attrs []slog.Attr
	if info := FromContext(ctx); info != nil {
		attrs = append(attrs, slog.String("request_id", info.RequestID()))
		if name := info.Principal(); name != "" {
			attrs = append(attrs, slog.String("principal", name))
		}
	}
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		attrs = append(attrs, slog.String("trace_id", span.TraceID().String()))
	}
	return attrs
}

// handler adds the attributes of the call to log records.
type handler struct{ slog.Handler }

// Handler returns a handler that adds Attrs to each record and passes it to next.
func Handler(next slog.Handler) slog.Handler {
	if _, ok := next.(handler); ok {
		return next
	}
	return handler{next}
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, record slog.Record) error {
	if attrs := Attrs(ctx); len(attrs) > 0 {
		record = record.Clone()
		record.AddAttrs(attrs...)
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
