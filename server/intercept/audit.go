package intercept

import (
	"context"
	"log/slog"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpareto/dpareto/server/audit"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/failure"
)

// audit records calls that change something, and refuses them if it cannot.
func (g *Guard) audit(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := g.auditReady(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	resp, err := handler(ctx, req)
	request, _ := req.(proto.Message)
	response, _ := resp.(proto.Message)
	g.record(ctx, auth.FromContext(ctx), info.FullMethod, request, response, err)
	return resp, err
}

// auditStream is audit for streams. It records them when they end.
func (g *Guard) auditStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := g.auditReady(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	watched := &auditedStream{ServerStream: stream}
	err := handler(srv, watched)
	watched.mu.Lock()
	defer watched.mu.Unlock()
	g.record(stream.Context(), auth.FromContext(stream.Context()), info.FullMethod, watched.request, watched.response, err)
	return err
}

// auditedStream keeps the first request and the last response of a stream.
type auditedStream struct {
	grpc.ServerStream

	mu                sync.Mutex
	request, response proto.Message
}

// RecvMsg implements grpc.ServerStream.
func (a *auditedStream) RecvMsg(m any) error {
	err := a.ServerStream.RecvMsg(m)
	a.mu.Lock()
	defer a.mu.Unlock()
	if message, ok := m.(proto.Message); ok && err == nil && a.request == nil {
		a.request = message
	}
	return err
}

// SendMsg implements grpc.ServerStream.
func (a *auditedStream) SendMsg(m any) error {
	a.mu.Lock()
	a.response, _ = m.(proto.Message)
	a.mu.Unlock()
	return a.ServerStream.SendMsg(m)
}

// auditReady refuses an audited call while the audit log cannot be written.
func (g *Guard) auditReady(ctx context.Context, method string) error {
	m, ok := auth.Lookup(method)
	if g.log == nil || !ok || !m.Audited {
		return nil
	}
	if err := g.log.Ready(); err != nil {
		g.logger.LogAttrs(ctx, slog.LevelDebug, "refused: audit log not ready", slog.String("method", method), slog.Any("error", err))
		return status.Error(codes.Unavailable, "the audit log cannot be written; changes are refused until it can")
	}
	return nil
}

// record writes a call to the audit log if its method is audited. request and response may be nil.
func (g *Guard) record(ctx context.Context, p auth.Principal, method string, request, response proto.Message, err error) {
	m, ok := auth.Lookup(method)
	if g.log == nil || !ok || !m.Audited || isRehearsal(request) {
		return
	}
	r := audit.Record{
		Time: g.now().UTC(), Principal: p.Name, Credential: p.Credential, Peer: peerAddress(ctx),
		Method: method, Code: status.Code(failure.Status(err)).String(),
	}
	if request != nil {
		r.Resource, r.RequestID = m.ResourceOf(request.ProtoReflect()), audit.RequestID(request.ProtoReflect())
	}
	if response != nil && err == nil {
		r.Changed = audit.ChangedIn(response.ProtoReflect())
	}
	g.log.Write(r)
}

// isRehearsal reports whether a request is validate_only.
func isRehearsal(request proto.Message) bool {
	if request == nil {
		return false
	}
	message := request.ProtoReflect()
	field := message.Descriptor().Fields().ByName("validate_only")
	return field != nil && field.Kind() == protoreflect.BoolKind && message.Get(field).Bool()
}
