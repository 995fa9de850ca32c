package intercept

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/dpareto/dpareto/server/invalid"
)

// refuseUnimplemented refuses requests that set an unknown field, rather than ignore the field.
func refuseUnimplemented(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if message, ok := req.(proto.Message); ok {
		if path := invalid.FindUnknown("", message.ProtoReflect()); path != "" {
			return nil, status.Errorf(codes.Unimplemented, "%s is not supported by this version of the server", path)
		}
	}
	return handler(ctx, req)
}
