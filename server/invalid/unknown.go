package invalid

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// FindUnknown returns the path, after prefix, of the first message in message with an unknown field,
// or "".
func FindUnknown(prefix string, message protoreflect.Message) string {
	if len(message.GetUnknown()) > 0 {
		return prefix + "(an unknown field for this version of the server)"
	}
	found := ""
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		path := prefix + string(field.Name())
		switch {
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
				found = unknownValue(fmt.Sprintf("%s[%q]", path, key.String()), field.MapValue(), v)
				return found == ""
			})
		case field.IsList():
			for i := 0; i < value.List().Len() && found == ""; i++ {
				found = unknownValue(fmt.Sprintf("%s[%d]", path, i), field, value.List().Get(i))
			}
		default:
			found = unknownValue(path, field, value)
		}
		return found == ""
	})
	return found
}

// unknownValue searches a single value of a field.
func unknownValue(path string, field protoreflect.FieldDescriptor, value protoreflect.Value) string {
	if field.Kind() != protoreflect.MessageKind && field.Kind() != protoreflect.GroupKind {
		return ""
	}
	return FindUnknown(path+".", value.Message())
}
