package filter

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// anything matches any value after a colon, and any text at either end of a pattern.
const anything = "*"

// compile returns a filter that compares a field with a value.
func compile[T any](fields Fields[T], path []string, operator string, value token) (Filter[T], error) {
	field, err := fields(path)
	if err != nil {
		return nil, err
	}
	name := strings.Join(path, ".")
	if field.Kind == Map {
		if operator != ":" || value.text == anything {
			return nil, fmt.Errorf("%s is a map: %s.key = value compares an entry, %s:key tests for one", name, name, name)
		}
		if field, err = fields(append(slices.Clone(path), value.text)); err != nil {
			return nil, err
		}
		value.text, value.kind = anything, word
	}
	if operator == ":" && value.kind == word && value.text == anything {
		return func(resource T) bool { return field.Get(resource).set }, nil
	}
	matches, err := matcher(field.Kind, field.Enum, operator, value.text)
	if err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	return func(resource T) bool {
		v := field.Get(resource)
		return v.set && matches(v)
	}, nil
}

// matcher returns a comparison of values that are set.
func matcher(kind Kind, enum protoreflect.EnumDescriptor, operator, literal string) (func(Value) bool, error) {
	switch kind {
	case Text:
		return textMatcher(operator, literal), nil
	case Number:
		x, err := strconv.ParseFloat(literal, 64)
		if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
			return nil, fmt.Errorf("is a number, but %.40q is not", literal)
		}
		holds := ordered(operator)
		return func(v Value) bool { return holds(cmp.Compare(v.number, x)) }, nil
	case Time:
		at, err := time.Parse(time.RFC3339Nano, literal)
		if err != nil {
			return nil, fmt.Errorf("is a time in quotes, such as \"2026-01-02T15:04:05Z\", but %.40q is not", literal)
		}
		holds := ordered(operator)
		return func(v Value) bool { return holds(v.time.Compare(at)) }, nil
	default:
		number, err := enumNumber(enum, literal)
		if err != nil {
			return nil, err
		}
		if strings.ContainsAny(operator, "<>") {
			return nil, errors.New("has no order, and can only be compared with = and !=")
		}
		holds := ordered(operator)
		return func(v Value) bool { return holds(cmp.Compare(v.number, number)) }, nil
	}
}

// ordered returns whether a comparison holds for the sign of a difference.
func ordered(operator string) func(sign int) bool {
	switch operator {
	case "!=":
		return func(sign int) bool { return sign != 0 }
	case "<":
		return func(sign int) bool { return sign < 0 }
	case "<=":
		return func(sign int) bool { return sign <= 0 }
	case ">":
		return func(sign int) bool { return sign > 0 }
	case ">=":
		return func(sign int) bool { return sign >= 0 }
	default: // = and, except for text, :
		return func(sign int) bool { return sign == 0 }
	}
}

// textMatcher returns a comparison of texts, in which = and != accept patterns.
func textMatcher(operator, literal string) func(Value) bool {
	switch operator {
	case ":":
		return func(v Value) bool { return strings.Contains(v.text, literal) }
	case "=":
		return pattern(literal)
	case "!=":
		equal := pattern(literal)
		return func(v Value) bool { return !equal(v) }
	default:
		holds := ordered(operator)
		return func(v Value) bool { return holds(strings.Compare(v.text, literal)) }
	}
}

// pattern returns a comparison with a text that may begin or end with a star.
func pattern(literal string) func(Value) bool {
	inner, open := strings.CutPrefix(literal, anything)
	inner, openEnd := strings.CutSuffix(inner, anything)
	switch {
	case open && openEnd:
		return func(v Value) bool { return strings.Contains(v.text, inner) }
	case open:
		return func(v Value) bool { return strings.HasSuffix(v.text, inner) }
	case openEnd:
		return func(v Value) bool { return strings.HasPrefix(v.text, inner) }
	default:
		return func(v Value) bool { return v.text == literal }
	}
}

// enumNumber returns the number of an enum value by its name, with or without the common prefix.
func enumNumber(enum protoreflect.EnumDescriptor, literal string) (float64, error) {
	values := enum.Values()
	prefix := strings.TrimSuffix(string(values.ByNumber(0).Name()), "UNSPECIFIED")
	var names []string
	for i := range values.Len() {
		value := values.Get(i)
		name := strings.TrimPrefix(string(value.Name()), prefix)
		if value.Number() == 0 {
			continue
		}
		if strings.EqualFold(strings.TrimPrefix(strings.ToUpper(literal), prefix), name) {
			return float64(value.Number()), nil
		}
		names = append(names, name)
	}
	return 0, fmt.Errorf("is one of %s, not %.40q", strings.Join(names, ", "), literal)
}
