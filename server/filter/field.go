package filter

import (
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Kind is the type of a field's values.
type Kind int

// Values of Kind.
const (
	// Text compares byte by byte.
	Text Kind = iota
	// Number is a finite number.
	Number
	// Time is a moment.
	Time
	// Enum is an enum value, ordered by its number.
	Enum
	// Map holds fields by key. A longer path names one of them.
	Map
)

// Field is a field of a resource of type T.
type Field[T any] struct {
	Kind Kind
	// Enum describes the enumeration of an Enum.
	Enum protoreflect.EnumDescriptor
	// Get returns the field's value in a resource. It is not called for a Map.
	Get func(T) Value
}

// Fields returns the field at a path of names, or an error that says what is wrong with it.
type Fields[T any] func(path []string) (Field[T], error)

// Value is a value of a field. The zero value means that the field is not set.
type Value struct {
	set    bool
	text   string
	number float64
	time   time.Time
}

// TextValue returns a value of kind Text. Empty text counts as not set.
func TextValue(text string) Value { return Value{set: text != "", text: text} }

// NumberValue returns a value of kind Number.
func NumberValue(x float64) Value { return Value{set: true, number: x} }

// TimeValue returns a value of kind Time.
func TimeValue(at time.Time) Value { return Value{set: true, time: at} }

// EnumValue returns a value of kind Enum. The number 0 counts as not set.
func EnumValue(e protoreflect.Enum) Value {
	return Value{set: e.Number() != 0, number: float64(e.Number())}
}
