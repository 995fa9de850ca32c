package server

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/store"
)

// guardSecrets refuses calls about studies with random stopping that would show more than
// such a study shows.
func (s *Server) guardSecrets(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := s.checkShown(ctx, info.FullMethod, req); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// guardSecretsStream is guardSecrets for streams.
func (s *Server) guardSecretsStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(srv, &guardedStream{ServerStream: stream, method: info.FullMethod, server: s})
}

// guardedStream looks at every request of a stream.
type guardedStream struct {
	grpc.ServerStream

	method string
	server *Server
}

// RecvMsg implements grpc.ServerStream.
func (g *guardedStream) RecvMsg(m any) error {
	if err := g.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return g.server.checkShown(g.Context(), g.method, m)
}

// checkShown refuses a call about a study with random stopping, unless it is one of those
// that its secrets are safe from, or an export by somebody who administers the whole server
// and could copy the store as well.
func (s *Server) checkShown(ctx context.Context, method string, req any) error {
	m, known := auth.Lookup(method)
	message, ok := req.(proto.Message)
	if !known || !ok || shown[method] ||
		method == dparetov1.AdminService_ExportStudy_FullMethodName && auth.FromContext(ctx).Role >= auth.Admin {
		return nil
	}
	id := studyIn(m.ResourceOf(message.ProtoReflect()))
	if id == "" {
		return nil
	}
	return s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := tx.Study(id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil
		case err == nil && isSearch(record.GetStudy()):
			return errSecret(studyName(id))
		default:
			return err
		}
	})
}
