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

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/call"
	"github.com/dpareto/dpareto/server/failure"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/store"
)

// slowCall is the duration above which a call is logged as slow.
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
		// The caller can quote the id when asking about a failure. SetHeader fails only if the call
		// is over.
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

// observedStream is a stream with the call's context. It keeps the first request.
type observedStream struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // the stream's

	mu    sync.Mutex // a request may arrive after the handler stopped waiting
	first any
}

// request returns the first request, nil before it arrives.
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

// logCall logs a call: server failures as errors with their cause, refused audited calls and slow
// calls as info, everything else as debug.
func (g *Guard) logCall(ctx context.Context, method string, req any, code codes.Code, elapsed time.Duration, err error) {
	level, text := slog.LevelDebug, "call"
	switch {
	case isEndless(method) && g.draining.Err() != nil: // draining ends endless streams
	case errors.Is(err, store.ErrUnwritable): // the health watch logs once when it starts and when it ends
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
		slog.String("method", clip(strings.TrimPrefix(method, "/"))),
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
	switch {
	case err == nil:
	case isFault(code):
		attrs = append(attrs, slog.Any("error", err))
	default: // the text may repeat the caller's input
		attrs = append(attrs, slog.String("error", clip(err.Error())))
	}
	g.logger.LogAttrs(ctx, level, text, attrs...)
}

// isFault reports whether a code blames the server, not the caller.
func isFault(code codes.Code) bool {
	switch code {
	case codes.Internal, codes.Unknown, codes.DataLoss, codes.Unavailable:
		return true
	default:
		return false
	}
}

// isAudited reports whether a method, given as /service/method, goes to the audit log. Unknown
// methods do.
func isAudited(method string) bool {
	m, ok := auth.Lookup(method)
	return !ok || m.Audited
}

// isEndless reports whether a method streams until its caller ends the call.
func isEndless(method string) bool {
	m, _ := auth.Lookup(method)
	return m.Endless
}

// subject returns the ids of the study and the trial that a request names, "" if there are none.
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

// maxLogged bounds a text from a request in the log, in bytes.
const maxLogged = 256

// clip bounds the text that a request can put into the log.
func clip(s string) string {
	if len(s) <= maxLogged {
		return s
	}
	return strings.ToValidUTF8(s[:maxLogged], "") + "…"
}

// Span attributes.
const (
	studyAttribute = attribute.Key("dpareto.study")
	trialAttribute = attribute.Key("dpareto.trial")
)

// describeSpan adds the subject of a request to the span of its call.
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
