package study_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// finite reports whether a value is set and finite.
func finite(v *dparetov1.MetricValue) bool {
	return v.Value != nil && !math.IsInf(v.GetValue(), 0) && !math.IsNaN(v.GetValue())
}

// checkChoice checks that a trial of the study has values of what exists, within the
// constraints.
func checkChoice(t *testing.T, trial *dparetov1.Trial) {
	t.Helper()
	values := trial.GetParameters()
	want := []string{"noise", "optimizer"}
	if values["optimizer"].GetStringValue() != "sgd" {
		want = append(want, "beta", "layers")
		if values["layers"].GetIntValue() > 0 {
			want = append(want, "width")
		}
	}
	var got []string
	for id := range values {
		got = append(got, id)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s has values of %v, want %v", trial.GetName(), got, want)
	}
	if values["noise"].GetDoubleValue() >= 5 ||
		values["optimizer"].GetStringValue() == "lamb" && values["layers"].GetIntValue() == 2 && values["width"].GetDoubleValue() == 64 {
		t.Errorf("%s is not allowed: %v", trial.GetName(), values)
	}
	scale := values["noise"].GetDoubleValue()
	if beta, ok := values["beta"]; ok {
		scale *= beta.GetDoubleValue()
	}
	if epsilon := trial.GetComputedMetrics()["epsilon"].GetValue(); math.Abs(epsilon*scale-1) > 1e-12 {
		t.Errorf("%s has an epsilon of %g, want %g", trial.GetName(), epsilon, 1/scale)
	}
}

// A study over a choice of optimisers, with every algorithm, a restart on the way, and
// fronts without what takes too long.
func TestStudyOfChoices(t *testing.T) {
	for _, algorithm := range []dparetov1.Algorithm{
		dparetov1.Algorithm_ALGORITHM_RANDOM,
		dparetov1.Algorithm_ALGORITHM_GRID,
		dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM,
		dparetov1.Algorithm_ALGORITHM_DPARETO,
	} {
		t.Run(algorithm.String(), func(t *testing.T) {
			f := servertest.Start(t)
			spec := servertest.ChoiceSpec()
			spec.Algorithm = &dparetov1.AlgorithmSpec{Name: algorithm, InitialTrials: 20}
			study := f.Create("choices", spec)
			slow := make(map[string]bool)
			optimizers := make(map[string]int)
			for i := range 24 {
				if i == 12 {
					f.Restart()
				}
				trial := f.One(study, "w")
				checkChoice(t, trial)
				if reason := trial.GetProvenance().GetFallbackReason(); reason != "" {
					t.Errorf("%s is a fallback: %s", trial.GetName(), reason)
				}
				optimizers[trial.GetParameters()["optimizer"].GetStringValue()]++
				result := servertest.ChoiceMeasurement(trial)
				slow[trial.GetName()] = result.GetMetrics()["seconds"].GetValue() > 100
				require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
					Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
					Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: result},
				})))
			}
			if len(optimizers) < 2 {
				t.Errorf("optimisers %v", optimizers)
			}
			for _, kind := range []dparetov1.FrontKind{
				dparetov1.FrontKind_FRONT_KIND_OBSERVED, dparetov1.FrontKind_FRONT_KIND_BEST, dparetov1.FrontKind_FRONT_KIND_WORST,
			} {
				front := f.Front(study, kind)
				if len(front.GetPoints()) == 0 {
					t.Errorf("%v is empty", kind)
				}
				for _, p := range front.GetPoints() {
					if slow[p.GetTrial()] {
						t.Errorf("%v holds %s, which takes too long", kind, p.GetTrial())
					}
					if _, has := p.GetParameters()["beta"]; has == (p.GetParameters()["optimizer"].GetStringValue() == "sgd") {
						t.Errorf("%v: %s has parameters %v", kind, p.GetTrial(), p.GetParameters())
					}
				}
			}
		})
	}
}

