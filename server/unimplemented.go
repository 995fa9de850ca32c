package server

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// refuseUnimplemented refuses requests that set a field which this version does not know:
// they are never half-obeyed.
func refuseUnimplemented(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if message, ok := req.(proto.Message); ok {
		if path := findUnimplemented("", message.ProtoReflect()); path != "" {
			return nil, status.Errorf(codes.Unimplemented, "%s is not supported by this version of the server", path)
		}
	}
	return handler(ctx, req)
}

// findUnimplemented returns the path of the first message below message with a field that
// is not known, or "".
func findUnimplemented(prefix string, message protoreflect.Message) string {
	if len(message.GetUnknown()) > 0 {
		return prefix + "(a field that this server does not know)"
	}
	found := ""
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		path := prefix + string(field.Name())
		switch {
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
				found = unimplementedValue(fmt.Sprintf("%s[%q]", path, key.String()), field.MapValue(), v)
				return found == ""
			})
		case field.IsList():
			for i := 0; i < value.List().Len() && found == ""; i++ {
				found = unimplementedValue(fmt.Sprintf("%s[%d]", path, i), field, value.List().Get(i))
			}
		default:
			found = unimplementedValue(path, field, value)
		}
		return found == ""
	})
	return found
}

// unimplementedValue looks at a single value of a field.
func unimplementedValue(path string, field protoreflect.FieldDescriptor, value protoreflect.Value) string {
	if field.Kind() != protoreflect.MessageKind && field.Kind() != protoreflect.GroupKind {
		return ""
	}
	return findUnimplemented(path+".", value.Message())
}
