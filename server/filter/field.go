package filter

import (
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Kind is the kind of a field's values.
type Kind int

// The kinds of fields.
const (
	// Text is compared byte by byte.
	Text Kind = iota
	// Number is a finite number.
	Number
	// Time is a moment.
	Time
	// Enum is a value of an enumeration, ordered by its number.
	Enum
	// Map holds fields by key: a path that goes on after it names one of them.
	Map
)

// Field is a field of a resource of type T.
type Field[T any] struct {
	Kind Kind
	// Enum is the enumeration of an Enum.
	Enum protoreflect.EnumDescriptor
	// Get returns the value of a resource. It is not called for a Map.
	Get func(T) Value
}

// Fields returns the field with a path, the names between the points, or an error that
// says what is wrong with it.
type Fields[T any] func(path []string) (Field[T], error)

// Value is the value of a field. Its zero value is that of a field that is not set.
type Value struct {
	set    bool
	text   string
	number float64
	time   time.Time
}

// TextValue returns a value of kind Text. An empty text is not set.
func TextValue(text string) Value { return Value{set: text != "", text: text} }

// NumberValue returns a value of kind Number.
func NumberValue(x float64) Value { return Value{set: true, number: x} }

// TimeValue returns a value of kind Time.
func TimeValue(at time.Time) Value { return Value{set: true, time: at} }

// EnumValue returns a value of kind Enum. The value 0 is not set.
func EnumValue(e protoreflect.Enum) Value {
	return Value{set: e.Number() != 0, number: float64(e.Number())}
}