// A violated bound keeps the best configuration off the front and out of the
// hypervolume.
func TestBoundsOnFront(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("choices", servertest.ChoiceSpec())
	add := func(noise, loss float64, seconds ...float64) string {
		resp, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
			Parameters: map[string]*dparetov1.Value{"optimizer": servertest.TextValue("sgd"), "noise": servertest.DoubleValue(noise)},
			FinalMeasurement: &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{
				"error": {Runs: slices.Repeat([]float64{loss}, len(seconds))}, "seconds": {Runs: seconds},
			}},
		}})
		require.NoError(t, err)
		return resp.GetTrial().GetName()
	}
	add(1, 0.1, 101)
	bound := add(0.5, 0.2, 90, 110) // the mean is at the bound
	front := f.Front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED)
	if len(front.GetPoints()) != 1 || front.GetPoints()[0].GetTrial() != bound {
		t.Errorf("front %v, want %s only", front.GetPoints(), bound)
	}
	// ε is 2 below 10, and the error 0.2 below 1.
	if want := 8 * 0.8; math.Abs(front.GetHypervolume()-want) > 1e-12 {
		t.Errorf("hypervolume %g, want %g", front.GetHypervolume(), want)
	}
	resp, err := f.Fronts.ListHypervolumes(t.Context(), &dparetov1.ListHypervolumesRequest{Name: study})
	require.NoError(t, err)
	if points := resp.GetPoints(); len(points) != 2 || points[0].GetHypervolume() != 0 || math.Abs(points[1].GetHypervolume()-8*0.8) > 1e-12 {
		t.Errorf("hypervolumes %v", points)
	}
}

// A trial has values of what exists and nothing else, and is allowed.
func TestCreateTrialOfChoices(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("choices", servertest.ChoiceSpec())
	create := func(values map[string]*dparetov1.Value) (*dparetov1.Trial, error) {
		resp, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{Parameters: values}})
		return resp.GetTrial(), err
	}
	whole := map[string]*dparetov1.Value{
		"optimizer": servertest.TextValue("lamb"), "noise": servertest.DoubleValue(1), "beta": servertest.DoubleValue(0.9), "layers": servertest.IntValue(2), "width": servertest.DoubleValue(16),
	}
	trial, err := create(whole)
	require.NoError(t, err)
	checkChoice(t, trial)
	for name, test := range map[string]struct {
		change map[string]*dparetov1.Value // nil removes
		fields []string
		text   string
	}{
		"sgd with the rest":      {map[string]*dparetov1.Value{"optimizer": servertest.TextValue("sgd")}, []string{`["beta"]`, `["layers"]`, `["width"]`}, "exists only where optimizer is one of adam, lamb"},
		"without width":          {map[string]*dparetov1.Value{"width": nil}, []string{`["width"]`}, "must be set where layers is one of 1, 2"},
		"width without layers":   {map[string]*dparetov1.Value{"layers": servertest.IntValue(0)}, []string{`["width"]`}, "must not be set"},
		"no parent":              {map[string]*dparetov1.Value{"optimizer": nil}, []string{`["optimizer"]`}, "must be set"},
		"no parent, mistyped":    {map[string]*dparetov1.Value{"optimizer": nil, "beta": servertest.IntValue(1)}, []string{`["beta"]`, `["optimizer"]`}, "must have a double_value"},
		"parent out of range":    {map[string]*dparetov1.Value{"layers": servertest.IntValue(3)}, []string{`["layers"]`}, "domain"},
		"unknown category":       {map[string]*dparetov1.Value{"optimizer": servertest.TextValue("rmsprop")}, []string{`["optimizer"]`}, "category"},
		"not allowed":            {map[string]*dparetov1.Value{"width": servertest.DoubleValue(64)}, []string{""}, "parameter_constraints[0] of the study does not hold: optimizer != 'lamb'"},
		"too much noise allowed": {map[string]*dparetov1.Value{"noise": servertest.DoubleValue(5)}, []string{""}, "parameter_constraints[1]"},
	} {
		values := maps.Clone(whole)
		for id, v := range test.change {
			if values[id] = v; v == nil {
				delete(values, id)
			}
		}
		_, err := create(values)
		servertest.WantCode(t, err, codes.InvalidArgument, test.text)
		var want []string
		for _, field := range test.fields {
			want = append(want, "trial.parameters"+field)
		}
		if got := servertest.Violated(err); !slices.Equal(got, want) {
			t.Errorf("%s: violated fields %q, want %q", name, got, want)
		}
	}
}

