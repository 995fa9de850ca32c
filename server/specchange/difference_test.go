package specchange_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/specchange"
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
		if paths := specchange.Differences(base, other); len(paths) != 0 {
			t.Fatalf("equal specs differ in %v", paths)
		}
		change(other)
		if got := specchange.Differences(base, other); !slices.Equal(got, []string{want}) {
			t.Errorf("differences %v, want %s", got, want)
		}
		if got := specchange.Differences(other, base); !slices.Equal(got, []string{want}) {
			t.Errorf("the other way round: differences %v, want %s", got, want)
		}
	}
}
