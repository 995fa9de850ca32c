// Package enumflag reads the names of enums (see enum) from command lines and files.
package enumflag

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/internal/enum"
)

// Find returns the number of the value with a name. Underscores and capitals are as good as
// dashes and small letters.
func Find(e protoreflect.EnumDescriptor, text string) (protoreflect.EnumNumber, error) {
	for i := range e.Values().Len() {
		value := e.Values().Get(i)
		if value.Number() != 0 && enum.Of(e, value.Number()) == strings.ToLower(strings.ReplaceAll(text, "-", "_")) {
			return value.Number(), nil
		}
	}
	return 0, errors.New("must be " + trainer.Enumerate(enum.Names(e)...))
}

// Var adds a flag with an enum as its value, whose initial value is the default. The usage
// text ends with the names of the values. The flag does not take the values in except.
func Var[E enum.Enum](flags *pflag.FlagSet, value *E, flag, usage string, except ...E) {
	f := &flagValue[E]{value, except}
	flags.Var(f, flag, usage+": "+f.names())
}

// flagValue is a pflag.Value.
type flagValue[E enum.Enum] struct {
	value  *E
	except []E
}

// Names returns the values that the flag takes.
func (f *flagValue[E]) Names() []string {
	return slices.DeleteFunc(enum.Names((*f.value).Descriptor()), func(name string) bool {
		return slices.ContainsFunc(f.except, func(e E) bool { return enum.Name(e) == name })
	})
}

// names lists the values that the flag takes in words.
func (f *flagValue[E]) names() string { return trainer.Enumerate(f.Names()...) }

// String implements pflag.Value.
func (f *flagValue[E]) String() string {
	if f.value == nil || *f.value == 0 {
		return ""
	}
	return enum.Name(*f.value)
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