// Every measurement has the constraint, and its cost is positive.
func TestMeasureConstraint(t *testing.T) {
	f := servertest.Start(t)
	trial := f.One(f.Create("choices", servertest.ChoiceSpec()), "w")
	complete := func(change func(map[string]*dparetov1.MetricValue)) error {
		result := servertest.ChoiceMeasurement(trial)
		change(result.GetMetrics())
		_, err := f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
			Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: result},
		})
		return err
	}
	err := complete(func(m map[string]*dparetov1.MetricValue) { delete(m, "seconds") })
	servertest.WantCode(t, err, codes.InvalidArgument, `measurement.metrics["seconds"]: must be set: it is a constraint`)
	err = complete(func(m map[string]*dparetov1.MetricValue) { m["seconds"] = &dparetov1.MetricValue{Value: new(float64)} })
	servertest.WantCode(t, err, codes.InvalidArgument, `measurement.metrics["seconds"].value: must be positive: it is the study's cost`)
	err = complete(func(m map[string]*dparetov1.MetricValue) {
		m["seconds"] = &dparetov1.MetricValue{Runs: []float64{0}}
	})
	servertest.WantCode(t, err, codes.InvalidArgument, `measurement.metrics["seconds"].runs[0]: must be positive`)
	if err := complete(func(map[string]*dparetov1.MetricValue) {}); err != nil {
		t.Error(err)
	}
}

