package server_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// mutate changes one random field of a message, at a random depth, to a value that is
// likely to be wrong.
func mutate(random *rand.Rand, m protoreflect.Message) {
	var set []protoreflect.FieldDescriptor
	m.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		set = append(set, field)
		return true
	})
	slices.SortFunc(set, func(a, b protoreflect.FieldDescriptor) int { return int(a.Number() - b.Number()) })
	fields := m.Descriptor().Fields()
	field := fields.Get(random.IntN(fields.Len()))
	if len(set) > 0 && random.IntN(8) > 0 {
		field = set[random.IntN(len(set))]
	}
	switch {
	case random.IntN(6) == 0:
		m.Clear(field)
	case field.IsMap():
		if m.Has(field) && field.MapValue().Message() != nil && field.MapKey().Kind() == protoreflect.StringKind {
			entries := m.Mutable(field).Map()
			var keys []string
			entries.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
				keys = append(keys, key.String())
				return true
			})
			slices.Sort(keys)
			mutate(random, entries.Mutable(protoreflect.ValueOfString(keys[random.IntN(len(keys))]).MapKey()).Message())
		}
	case field.IsList():
		list := m.Mutable(field).List()
		switch {
		case list.Len() > 0 && random.IntN(3) == 0:
			list.Append(list.Get(random.IntN(list.Len())))
		case list.Len() > 0 && field.Message() != nil:
			mutate(random, list.Get(random.IntN(list.Len())).Message())
		case list.Len() > 0:
			list.Set(random.IntN(list.Len()), mutant(random, field))
		}
	case field.Message() != nil:
		if m.Has(field) {
			mutate(random, m.Mutable(field).Message())
		} else {
			m.Mutable(field)
		}
	default:
		m.Set(field, mutant(random, field))
	}
}

// mutant returns a value of a field's kind.
func mutant(random *rand.Rand, field protoreflect.FieldDescriptor) protoreflect.Value {
	integer := []int64{0, 1, -1, 2, 7, math.MaxInt64, math.MinInt64}[random.IntN(7)]
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(random.IntN(2) == 0)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString([]string{"", "x", "studies/other", "../x", "\x00", "studies/eventful/trials/1"}[random.IntN(6)])
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
		return protoreflect.ValueOfFloat64([]float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 5e-324}[random.IntN(8)])
	}
}

// An import with a random fault is refused for a reason that is the client's, or gives a
// study that a server can go on with.
func TestImportMutants(t *testing.T) {
	f := start(t)
	study, _ := f.eventful()
	exported := lines(t, f.export(study))
	remove := func() {
		if _, err := f.studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	refused, accepted := 0, 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		records := parse(t, exported)
		mutate(random, records[random.IntN(len(records))].ProtoReflect())
		_, err := f.importRecords(records)
		switch code := status.Code(err); code {
		case codes.InvalidArgument, codes.Unimplemented:
			refused++
			continue
		case codes.Internal: // gRPC's own, for text that is not UTF-8, never happens here
			t.Errorf("seed %d: %v", seed, err)
			continue
		case codes.OK:
			accepted++
		default:
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		if again := lines(t, f.export(study)); again != lines(t, records) {
			t.Errorf("seed %d: exported again: %s\nwant: %s", seed, again, lines(t, records))
		}
		if _, err := f.fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: study, Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED}); status.Code(err) == codes.Internal {
			t.Errorf("seed %d: front: %v", seed, err)
		}
		if _, err := f.studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "worker", Count: 12}); status.Code(err) == codes.Internal {
			t.Errorf("seed %d: suggest: %v", seed, err)
		}
		if seed%10 == 0 {
			f.restart() // checks the store
		}
		remove()
	}
	if refused < 60 || accepted < 10 {
		t.Errorf("%d were refused and %d accepted", refused, accepted)
	}
}
