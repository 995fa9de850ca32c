// Package enum names the values of protobuf enums as people write them: ADD_REMOVE of
// ADJACENCY_ADD_REMOVE is add-remove.
package enum

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Name returns the name of a value: lower case, without the prefix of its enum, and with
// dashes.
func Name(e protoreflect.Enum) string {
	value := e.Descriptor().Values().ByNumber(e.Number())
	if value == nil { // of a newer server
		return fmt.Sprint(e.Number())
	}
	return name(value)
}

// Underscored returns the name of a value as Name does, with underscores.
func Underscored(e protoreflect.Enum) string { return Of(e.Descriptor(), e.Number()) }

// Of returns the name of the value of an enum with a number as Underscored does, for programs.
func Of(e protoreflect.EnumDescriptor, number protoreflect.EnumNumber) string {
	value := e.Values().ByNumber(number)
	if value == nil { // of a newer server
		return fmt.Sprint(number)
	}
	return strings.ReplaceAll(name(value), "-", "_")
}

func name(value protoreflect.EnumValueDescriptor) string {
	values := value.Parent().(protoreflect.EnumDescriptor).Values()
	prefix := strings.TrimSuffix(string(values.ByNumber(0).Name()), "UNSPECIFIED")
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(string(value.Name()), prefix), "_", "-"))
}

// Enum is the type of the values of an enum.
type Enum interface {
	~int32
	protoreflect.Enum
}

// Names returns the names of all values of an enum but the unspecified one.
func Names(e protoreflect.EnumDescriptor) []string {
	var names []string
	for i := range e.Values().Len() {
		if value := e.Values().Get(i); value.Number() != 0 {
			names = append(names, name(value))
		}
	}
	return names
}
