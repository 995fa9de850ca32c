package specchange

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/dpareto/dpareto/server/invalid"
)

// wholeMask is the update mask path that stands for all fields.
const wholeMask = "*"

// ApplyMask copies the masked fields of src to dst. All of them must be allowed fields or below one.
func ApplyMask(dst, src proto.Message, mask *fieldmaskpb.FieldMask, allowed []string) error {
	paths := mask.GetPaths()
	if len(paths) == 0 {
		return invalid.Field("update_mask", "must name the fields to change")
	}
	if slices.Equal(paths, []string{wholeMask}) {
		paths = allowed
	}
	var fields invalid.Fields
	for _, path := range paths {
		if reason := unsettable(dst.ProtoReflect().Descriptor(), path, allowed); reason != "" {
			fields.Addf("update_mask", "%.200q %s", path, reason)
			continue
		}
		copyField(dst.ProtoReflect(), src.ProtoReflect(), strings.Split(path, "."))
	}
	return fields.Err()
}

// unsettable returns why an update mask path names no field that can be set, or "".
func unsettable(message protoreflect.MessageDescriptor, path string, allowed []string) string {
	names := strings.Split(path, ".")
	for i, name := range names {
		if message == nil {
			return "is below " + strings.Join(names[:i], ".") + ", which is set as a whole"
		}
		field := message.Fields().ByName(protoreflect.Name(name))
		if field == nil {
			return "is not a field"
		}
		if i == 0 && !slices.Contains(allowed, name) {
			return "cannot be changed, only " + strings.Join(allowed, ", ") + " can"
		}
		message = nil
		if !field.IsList() && !field.IsMap() {
			message = field.Message()
		}
	}
	return ""
}

// copyField copies the field of src at a path to dst.
func copyField(dst, src protoreflect.Message, names []string) {
	field := dst.Descriptor().Fields().ByName(protoreflect.Name(names[0]))
	switch {
	case len(names) > 1 && (dst.Has(field) || src.Has(field)):
		copyField(dst.Mutable(field).Message(), src.Get(field).Message(), names[1:])
	case len(names) > 1: // absent from both
	case src.Has(field):
		dst.Set(field, src.Get(field))
	default:
		dst.Clear(field)
	}
}
