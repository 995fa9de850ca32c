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

// unimplementedFields are the fields and enum values of the contract that this
// version does not support. A request that sets one is refused, never half-obeyed.
var unimplementedFields = map[protoreflect.FullName]bool{
	"dpareto.v1.StudySpec.random_stopping": true,
}

// refuseUnimplemented refuses requests that use what the server does not support.
func refuseUnimplemented(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if message, ok := req.(proto.Message); ok {
		if path := findUnimplemented("", message.ProtoReflect()); path != "" {
			return nil, status.Errorf(codes.Unimplemented, "%s is not supported by this version of the server", path)
		}
	}
	return handler(ctx, req)
}

// findUnimplemented returns the path of the first field below message that is not
// supported, or "".
func findUnimplemented(prefix string, message protoreflect.Message) string {
	if len(message.GetUnknown()) > 0 {
		return prefix + "(a field that this server does not know)"
	}
	found := ""
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		path := prefix + string(field.Name())
		if unimplementedFields[field.FullName()] {
			found = path
			return false
		}
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
	switch field.Kind() {
	case protoreflect.EnumKind:
		// Unknown numbers are left to validation.
		if v := field.Enum().Values().ByNumber(value.Enum()); v != nil && unimplementedFields[v.FullName()] {
			return fmt.Sprintf("%s: %s", path, v.Name())
		}
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return findUnimplemented(path+".", value.Message())
	default:
	}
	return ""
}
