package spec

import (
	"slices"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// violatedFields returns the paths of the fields that an error names, sorted.
func violatedFields(t *testing.T, err error) (fields []string) {
	t.Helper()
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				fields = append(fields, v.GetField())
			}
		}
	}
	slices.Sort(fields)
	return fields
}

// What is wrong is said at once, and nothing that follows from it.
func TestViolationsOfAllStages(t *testing.T) {
	number := func(id string, low, high float64) *dparetov1.ParameterSpec {
		return &dparetov1.ParameterSpec{
			Id: id, Scale: dparetov1.Scale_SCALE_LINEAR,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: low, Max: high}},
		}
	}
	spec := func(parameters ...*dparetov1.ParameterSpec) *dparetov1.StudySpec {
		objective := func(id string) *dparetov1.MetricSpec {
			return &dparetov1.MetricSpec{
				Id: id, Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, ReferenceValue: new(1.0),
				Transform: dparetov1.Transform_TRANSFORM_IDENTITY,
			}
		}
		reported, computed, private := objective("error"), objective("size"), objective("epsilon")
		reported.Source = &dparetov1.MetricSpec_Reported{Reported: new(dparetov1.ReportedSource)}
		reported.Goal = dparetov1.Goal_GOAL_UNSPECIFIED
		computed.Source = &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Expression{Expression: "nowhere"}}}
		private.Source = &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Privacy{Privacy: new(dparetov1.PrivacySpec)}}}
		return &dparetov1.StudySpec{
			Parameters: parameters, Metrics: []*dparetov1.MetricSpec{reported, computed, private},
			Algorithm:            &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
			ParameterConstraints: []string{"x > "},
			Budget:               &dparetov1.Budget{MaxTrials: -1},
			CheckpointParameter:  "epochs",
		}
	}
	names := []string{
		"spec.budget.max_trials", "spec.checkpoint_parameter", "spec.metrics[0].goal",
	}
	expressions := []string{
		"spec.metrics[1].computed.expression", "spec.metrics[2].computed.privacy.adjacency", "spec.metrics[2].computed.privacy.mechanism", "spec.parameter_constraints[0]",
	}
	for name, test := range map[string]struct {
		spec *dparetov1.StudySpec
		want []string
	}{
		"a sound space":      {spec(number("x", 0, 1)), slices.Concat(names, expressions)},
		"a range":            {spec(number("x", 1, 0)), slices.Concat(names, expressions, []string{"spec.parameters[0].double_domain.max"})},
		"a name":             {spec(number("1x", 0, 1)), slices.Concat(names, []string{"spec.parameters[0].id"})},
		"no kind":            {spec(&dparetov1.ParameterSpec{Id: "x"}), slices.Concat(names, []string{"spec.parameters[0].domain"})},
		"no parameters":      {spec(), slices.Concat(names, []string{"spec.parameters"})},
		"no spec whatsoever": {nil, []string{"spec"}},
	} {
		_, err := Compile("spec", test.spec)
		slices.Sort(test.want)
		if got := violatedFields(t, err); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v\ngot  %v\nwant %v", name, err, got, test.want)
		}
	}
}
