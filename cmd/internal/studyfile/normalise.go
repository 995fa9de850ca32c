package studyfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/dpareto/dpareto/internal/document"
)

// normaliser brings a tree of JSON values into protobuf's JSON mapping of a message, in
// place, and collects what does not fit.
type normaliser struct {
	line   func(path string) int // of a value, 0 if it is unknown
	faults []error
}

func (n *normaliser) addf(path, format string, args ...any) {
	if line := n.line(path); line > 0 {
		path = fmt.Sprintf("line %d: %s", line, path)
	}
	n.faults = append(n.faults, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
}

// message normalises the fields of the message at a path.
func (n *normaliser) message(path string, fields map[string]any, descriptor protoreflect.MessageDescriptor) {
	n.shorthand(path, descriptor, fields)
	chosen := make(map[protoreflect.OneofDescriptor]string)
	given := make(map[protoreflect.FieldDescriptor]string)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		field := findField(descriptor, name)
		switch {
		case field == nil:
			n.addf(at, "unknown field, want one of %s", strings.Join(fieldNames(descriptor), ", "))
			continue
		case given[field] != "":
			n.addf(at, "is given twice, also as %s", given[field])
			continue
		}
		given[field] = name
		if fields[name] == nil { // null means unset
			continue
		}
		if oneof := field.ContainingOneof(); oneof != nil {
			if other, ok := chosen[oneof]; ok {
				n.addf(at, "cannot be combined with %s", other)
			}
			chosen[oneof] = name
		}
		fields[name] = n.field(at, fields[name], field)
	}
}

// findField returns the field of that name, as in the proto file or in JSON, or nil.
func findField(descriptor protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if field := descriptor.Fields().ByTextName(name); field != nil {
		return field
	}
	return descriptor.Fields().ByJSONName(name)
}

func fieldNames(descriptor protoreflect.MessageDescriptor) []string {
	names := make([]string, descriptor.Fields().Len())
	for i := range names {
		names[i] = descriptor.Fields().Get(i).TextName()
	}
	return names
}

// field normalises the whole value of a field.
func (n *normaliser) field(path string, value any, field protoreflect.FieldDescriptor) any {
	switch {
	case field.IsMap():
		entries, ok := value.(map[string]any)
		if !ok {
			n.addf(path, "must be a mapping, is %s", describe(value))
			return value
		}
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			entries[key] = n.single(fmt.Sprintf("%s[%q]", path, key), entries[key], field.MapValue())
		}
	case field.IsList():
		elements, ok := value.([]any)
		if !ok {
			n.addf(path, "must be a list, is %s", describe(value))
			return value
		}
		for i := range elements {
			elements[i] = n.single(indexed(path, i), elements[i], field)
		}
	default:
		return n.single(path, value, field)
	}
	return value
}

// single normalises one value of a field.
func (n *normaliser) single(path string, value any, field protoreflect.FieldDescriptor) any {
	switch {
	case field.Enum() != nil:
		value = expand(value, field.Enum())
	case field.Kind() == protoreflect.StringKind:
		if number, ok := value.(json.Number); ok {
			value = number.String()
		}
	case field.Message() != nil && !isWellKnown(field.Message()):
		fields, ok := valueOf(value, field.Message())
		if !ok {
			n.addf(path, "must be a mapping, is %s", describe(value))
			return value
		}
		n.message(path, fields, field.Message())
		return fields
	default:
		value = n.numbers(path, value)
	}
	n.leaf(path, value, field)
	return value
}

// numbers returns a value with its numbers in JSON's notation.
func (n *normaliser) numbers(path string, value any) any {
	switch v := value.(type) {
	case json.Number:
		number, err := document.Number(v)
		if err != nil {
			n.addf(path, "%s, is %s", err, v)
			return json.Number("0") // one fault is enough
		}
		return number
	case map[string]any:
		for key := range v {
			v[key] = n.numbers(fmt.Sprintf("%s[%q]", path, key), v[key])
		}
	case []any:
		for i := range v {
			v[i] = n.numbers(indexed(path, i), v[i])
		}
	}
	return value
}

