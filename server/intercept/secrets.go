package intercept

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/study"
)

// guardSecrets refuses calls that would reveal secrets of a study with random stopping.
func (g *Guard) guardSecrets(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := g.checkShown(ctx, info.FullMethod, req); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// guardSecretsStream is guardSecrets for streams.
func (g *Guard) guardSecretsStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(srv, &guardedStream{ServerStream: stream, method: info.FullMethod, guard: g})
}

// guardedStream checks every request of a stream.
type guardedStream struct {
	grpc.ServerStream

	method string
	guard  *Guard
}

// RecvMsg implements grpc.ServerStream.
func (s *guardedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.guard.checkShown(s.Context(), s.method, m)
}

// checkShown refuses a call about a study with random stopping, unless the method reveals no
// results, or an admin of the whole server exports the study, who could copy the store anyway.
func (g *Guard) checkShown(ctx context.Context, method string, req any) error {
	m, known := auth.Lookup(method)
	message, ok := req.(proto.Message)
	if !known || !ok || m.RevealsNoResults ||
		method == dparetov1.AdminService_ExportStudy_FullMethodName && auth.FromContext(ctx).Role >= auth.Admin {
		return nil
	}
	id := resource.StudyID(m.ResourceOf(message.ProtoReflect()))
	if id == "" {
		return nil
	}
	hidden, err := g.isHidden(ctx, id)
	if err == nil && hidden {
		err = study.ErrHidden(resource.StudyName(id))
	}
	return err
}
