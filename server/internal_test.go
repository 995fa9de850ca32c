package server

import (
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func TestDifferences(t *testing.T) {
	reference := 1.0
	base := &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{
			{Id: "a", Domain: &dparetov1.ParameterSpec_DiscreteDomain{DiscreteDomain: &dparetov1.DiscreteDomain{Values: []float64{1, 2}}}},
			{Id: "b"},
		},
		Metrics: []*dparetov1.MetricSpec{{Id: "m", ReferenceValue: &reference}},
		Trainer: &dparetov1.TrainerSpec{Name: "t", Settings: map[string]string{"k": "v"}},
	}
	for want, change := range map[string]func(*dparetov1.StudySpec){
		"parameters[0].discrete_domain.values[1]": func(s *dparetov1.StudySpec) { s.Parameters[0].GetDiscreteDomain().Values[1] = 3 },
		"parameters[0].discrete_domain.values":    func(s *dparetov1.StudySpec) { s.Parameters[0].GetDiscreteDomain().Values = []float64{1} },
		"parameters[1].id":                        func(s *dparetov1.StudySpec) { s.Parameters[1].Id = "c" },
		"parameters":                              func(s *dparetov1.StudySpec) { s.Parameters = s.GetParameters()[:1] },
		"metrics[0].reference_value":              func(s *dparetov1.StudySpec) { s.Metrics[0].ReferenceValue = nil },
		"trainer.settings":                        func(s *dparetov1.StudySpec) { s.Trainer.Settings["k"] = "w" },
		"trainer":                                 func(s *dparetov1.StudySpec) { s.Trainer = nil },
	} {
		other := proto.CloneOf(base)
		if paths := differences(base, other); len(paths) != 0 {
			t.Fatalf("equal specs differ in %v", paths)
		}
		change(other)
		if got := differences(base, other); !slices.Equal(got, []string{want}) {
			t.Errorf("differences %v, want %s", got, want)
		}
		if got := differences(other, base); !slices.Equal(got, []string{want}) {
			t.Errorf("the other way round: differences %v, want %s", got, want)
		}
	}
}

// A thinned trajectory keeps its order, its last point, and steps that are spread in
// the logarithm.
func TestLogSpaced(t *testing.T) {
	for _, length := range []int64{1, 2, 3, 5, 64, 400} {
		var all []candidate
		for step := int64(1); step <= length; step++ {
			all = append(all, candidate{measurement: &dparetov1.Measurement{Step: step}})
		}
		for n := 1; n <= 8; n++ {
			var steps []int64
			for _, c := range logSpaced(all, n) {
				steps = append(steps, c.measurement.GetStep())
			}
			if len(steps) > n || len(steps) == 0 || steps[len(steps)-1] != length {
				t.Fatalf("%d of %d: steps %v", n, length, steps)
			}
			if !slices.IsSorted(steps) || len(slices.Compact(slices.Clone(steps))) != len(steps) {
				t.Errorf("%d of %d: steps %v", n, length, steps)
			}
			if length == 64 && n == 7 && !slices.Equal(steps, []int64{1, 2, 4, 8, 16, 32, 64}) {
				t.Errorf("7 of 64: steps %v", steps)
			}
			if n > 1 && int64(n) <= length && math.Abs(float64(steps[0])-1) > 0 {
				t.Errorf("%d of %d: first step %d", n, length, steps[0])
			}
		}
	}
}

// Every name in the table of unsupported fields exists, so that a renamed field does
// not silently become supported.
func TestUnimplementedFieldsExist(t *testing.T) {
	for name := range unimplementedFields {
		if _, err := resolve(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// resolve finds a field or enum value of the contract.
func resolve(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	return protoregistry.GlobalFiles.FindDescriptorByName(name)
}
