package intercept

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/server/failure"
	"github.com/dpareto/dpareto/server/resource"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/call"
	"github.com/dpareto/dpareto/server/store"
)

// slowCall is the duration above which a call is logged.
const slowCall = time.Second

// observe counts and logs calls, and turns errors into status errors.
func (g *Guard) observe(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	method := g.metrics.Method(info.FullMethod)
	start := time.Now()
	method.Begin()
	ctx, about := call.NewContext(ctx)
	describeSpan(ctx, req)
	resp, err := handler(ctx, req)
	reported := failure.Status(err)
	elapsed := time.Since(start)
	code := status.Code(reported)
	method.End(code, elapsed)
	if about.HasOwnID() || err != nil {
		// Whoever asks about a failure can name it. If the header cannot be set the call is
		// over, and nobody asks.
		_ = grpc.SetHeader(ctx, metadata.Pairs(call.RequestIDKey, about.RequestID()))
	}
	g.logCall(ctx, info.FullMethod, req, code, elapsed, err)
	return resp, reported
}

// observeStream is observe for streams.
func (g *Guard) observeStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	method := g.metrics.Method(info.FullMethod)
	start := time.Now()
	method.Begin()
	ctx, _ := call.NewContext(stream.Context())
	observed := &observedStream{ServerStream: stream, ctx: ctx}
	err := handler(srv, observed)
	reported := failure.Status(err)
	elapsed := time.Since(start)
	code := status.Code(reported)
	method.End(code, elapsed)
	g.logCall(ctx, info.FullMethod, observed.request(), code, elapsed, err)
	return reported
}

// observedStream is a stream with the context of the call, and its first request.
type observedStream struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // that of the stream

	mu    sync.Mutex // a request may come after the handler has given up waiting for it
	first any
}

// request returns the first request, nil before it.
func (s *observedStream) request() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// Context implements grpc.ServerStream.
func (s *observedStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *observedStream) RecvMsg(message any) error {
	err := s.ServerStream.RecvMsg(message)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil && err == nil {
		s.first = message
		describeSpan(s.ctx, message)
	}
	return err
}

// logCall logs a call: failures of the server as errors, with their cause; audited calls
// that were refused and slow calls as information; everything else for debugging.
func (g *Guard) logCall(ctx context.Context, method string, req any, code codes.Code, elapsed time.Duration, err error) {
	level, text := slog.LevelDebug, "call"
	switch {
	case isEndless(method) && g.draining.Err() != nil: // and so it has to end
	case errors.Is(err, store.ErrUnwritable): // the log says once why, and when that is over
	case isFault(code):
		level, text = slog.LevelError, "call failed"
	case code != codes.OK && isAudited(method):
		level, text = slog.LevelInfo, "call refused"
	case elapsed > slowCall && !isEndless(method):
		level, text = slog.LevelInfo, "slow call"
	}
	if !g.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", strings.TrimPrefix(method, "/")),
		slog.String("code", code.String()),
		slog.Float64("seconds", elapsed.Seconds()),
	}
	study, trial := subject(req)
	if study != "" {
		attrs = append(attrs, slog.String("study", study))
	}
	if trial != "" {
		attrs = append(attrs, slog.String("trial", trial))
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	g.logger.LogAttrs(ctx, level, text, attrs...)
}

// isFault reports whether a code says that the server, and not its caller, is at fault.
func isFault(code codes.Code) bool {
	switch code {
	case codes.Internal, codes.Unknown, codes.DataLoss, codes.Unavailable:
		return true
	default:
		return false
	}
}

// isAudited reports whether a method, given as /service/method, changes something, or
// takes much away at once.
func isAudited(method string) bool {
	m, ok := auth.Lookup(method)
	return !ok || m.Audited
}

// isEndless reports whether a method streams until its caller ends the call.
func isEndless(method string) bool {
	m, _ := auth.Lookup(method)
	return m.Endless
}

// subject returns the ids of the study and of the trial that a request is about, as far
// as its form tells.
func subject(req any) (study, trial string) {
	name := ""
	switch r := req.(type) {
	case interface{ GetName() string }:
		name = r.GetName()
	case interface{ GetParent() string }:
		name = r.GetParent()
	case interface{ GetStudyId() string }:
		return clip(r.GetStudyId()), ""
	case *dparetov1.UpdateStudyRequest:
		name = r.GetStudy().GetName()
	case *dparetov1.UpdateTrialRequest:
		name = r.GetTrial().GetName()
	}
	study, ok := strings.CutPrefix(name, resource.StudyName(""))
	if !ok {
		return "", ""
	}
	study, trial, _ = strings.Cut(study, "/trials/")
	return clip(study), clip(trial)
}

// clip bounds what a request can write into the log.
func clip(s string) string { return s[:min(len(s), 100)] }

// The attributes of spans.
const (
	studyAttribute = attribute.Key("dpareto.study")
	trialAttribute = attribute.Key("dpareto.trial")
)

// describeSpan adds what a request is about to the span of its call.
func describeSpan(ctx context.Context, req any) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	study, trial := subject(req)
	if study != "" {
		span.SetAttributes(studyAttribute.String(study))
	}
	if trial != "" {
		span.SetAttributes(trialAttribute.String(trial))
	}
}