// valueOf returns the fields of a message. A Value may be a mere number or text: a number without a point
// is whole.
func valueOf(written any, message protoreflect.MessageDescriptor) (fields map[string]any, ok bool) {
	if message.FullName() == valueName {
		switch v := written.(type) {
		case string:
			return map[string]any{textField: v}, true
		case json.Number:
			if number, err := document.Number(v); err == nil {
				if _, err := number.Int64(); err == nil {
					return map[string]any{wholeField: v}, true
				}
			}
			return map[string]any{numberField: v}, true
		}
	}
	fields, ok = written.(map[string]any)
	return fields, ok
}

// isWellKnown reports whether a message has a special JSON form.
func isWellKnown(message protoreflect.MessageDescriptor) bool {
	return message.ParentFile().Package() == "google.protobuf"
}

// expand returns the full name of an enum value that may be written short.
func expand(value any, enum protoreflect.EnumDescriptor) any {
	written, ok := value.(string)
	if !ok {
		return value
	}
	name := strings.ToUpper(strings.ReplaceAll(written, "-", "_"))
	for _, full := range []string{name, enumPrefix(enum) + name} {
		if enum.Values().ByName(protoreflect.Name(full)) != nil {
			return full
		}
	}
	return value
}

// enumPrefix returns the common prefix of the names of the values of an enum.
func enumPrefix(enum protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(enum.Values().Get(0).Name()), "UNSPECIFIED")
}

// leaf checks a value without fields, by decoding a message that holds only it.
func (n *normaliser) leaf(path string, value any, field protoreflect.FieldDescriptor) {
	if enum := field.Enum(); enum != nil {
		written, ok := value.(string)
		if !ok || enum.Values().ByName(protoreflect.Name(written)) == nil {
			var names []string
			for i := 1; i < enum.Values().Len(); i++ {
				names = append(names, strings.TrimPrefix(string(enum.Values().Get(i).Name()), enumPrefix(enum)))
			}
			n.addf(path, "is %s, want one of %s", describe(value), strings.Join(names, ", "))
		}
		return
	}
	whole := value
	if field.IsList() {
		whole = []any{value}
	}
	encoded, err := json.Marshal(map[string]any{field.TextName(): whole})
	if err == nil {
		err = protojson.Unmarshal(encoded, dynamicpb.NewMessage(field.ContainingMessage()))
	}
	if err == nil {
		return
	}
	hint := ""
	if field.Kind() == protoreflect.StringKind {
		hint = quoteHint(value)
	}
	n.addf(path, "must be %s, is %s%s", kindOf(field), describe(value), hint)
}

// quoteHint is the hint where a string is required.
func quoteHint(value any) string {
	switch value.(type) {
	case bool, nil:
		return " (quote it)"
	default:
		return ""
	}
}

// indexed returns the path of an element of a list.
func indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// kindOf returns what a field takes, in words.
func kindOf(field protoreflect.FieldDescriptor) string {
	switch field.Kind() {
	case protoreflect.StringKind:
		return "a string"
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		return "a number"
	case protoreflect.MessageKind:
		if field.Message().Name() == "Duration" {
			return `a duration in seconds such as "90s"`
		}
		return "a " + strings.ToLower(string(field.Message().Name()))
	default:
		return "a whole number in the range of " + field.Kind().String()
	}
}

// describe returns a value as it is quoted in an error.
func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "empty"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("%.60q", v)
	default:
		return fmt.Sprint(v)
	}
}

// position matches what protojson puts before its errors: a prefix with a varying space, and
// a place in converted JSON, which the user never saw.
var position = regexp.MustCompile(`^proto:\s*(\(line \d+:\d+\):\s*)?`)

// plain returns an error of protojson as text.
func plain(err error) string {
	return position.ReplaceAllString(strings.ReplaceAll(err.Error(), "\u00a0", " "), "")
}
