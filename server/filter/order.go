package filter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Limits on an order.
const (
	maxOrderFields = 5
	// maxKeyText is how many bytes of a text count in the order.
	maxKeyText = 256
)

// Order sorts resources.
type Order[T any] []orderField[T]

type orderField[T any] struct {
	field      Field[T]
	descending bool
}

// ParseOrder compiles an order. An empty one has no fields.
func ParseOrder[T any](source string, fields Fields[T]) (Order[T], error) {
	if len(source) > maxLength {
		return nil, fmt.Errorf("must have at most %d bytes, has %d", maxLength, len(source))
	}
	if strings.TrimSpace(source) == "" {
		return nil, nil
	}
	parts := strings.Split(source, ",")
	if len(parts) > maxOrderFields {
		return nil, fmt.Errorf("must have at most %d fields, has %d", maxOrderFields, len(parts))
	}
	var order Order[T]
	for _, part := range parts {
		words := strings.Fields(part)
		isValid := len(words) == 1 || len(words) == 2 && (words[1] == "desc" || words[1] == "asc")
		if !isValid {
			return nil, fmt.Errorf("%.100q must be a field, optionally followed by desc or asc", strings.TrimSpace(part))
		}
		path := strings.Split(words[0], ".")
		if slices.Contains(path, "") {
			return nil, fmt.Errorf("field %.100q has an empty name", words[0])
		}
		field, err := fields(path)
		if err == nil && field.Kind == Map {
			err = errors.New(words[0] + " is a map, and has no order")
		}
		if err != nil {
			return nil, err
		}
		order = append(order, orderField[T]{field, len(words) == 2 && words[1] == "desc"})
	}
	return order, nil
}

// Key returns a sort key of a resource. Keys sort byte by byte like the resources. Resources have
// the same key if they do not differ in the fields, or differ only after the first 256 bytes of a
// text. No key is a prefix of another.
func (o Order[T]) Key(resource T) string {
	var key []byte
	for _, f := range o {
		v := f.field.Get(resource)
		if !v.set {
			key = append(key, 1)
			continue
		}
		key = append(key, 0)
		start := len(key)
		key = appendKey(key, f.field.Kind, v)
		if f.descending {
			for i := start; i < len(key); i++ {
				key[i] = ^key[i]
			}
		}
	}
	return string(key)
}

// appendKey appends the sort key of a value that is set.
func appendKey(key []byte, kind Kind, v Value) []byte {
	switch kind {
	case Text:
		for i := range min(len(v.text), maxKeyText) {
			key = append(key, v.text[i])
			if v.text[i] == 0 {
				key = append(key, 0xff)
			}
		}
		return append(key, 0, 1)
	case Time:
		return binary.BigEndian.AppendUint64(key, uint64(v.time.UnixNano())^1<<63)
	default:
		bits := math.Float64bits(v.number + 0) // not -0
		if bits>>63 == 1 {
			bits = ^bits
		} else {
			bits ^= 1 << 63
		}
		return binary.BigEndian.AppendUint64(key, bits)
	}
}
