package server_test

import (
	"math"
	"math/rand/v2"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Values that are likely to be wrong: at the ends of their types, or names of what is
// something else.
var (
	mutantDoubles = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 1e-300, 5e-324, 1e300, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 1 << 53}
	mutantInts    = []int64{0, 1, -1, 2, 7, 64, 1000, 1001, 1 << 31, 1<<53 + 1, math.MaxInt64, math.MinInt64}
	mutantStrings = []string{"", "a", "studies/full", "studies/other", heldTrial, leaseToken, "epochs", "error", "epsilon", "lot * 2", "1.0 / 0.0", "\x00", "é", "../x", "*"}
)

// mutate changes one random field of a message, at a random depth, mostly one of those
// that are set.
func mutate(random *rand.Rand, m protoreflect.Message) {
	var set []protoreflect.FieldDescriptor
	m.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		set = append(set, field)
		return true
	})
	slices.SortFunc(set, func(a, b protoreflect.FieldDescriptor) int { return int(a.Number() - b.Number()) })
	fields := m.Descriptor().Fields()
	if fields.Len() == 0 {
		return
	}
	field := fields.Get(random.IntN(fields.Len()))
	if len(set) > 0 && random.IntN(4) > 0 {
		field = set[random.IntN(len(set))]
	}
	switch {
	case random.IntN(6) == 0:
		m.Clear(field)
	case field.IsMap():
		mutateMap(random, field, m.Mutable(field).Map())
	case field.IsList():
		mutateList(random, field, m.Mutable(field).List())
	case field.Message() != nil:
		mutate(random, m.Mutable(field).Message())
	default:
		m.Set(field, mutant(random, field))
	}
}

// mutateMap changes an entry of a map, or adds one.
func mutateMap(random *rand.Rand, field protoreflect.FieldDescriptor, entries protoreflect.Map) {
	if field.MapKey().Kind() != protoreflect.StringKind {
		return
	}
	var keys []string
	entries.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, key.String())
		return true
	})
	slices.Sort(keys)
	key := mutantStrings[random.IntN(len(mutantStrings))]
	if len(keys) > 0 && random.IntN(3) > 0 {
		key = keys[random.IntN(len(keys))]
	}
	if field.MapValue().Message() != nil {
		mutate(random, entries.Mutable(protoreflect.ValueOfString(key).MapKey()).Message())
	} else {
		entries.Set(protoreflect.ValueOfString(key).MapKey(), mutant(random, field.MapValue()))
	}
}

// mutateList changes an element of a list, repeats or adds one, or cuts the list.
func mutateList(random *rand.Rand, field protoreflect.FieldDescriptor, list protoreflect.List) {
	n := list.Len()
	switch {
	case n > 0 && random.IntN(4) == 0:
		list.Append(list.Get(random.IntN(n)))
	case n > 0 && random.IntN(6) == 0:
		list.Truncate(random.IntN(n))
	case n > 0 && field.Message() != nil:
		mutate(random, list.Get(random.IntN(n)).Message())
	case n > 0:
		list.Set(random.IntN(n), mutant(random, field))
	case field.Message() != nil:
		mutate(random, list.AppendMutable().Message())
	default:
		list.Append(mutant(random, field))
	}
}

// mutant returns a value of a field's kind.
func mutant(random *rand.Rand, field protoreflect.FieldDescriptor) protoreflect.Value {
	integer := mutantInts[random.IntN(len(mutantInts))]
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(random.IntN(2) == 0)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(mutantStrings[random.IntN(len(mutantStrings))])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(make([]byte, random.IntN(40)))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(random.IntN(12) - 2))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(integer))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(integer)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(integer))
	default:
		return protoreflect.ValueOfFloat64(mutantDoubles[random.IntN(len(mutantDoubles))])
	}
}
