package view

import (
	"bytes"
	"encoding/json"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
)

// WriteMessage prints a message as JSON.
func WriteMessage(w io.Writer, message proto.Message) error {
	encoded, err := plain(message.ProtoReflect())
	if err != nil {
		return err
	}
	return indent(w, encoded)
}

// WriteNamed prints messages as a JSON object, in their order.
func WriteNamed(w io.Writer, names []string, messages []proto.Message) error {
	values := make([]any, len(messages))
	for i, message := range messages {
		encoded, err := plain(message.ProtoReflect())
		if err != nil {
			return err
		}
		values[i] = encoded
	}
	encoded, err := output.EncodeObject(names, values)
	if err != nil {
		return err
	}
	return indent(w, encoded)
}

// WriteMessages prints messages as a JSON array.
func WriteMessages[M proto.Message](w io.Writer, messages []M) error {
	elements := make([]json.RawMessage, len(messages))
	for i, message := range messages {
		encoded, err := plain(message.ProtoReflect())
		if err != nil {
			return err
		}
		elements[i] = encoded
	}
	encoded, err := output.Encode(elements)
	if err != nil {
		return err
	}
	return indent(w, encoded)
}

// WriteLine prints a message as one line of JSON.
func WriteLine(w io.Writer, message proto.Message) error {
	encoded, err := plain(message.ProtoReflect())
	if err != nil {
		return err
	}
	_, err = w.Write(append(encoded, '\n'))
	return err
}

// plain returns a message as JSON that needs no knowledge of protobuf: its fields under the names of
// the contract, in their order there, without those that are not set; all numbers as numbers; enums in
// lower case and without their prefix; the value of a parameter as a number or a text. Times and
// durations are texts, as in protobuf's own JSON. Numbers that are not finite are null.
func plain(message protoreflect.Message) (json.RawMessage, error) {
	if value, ok := message.Interface().(*dparetov1.Value); ok {
		return output.Encode(Value(value))
	}
	if message.Descriptor().ParentFile().Package() == "google.protobuf" {
		return protojson.Marshal(message.Interface())
	}
	var names []string
	var values []any
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if !message.Has(field) {
			continue
		}
		value, err := plainField(field, message.Get(field))
		if err != nil {
			return nil, err
		}
		names, values = append(names, field.TextName()), append(values, value)
	}
	return output.EncodeObject(names, values)
}

// plainField returns the value of a field for a JSON encoder.
func plainField(field protoreflect.FieldDescriptor, value protoreflect.Value) (any, error) {
	var err error
	switch {
	case field.IsMap():
		entries := make(map[string]any)
		value.Map().Range(func(key protoreflect.MapKey, entry protoreflect.Value) bool {
			entries[key.String()], err = plainSingle(field.MapValue(), entry)
			return err == nil
		})
		return entries, err
	case field.IsList():
		elements := make([]any, value.List().Len())
		for i := range elements {
			if elements[i], err = plainSingle(field, value.List().Get(i)); err != nil {
				return nil, err
			}
		}
		return elements, nil
	default:
		return plainSingle(field, value)
	}
}

// plainSingle returns one value of a field for a JSON encoder.
func plainSingle(field protoreflect.FieldDescriptor, value protoreflect.Value) (any, error) {
	switch field.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return plain(value.Message())
	case protoreflect.EnumKind:
		return enum.Of(field.Enum(), value.Enum()), nil
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		if x := value.Float(); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, nil
		}
	default:
	}
	return value.Interface(), nil
}

// indent prints JSON for people to read.
func indent(w io.Writer, encoded []byte) error {
	var out bytes.Buffer
	if err := json.Indent(&out, encoded, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err := out.WriteTo(w)
	return err
}

// Print prints a message: as a table, or as JSON.
func Print(p *command.Printer, table *output.Table, message proto.Message) error {
	if p.Format == output.JSON {
		return WriteMessage(p, message)
	}
	return p.Table(table)
}

// PrintAll prints messages: as a table, or as a JSON array.
func PrintAll[M proto.Message](p *command.Printer, table *output.Table, messages []M) error {
	if p.Format == output.JSON {
		return WriteMessages(p, messages)
	}
	return p.Table(table)
}
