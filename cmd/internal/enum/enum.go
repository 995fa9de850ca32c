// Package enum names the values of protobuf enums as people write them: ADD_REMOVE of
// ADJACENCY_ADD_REMOVE is add-remove.
package enum

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpareto/dpareto/clients/go/trainer"
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

// Find returns the number of the value with a name. Underscores and capitals are as good as
// dashes and small letters.
func Find(e protoreflect.EnumDescriptor, text string) (protoreflect.EnumNumber, error) {
	for i := range e.Values().Len() {
		value := e.Values().Get(i)
		if value.Number() != 0 && name(value) == strings.ToLower(strings.ReplaceAll(text, "_", "-")) {
			return value.Number(), nil
		}
	}
	return 0, errors.New("must be " + trainer.Enumerate(Names(e)...))
}

// Var adds a flag with an enum as its value, whose initial value is the default. The usage
// text ends with the names of the values. The flag does not take the values in except.
func Var[E Enum](flags *pflag.FlagSet, value *E, flag, usage string, except ...E) {
	f := &flagValue[E]{value, except}
	flags.Var(f, flag, usage+": "+f.names())
}

// flagValue is a pflag.Value.
type flagValue[E Enum] struct {
	value  *E
	except []E
}

// Names returns the values that the flag takes.
func (f *flagValue[E]) Names() []string {
	return slices.DeleteFunc(Names((*f.value).Descriptor()), func(name string) bool {
		return slices.ContainsFunc(f.except, func(e E) bool { return Name(e) == name })
	})
}

// names lists the values that the flag takes in words.
func (f *flagValue[E]) names() string { return trainer.Enumerate(f.Names()...) }

// String implements pflag.Value.
func (f *flagValue[E]) String() string {
	if f.value == nil || *f.value == 0 {
		return ""
	}
	return Name(*f.value)
}

// Set implements pflag.Value.
func (f *flagValue[E]) Set(text string) error {
	number, err := Find((*f.value).Descriptor(), text)
	if err != nil || slices.Contains(f.except, E(number)) {
		return errors.New("must be " + f.names())
	}
	*f.value = E(number)
	return nil
}

// Type implements pflag.Value.
func (f *flagValue[E]) Type() string { return "string" }
