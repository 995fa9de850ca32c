package spec

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// text is a study with one of everything.
const text = `{
	"parameters": [
		{"id": "epochs", "scale": "SCALE_LOG", "integer_domain": {"min": 1, "max": 64}},
		{"id": "depth", "scale": "SCALE_LINEAR", "integer_domain": {"min": 2, "max": 9}, "condition": {"parent": "model", "values": [{"string_value": "forest"}]}},
		{"id": "model", "categorical_domain": {"categories": ["linear", "forest"]}},
		{"id": "momentum", "scale": "SCALE_LINEAR", "discrete_domain": {"values": [0, 0.9]}, "condition": {"parent": "model", "values": [{"string_value": "linear"}]}},
		{"id": "rate", "scale": "SCALE_LOG", "double_domain": {"min": 0.001, "max": 1}, "condition": {"parent": "momentum", "values": [{"double_value": 0.9}]}}
	],
	"metrics": [
		{"id": "error", "role": "METRIC_ROLE_OBJECTIVE", "goal": "GOAL_MINIMIZE", "transform": "TRANSFORM_LOGIT", "reference_value": 1, "reported": {}},
		{"id": "gap", "role": "METRIC_ROLE_CONSTRAINT", "transform": "TRANSFORM_LOGIT", "bounds": {"max": 0.1}, "reported": {"sample_size": 500}},
		{"id": "weights", "role": "METRIC_ROLE_CONSTRAINT", "transform": "TRANSFORM_LOG", "bounds": {"min": 2, "max": 400},
			"computed": {"expression": "model == 'forest' ? math.pow(2.0, double(depth)) : 10.0"}},
		{"id": "loss", "role": "METRIC_ROLE_CONSTRAINT", "bounds": {"min": -1}, "reported": {}},
		{"id": "joules", "role": "METRIC_ROLE_TRACKED", "reported": {}}
	],
	"parameter_constraints": ["model != 'forest' || depth * epochs <= 128"],
	"checkpoint_parameter": "epochs",
	"cost": {"metric": "joules"},
	"algorithm": {"name": "ALGORITHM_RANDOM"}
}`

func compile(t *testing.T) *Study {
	t.Helper()
	message := new(dparetov1.StudySpec)
	require.NoError(t, protojson.Unmarshal([]byte(text), message))
	study, err := Compile("spec", message)
	require.NoError(t, err)
	return study
}