// Every bad condition, constraint and cost is refused by the names of its fields.
func TestChoicesInvalid(t *testing.T) {
	f := servertest.Start(t)
	condition := func(parent string, values ...*dparetov1.Value) *dparetov1.Condition {
		return &dparetov1.Condition{Parent: parent, Values: values}
	}
	scale := func(s *dparetov1.StudySpec, expression string) {
		s.Metrics[0].GetComputed().GetPrivacy().GetLaplace().Scale = expression
	}
	const scaleField = "metrics[0].computed.privacy.laplace.scale"
	for name, test := range map[string]struct {
		change func(*dparetov1.StudySpec)
		text   string
		fields []string
	}{
		"no parent":     {func(s *dparetov1.StudySpec) { s.Parameters[0].Condition.Parent = "" }, "is not a parameter", []string{"parameters[0].condition.parent"}},
		"metric parent": {func(s *dparetov1.StudySpec) { s.Parameters[0].Condition.Parent = "error" }, "is not a parameter", []string{"parameters[0].condition.parent"}},
		"double parent": {func(s *dparetov1.StudySpec) {
			s.Parameters[0].Condition = condition("noise", servertest.DoubleValue(1))
		}, "is double", []string{"parameters[0].condition.parent"}},
		"circle": {func(s *dparetov1.StudySpec) {
			s.Parameters[1].Condition = condition("width", servertest.DoubleValue(16))
		}, "below", []string{
			"parameters[0].condition.parent", "parameters[1].condition.parent",
		}},
		"no values":     {func(s *dparetov1.StudySpec) { s.Parameters[0].Condition.Values = nil }, "must not be empty", []string{"parameters[0].condition.values"}},
		"mistyped":      {func(s *dparetov1.StudySpec) { s.Parameters[0].Condition.Values[1] = servertest.DoubleValue(2) }, "int_value", []string{"parameters[0].condition.values[1]"}},
		"unknown value": {func(s *dparetov1.StudySpec) { s.Parameters[0].Condition.Values[1] = servertest.IntValue(3) }, "not a value of", []string{"parameters[0].condition.values[1]"}},
		"twice":         {func(s *dparetov1.StudySpec) { s.Parameters[0].Condition.Values[1] = servertest.IntValue(1) }, "twice", []string{"parameters[0].condition.values[1]"}},
		"no category":   {func(s *dparetov1.StudySpec) { s.Parameters[1].Condition.Values[0] = servertest.TextValue("Adam") }, "category", []string{"parameters[1].condition.values[0]"}},
		"too many values": {func(s *dparetov1.StudySpec) {
			s.Parameters[0].Condition.Values = slices.Repeat(s.GetParameters()[0].GetCondition().GetValues(), 500)
		}, "at most 1000", []string{"parameters[1].condition.values"}},
		"checkpoint with a condition": {func(s *dparetov1.StudySpec) {
			s.Parameters[1].GetIntegerDomain().Min, s.CheckpointParameter = 1, "layers"
		}, "condition", []string{"checkpoint_parameter"}},
		"checkpoint as a parent": {func(s *dparetov1.StudySpec) {
			s.Parameters[1].GetIntegerDomain().Min, s.Parameters[1].Condition, s.CheckpointParameter = 1, nil, "layers"
		}, "parent", []string{"checkpoint_parameter"}},

		"unguarded":        {func(s *dparetov1.StudySpec) { scale(s, "noise * beta") }, "where optimizer = sgd", []string{scaleField}},
		"wrong guard":      {func(s *dparetov1.StudySpec) { scale(s, "optimizer == 'adam' ? noise : noise * beta") }, "where optimizer = sgd: ", []string{scaleField}},
		"deep guard":       {func(s *dparetov1.StudySpec) { scale(s, "optimizer == 'sgd' ? noise : width") }, "layers = 0, optimizer = adam", []string{scaleField}},
		"bad in one":       {func(s *dparetov1.StudySpec) { scale(s, "optimizer == 'sgd' ? noise : -beta") }, "optimizer = adam", []string{scaleField}},
		"syntax":           {func(s *dparetov1.StudySpec) { s.ParameterConstraints[1] = "noise <" }, "Syntax", []string{"parameter_constraints[1]"}},
		"no bool":          {func(s *dparetov1.StudySpec) { s.ParameterConstraints[1] = "noise" }, "must have type bool", []string{"parameter_constraints[1]"}},
		"over a metric":    {func(s *dparetov1.StudySpec) { s.ParameterConstraints[0] = "epsilon < 3.0" }, "undeclared reference", []string{"parameter_constraints[0]"}},
		"never":            {func(s *dparetov1.StudySpec) { s.ParameterConstraints[1] = "noise > 10.0" }, "none of 10000", []string{"parameter_constraints[1]"}},
		"never together":   {func(s *dparetov1.StudySpec) { s.ParameterConstraints[0] = "noise > 5.0" }, "together", []string{"parameter_constraints"}},
		"of what is not":   {func(s *dparetov1.StudySpec) { s.ParameterConstraints[0] = "beta > 0.6" }, "refers to beta", []string{"parameter_constraints[0]"}},
		"division by zero": {func(s *dparetov1.StudySpec) { s.ParameterConstraints[0] = "optimizer == 'sgd' || 2 / layers < 5" }, "division", []string{"parameter_constraints[0]"}},
		"dear": {func(s *dparetov1.StudySpec) {
			s.ParameterConstraints[0] = "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, a+b+c > 0)))"
		}, "cost", []string{"parameter_constraints[0]"}},
		"too many": {func(s *dparetov1.StudySpec) { s.ParameterConstraints = slices.Repeat([]string{"noise < 5.0"}, 21) }, "at most 20", []string{"parameter_constraints"}},

		"no bounds":    {func(s *dparetov1.StudySpec) { s.Metrics[2].Bounds = nil }, "at least one", []string{"metrics[2].bounds"}},
		"empty bounds": {func(s *dparetov1.StudySpec) { s.Metrics[2].Bounds.Max = nil }, "at least one", []string{"metrics[2].bounds"}},
		"crossed":      {func(s *dparetov1.StudySpec) { s.Metrics[2].Bounds.Min = new(101.0) }, "at least min", []string{"metrics[2].bounds.max"}},
		"infinite":     {func(s *dparetov1.StudySpec) { s.Metrics[2].Bounds.Max = new(math.Inf(1)) }, "finite", []string{"metrics[2].bounds.max"}},
		"log of zero":  {func(s *dparetov1.StudySpec) { s.Metrics[2].Bounds.Min = new(float64) }, "positive", []string{"metrics[2].bounds.min"}},
		"no fraction":  {func(s *dparetov1.StudySpec) { s.Metrics[2].Transform = dparetov1.Transform_TRANSFORM_LOGIT }, "[0, 1]", []string{"metrics[2].bounds.max"}},
		"unknown transform": {func(s *dparetov1.StudySpec) {
			s.Metrics[2].Transform = 99
		}, "unknown", []string{"metrics[2].transform"}},
		"goal": {func(s *dparetov1.StudySpec) {
			s.Metrics[2].Goal, s.Metrics[2].ReferenceValue = dparetov1.Goal_GOAL_MINIMIZE, new(1.0)
		}, "only for objectives", []string{"metrics[2].goal", "metrics[2].reference_value"}},
		"bounds of an objective": {func(s *dparetov1.StudySpec) {
			s.Metrics[1].Bounds = s.GetMetrics()[2].GetBounds()
		}, "METRIC_ROLE_CONSTRAINT", []string{"metrics[1].bounds"}},

		"no measure": {func(s *dparetov1.StudySpec) { s.Cost.Measure = nil }, "must be set", []string{"cost.measure"}},
		"unknown metric": {func(s *dparetov1.StudySpec) {
			s.Cost = &dparetov1.CostSpec{Measure: &dparetov1.CostSpec_Metric{Metric: "hours"}}
		}, "not a metric", []string{"cost.metric"}},
		"computed cost": {func(s *dparetov1.StudySpec) {
			s.Cost = &dparetov1.CostSpec{Measure: &dparetov1.CostSpec_Metric{Metric: "epsilon"}}
		}, "reported", []string{"cost.metric"}},
		"cost without checkpoints": {func(s *dparetov1.StudySpec) {
			s.Cost = &dparetov1.CostSpec{Measure: &dparetov1.CostSpec_CheckpointParameter{CheckpointParameter: &dparetov1.CheckpointParameterCost{}}}
		}, "checkpoint_parameter", []string{"cost.checkpoint_parameter"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := servertest.ChoiceSpec()
			test.change(spec)
			_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "bad", Study: &dparetov1.Study{Spec: spec}})
			servertest.WantCode(t, err, codes.InvalidArgument, test.text)
			var want []string
			for _, field := range test.fields {
				want = append(want, "study.spec."+field)
			}
			if got := servertest.Violated(err); !slices.Equal(got, want) {
				t.Errorf("violated fields %q, want %q (%v)", got, want, err)
			}
		})
	}
}

