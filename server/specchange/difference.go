package specchange

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Differences returns the paths of the fields in which two messages of one type differ. Paths are as
// deep as possible, and sorted.
func Differences(a, b proto.Message) []string {
	var paths []string
	differMessages("", a.ProtoReflect(), b.ProtoReflect(), &paths)
	slices.Sort(paths)
	return paths
}

func differMessages(prefix string, a, b protoreflect.Message, paths *[]string) {
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		path := prefix + string(field.Name())
		switch {
		case a.Has(field) != b.Has(field):
			*paths = append(*paths, path)
		case !a.Has(field):
		case field.IsList():
			differLists(path, field, a.Get(field).List(), b.Get(field).List(), paths)
		case field.Message() != nil && !field.IsMap():
			differMessages(path+".", a.Get(field).Message(), b.Get(field).Message(), paths)
		case !a.Get(field).Equal(b.Get(field)):
			*paths = append(*paths, path)
		}
	}
}

func differLists(path string, field protoreflect.FieldDescriptor, a, b protoreflect.List, paths *[]string) {
	if a.Len() != b.Len() {
		*paths = append(*paths, path)
		return
	}
	for i := range a.Len() {
		element := fmt.Sprintf("%s[%d]", path, i)
		if field.Message() != nil {
			differMessages(element+".", a.Get(i).Message(), b.Get(i).Message(), paths)
		} else if !a.Get(i).Equal(b.Get(i)) {
			*paths = append(*paths, element)
		}
	}
}