func TestProblem(t *testing.T) {
	study := compile(t)
	p := study.Problem
	if p.Checkpoint != "epochs" || p.Cost != suggest.CostMeasured {
		t.Errorf("checkpoint %q and cost %v", p.Checkpoint, p.Cost)
	}
	type bounds struct {
		Name                            string
		Transform                       suggest.Transform
		Lower, Upper, SampleSize, Floor float64
	}
	var got []bounds
	for _, c := range p.Constraints {
		got = append(got, bounds{c.Name, c.Transform, c.Lower, c.Upper, c.SampleSize, c.Floor})
	}
	want := []bounds{
		{"gap", suggest.Logit, math.Inf(-1), 0.1, 500, 0},
		{"weights", suggest.Log, 2, 400, 0, 0.002},
		{"loss", suggest.Identity, -1, math.Inf(1), 0, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("constraints (-want +got):\n%s", diff)
	}
	forest, linear := space.Point{32, 4, 1, 0, 1e-3}, space.Point{32, 2, 0, 0, 1e-3}
	if w := p.Constraints[1].Known; w(forest) != 16 || w(linear) != 10 {
		t.Errorf("weights %g and %g, want 16 and 10", w(forest), w(linear))
	}
	if p.Constraints[0].Known != nil {
		t.Error("a reported constraint is known")
	}
	if !p.Allowed(forest) || !p.Allowed(linear) || p.Allowed(space.Point{33, 4, 1, 0, 1e-3}) {
		t.Error("the known constraint is not 4 · epochs <= 128")
	}
	if err := study.Points.CheckAllowed("at", linear); err != nil {
		t.Error(err)
	}
}

// A cost of checkpoints and one of runs.
func TestCost(t *testing.T) {
	for measure, want := range map[string]suggest.Cost{`{"checkpoint_parameter": {}}`: suggest.CostCheckpoint, `{"runs": {}}`: suggest.CostRuns} {
		study := compile(t)
		study.Spec.Cost = new(dparetov1.CostSpec)
		require.NoError(t, protojson.Unmarshal([]byte(measure), study.Spec.GetCost()))
		again, err := Compile("spec", study.Spec)
		require.NoError(t, err)
		if got := again.Problem.Cost; got != want {
			t.Errorf("%s: cost %v, want %v", measure, got, want)
		}
	}
}

func TestEvaluation(t *testing.T) {
	study := compile(t)
	point := space.Point{32, 9, 1, 0, 1e-3}
	measured := func(gap, loss float64) *dparetov1.Measurement {
		m, _, err := study.Measurements.Accept("measurement", point, &dparetov1.Measurement{Step: 8, Metrics: map[string]*dparetov1.MetricValue{
			"error": {Runs: []float64{0.2, 0.4}}, "gap": {Value: &gap, StandardError: new(0.01)}, "loss": {Value: &loss}, "joules": {Value: new(7.5)},
		}}, false)
		require.NoError(t, err)
		return m
	}
	e := study.Metrics.Evaluation(point, measured(0.05, 3))
	want := suggest.Evaluation{
		Point:  space.Point{8, 9, 1, 0, 1e-3},
		Values: []float64{0.3, 0.05, 512, 3}, StdErrors: []float64{0.1, 0.01, 0, math.NaN()},
		Runs: 2, Cost: 7.5,
	}
	nearly := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 || math.IsNaN(a) && math.IsNaN(b) })
	if diff := cmp.Diff(want, e, nearly); diff != "" {
		t.Errorf("evaluation (-want +got):\n%s", diff)
	}
	if study.Metrics.Acceptable(measured(0.05, 3)) {
		t.Error("512 weights are accepted")
	}
	point[1] = 8
	for _, tc := range []struct {
		gap, loss float64
		want      bool
	}{{0.05, 3, true}, {0.1, -1, true}, {0.11, 3, false}, {0.05, -1.1, false}} {
		if got := study.Metrics.Acceptable(measured(tc.gap, tc.loss)); got != tc.want {
			t.Errorf("a gap of %g and a loss of %g: acceptable %v", tc.gap, tc.loss, got)
		}
	}
	m := measured(0.05, 3)
	m.Metrics["weights"].Value = nil // not computable
	if study.Metrics.Acceptable(m) {
		t.Error("a constraint without a value is accepted")
	}
	delete(m.GetMetrics(), "joules")
	if e := study.Metrics.Evaluation(point, m); e.Cost != 0 || !math.IsNaN(e.Values[2]) {
		t.Errorf("evaluation without weights and cost: %+v", e)
	}
}

// Points become values and points again, with as many values as parameters exist.
func TestPointInvertsValues(t *testing.T) {
	study := compile(t)
	rng := rand.New(rand.NewPCG(4, 5))
	sizes := make(map[int]int)
	for range 200 {
		point := study.Problem.Space.Sample(rng)
		values := study.Points.Values(point)
		again, err := study.Points.Parse("parameters", values)
		require.NoError(t, err)
		if diff := cmp.Diff(point, again); diff != "" {
			t.Errorf("point (-want +got):\n%s", diff)
		}
		if got, want := len(study.Points.Variables(point)), len(values); got != want {
			t.Errorf("%d variables, want %d", got, want)
		}
		sizes[len(values)]++
	}
	if len(sizes) != 2 || sizes[3] == 0 || sizes[4] == 0 {
		t.Errorf("numbers of values %v, want 3 and 4", sizes)
	}
}