// A constraint may rely on those before it.
func TestConstraintsInOrder(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.ChoiceSpec()
	spec.ParameterConstraints = []string{"optimizer != 'sgd'", "layers > 0", "10 / layers > 5", "beta > 0.6"}
	study := f.Create("choices", spec)
	if trial := f.One(study, "w"); trial.GetParameters()["layers"].GetIntValue() != 1 {
		t.Errorf("%v is not allowed", trial.GetParameters())
	}
	spec.ParameterConstraints[0], spec.ParameterConstraints[3] = spec.GetParameterConstraints()[3], spec.GetParameterConstraints()[0]
	_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "reversed", Study: &dparetov1.Study{Spec: spec}})
	servertest.WantCode(t, err, codes.InvalidArgument, "parameter_constraints[0]: cannot be evaluated at optimizer = sgd")
}

// Expressions are tried in branches that constraints allow only.
func TestConstraintsExcuseBranches(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.ChoiceSpec()
	spec.GetMetrics()[0].GetComputed().GetPrivacy().GetLaplace().Scale = "noise * beta"
	spec.ParameterConstraints = []string{"optimizer != 'sgd'"}
	study := f.Create("choices", spec)
	for i := range 20 {
		trial := f.One(study, fmt.Sprint("w", i))
		if trial.GetParameters()["optimizer"].GetStringValue() == "sgd" || !finite(trial.GetComputedMetrics()["epsilon"]) {
			t.Errorf("%s: %v", trial.GetName(), trial.GetParameters())
		}
	}
	_, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
		Parameters: map[string]*dparetov1.Value{"optimizer": servertest.TextValue("sgd"), "noise": servertest.DoubleValue(1)},
	}})
	servertest.WantCode(t, err, codes.InvalidArgument, "optimizer != 'sgd'")
	if !strings.Contains(err.Error(), "trial.parameters: ") {
		t.Errorf("error %v", err)
	}
}
