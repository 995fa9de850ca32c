package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/outputperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/sparsevector"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/spec"
)

func TestRegistry(t *testing.T) {
	registry := builtin.Registry()
	for _, d := range registry.Definitions() {
		made, err := registry.New(t.Context(), d.Name, trainer.Options{Settings: variants[d.Name][0]})
		require.NoError(t, err)
		if made.Name() != d.Name {
			t.Errorf("the trainer registered as %s calls itself %s", d.Name, made.Name())
		}
		if d.Summary == "" {
			t.Errorf("%s has no summary", d.Name)
		}
	}
}

// Trainers of one registry load their data once, whatever their names.
func TestRegistrySharesData(t *testing.T) {
	registry := builtin.Registry()
	shared := make(map[*dataset.Parts]bool)
	for _, d := range registry.Definitions() {
		made, err := registry.New(t.Context(), d.Name, trainer.Options{Settings: variants[d.Name][0]})
		require.NoError(t, err)
		if loaded, ok := made.(interface{ Parts() *dataset.Parts }); ok {
			shared[loaded.Parts()] = true
		}
	}
	if len(shared) != 1 {
		t.Errorf("the trainers of one registry have loaded their data %d times", len(shared))
	}
}

// study writes a declaration as the spec of a study.
func study(t *testing.T, name string, d trainer.Declaration) *dparetov1.StudySpec {
	t.Helper()
	type object = map[string]any
	scale := map[bool]string{false: "SCALE_LINEAR", true: "SCALE_LOG"}
	var parameters, metrics []object
	for _, p := range d.Parameters {
		domain := map[bool]string{false: "double_domain", true: "integer_domain"}[p.Integer]
		parameter := object{"id": p.Name, domain: object{"min": p.Min, "max": p.Max}, "scale": scale[p.Logarithmic]}
		switch p.Design.Kind {
		case trainer.DistributionUniform:
			parameter["design"] = object{"uniform": object{}}
		case trainer.DistributionNormal:
			parameter["design"] = object{"normal": object{"mean": p.Design.Mean, "standard_deviation": p.Design.StandardDeviation}}
		case trainer.DistributionShiftedExponential:
			parameter["design"] = object{"shifted_exponential": object{"rate": p.Design.Rate, "shift": p.Design.Shift}}
		default:
		}
		parameters = append(parameters, parameter)
	}
	// Enums are named without the prefixes that the contract has.
	fields := make(object)
	for field, value := range d.Privacy.Fields {
		fields[field] = value
	}
	for field, numbers := range d.Privacy.Lists {
		fields[field] = numbers
	}
	for field, prefix := range map[string]string{"sampling": "SAMPLING_", "matrix": "NOISE_MATRIX_", "convention": "CONVENTION_", "calibration": "OBJECTIVE_CALIBRATION_", "optimizer": "DP_SGD_OPTIMIZER_"} {
		if value, ok := d.Privacy.Fields[field]; ok {
			fields[field] = prefix + value
		}
	}
	privacy := object{
		d.Privacy.Mechanism: fields, "delta": d.Privacy.Delta, "adjacency": "ADJACENCY_" + d.Privacy.Adjacency,
	}
	metrics = append(metrics, object{
		"id": "epsilon", "role": "METRIC_ROLE_OBJECTIVE", "goal": "GOAL_MINIMIZE", "transform": "TRANSFORM_LOG",
		"reference_value": 10, "computed": object{"privacy": privacy},
	})
	for _, m := range d.Metrics {
		reported := object{}
		if m.SampleSize > 0 {
			reported["sample_size"] = m.SampleSize
		}
		metric := object{"id": m.Name, "role": "METRIC_ROLE_TRACKED", "unit": m.Unit, "reported": reported}
		if m.Objective {
			metric["role"], metric["goal"] = "METRIC_ROLE_OBJECTIVE", "GOAL_MINIMIZE"
			metric["transform"], metric["reference_value"] = "TRANSFORM_"+m.Transform, m.Reference
		}
		metrics = append(metrics, metric)
	}
	text, err := json.Marshal(object{
		"parameters": parameters, "metrics": metrics, "checkpoint_parameter": d.CheckpointParameter,
		"algorithm": object{"name": "ALGORITHM_DEFAULT"}, "trainer": object{"name": name},
	})
	require.NoError(t, err)
	spec := new(dparetov1.StudySpec)
	if err := protojson.Unmarshal(text, spec); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return spec
}

// small are the settings of a trainer on few generated examples, with changes.
func small(changes ...string) trainer.Settings {
	s := trainer.Settings{experiment.SettingGenerated: "true", experiment.SettingTrainRows: "1000"}
	for i := 0; i < len(changes); i += 2 {
		s[changes[i]] = changes[i+1]
	}
	return s
}

// variants are settings that change what a trainer declares.
var variants = map[string][]trainer.Settings{
	sparsevector.Name: {nil},
	dpsgd.Name: {
		small(), small(experiment.SettingEvaluation, experiment.EvaluationTest),
		small(dpsgd.SettingSampling, "poisson", dpsgd.SettingModel, "mlp", dpsgd.SettingHidden, "5"),
		small(experiment.SettingDataset, "mnist", experiment.SettingTrainRows, "", dpsgd.SettingModel, "softmax-regression"),
	},
	dpsgd.NameAdam: {small()},
	dpsgd.NameMF: {
		small(), small(dpsgd.SettingModel, "mlp", dpsgd.SettingHidden, "5"), small(dpsgd.SettingMatrix, "tree"),
		small(dpsgd.SettingMatrix, "blt", dpsgd.SettingModel, "mlp", dpsgd.SettingHidden, "5"),
	},
	outputperturbation.Name: {
		small(), small(experiment.SettingEvaluation, experiment.EvaluationTest),
		small(outputperturbation.SettingProjection, "published"), small(outputperturbation.SettingProjection, "small"),
	},
	objectiveperturbation.Name: {
		small(), small(experiment.SettingEvaluation, experiment.EvaluationTest, objectiveperturbation.SettingLoss, "huber"),
		small(objectiveperturbation.SettingCalibration, "chaudhuri"), small(objectiveperturbation.SettingCalibration, "continuous"),
	},
}

// draw returns parameters at random from their domains, as a trainer and as a server
// take them.
func draw(d trainer.Declaration, rng *rand.Rand) (trainer.Parameters, map[string]*dparetov1.Value) {
	parameters, values := make(trainer.Parameters), make(map[string]*dparetov1.Value)
	for _, p := range d.Parameters {
		x := p.Min + (p.Max-p.Min)*rng.Float64()
		if p.Logarithmic {
			x = p.Min * math.Pow(p.Max/p.Min, rng.Float64())
		}
		if p.Integer {
			n := int64(math.Round(x))
			parameters[p.Name] = n
			values[p.Name] = &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: n}}
			continue
		}
		parameters[p.Name] = x
		values[p.Name] = &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}
	}
	return parameters, values
}

// Every declaration makes a study that the server accepts, and states what the trainer
// does: its parameters, run at the ends of their domains, give its metrics, and ε is its
// mechanism's.
func TestDeclarations(t *testing.T) {
	registry := builtin.Registry()
	for _, definition := range registry.Definitions() {
		if len(variants[definition.Name]) == 0 {
			t.Errorf("trainer %s is not tested", definition.Name)
		}
		for _, settings := range variants[definition.Name] {
			t.Run(fmt.Sprintf("%s %v", definition.Name, settings), func(t *testing.T) {
				options := trainer.Options{Settings: settings}
				d, err := registry.Declare(t.Context(), definition.Name, options)
				require.NoError(t, err)
				made, err := registry.New(t.Context(), definition.Name, options)
				require.NoError(t, err)
				checkMetrics(t, d, made)
				checkPrivacy(t, d, made.(trainer.PrivateTrainer))
			})
		}
	}
}

// optional are the parameters that a trainer does without.
var optional = map[string][]string{objectiveperturbation.Name: {objectiveperturbation.ParameterSplit}}

// A study may have parameters that only exist under a condition. A trainer works without
// an optional one, and without another says which is missing.
func TestAbsentParameters(t *testing.T) {
	registry := builtin.Registry()
	for name, all := range variants {
		options := trainer.Options{Settings: all[0]}
		d, err := registry.Declare(t.Context(), name, options)
		require.NoError(t, err)
		made, err := registry.New(t.Context(), name, options)
		require.NoError(t, err)
		for _, p := range d.Parameters {
			run := lowest(d)
			delete(run.Parameters, p.Name)
			_, trained := made.Train(t.Context(), run, nil)
			_, accounted := made.(trainer.PrivateTrainer).Mechanism(run.Parameters)
			for _, err := range []error{trained, accounted} {
				if slices.Contains(optional[name], p.Name) {
					if err != nil {
						t.Errorf("%s without %s: %v", name, p.Name, err)
					}
					continue
				}
				wrong, ok := errors.AsType[*trainer.ParameterError](err)
				if !ok || wrong.Name != p.Name || !strings.HasPrefix(wrong.Reason, "is missing") {
					t.Errorf("%s without %s: %v", name, p.Name, err)
				}
			}
		}
	}
}

// lowest returns a run at the lower ends of the domains.
func lowest(d trainer.Declaration) trainer.Run {
	run := trainer.Run{Parameters: make(trainer.Parameters), Replicates: 1, Seed: new(uint64(1))}
	for _, p := range d.Parameters {
		run.Parameters[p.Name] = p.Min
		if p.Integer {
			run.Parameters[p.Name] = int64(p.Min)
		}
	}
	return run
}

// checkMetrics trains at the lower ends of the domains and compares the metrics.
func checkMetrics(t *testing.T, d trainer.Declaration, made trainer.Trainer) {
	t.Helper()
	run := lowest(d)
	m, err := made.Train(t.Context(), run, nil)
	require.NoError(t, err)
	var declared []string
	for _, metric := range d.Metrics {
		declared = append(declared, metric.Name)
	}
	slices.Sort(declared)
	if measured := slices.Sorted(maps.Keys(m.Metrics)); !slices.Equal(declared, measured) {
		t.Errorf("metrics %v are declared, %v measured", declared, measured)
	}

	// The error is a multiple of one over the declared number of examples.
	loaded, ok := made.(interface{ Parts() *dataset.Parts })
	if !ok {
		return
	}
	parts := loaded.Parts()
	rows := parts.Test.Rows
	if parts.Validation != nil {
		rows = parts.Validation.Rows
	}
	wrong := m.Metrics[experiment.MetricError][0] * float64(rows)
	if d.Metrics[0].SampleSize != rows || math.Abs(wrong-math.Round(wrong)) > 1e-6 {
		t.Errorf("sample size %d, error %v of %d examples", d.Metrics[0].SampleSize, wrong, rows)
	}
}

// checkPrivacy compares ε of a study with ε of the trainer's mechanism.
func checkPrivacy(t *testing.T, d trainer.Declaration, made trainer.PrivateTrainer) {
	t.Helper()
	compiled, err := spec.Compile("spec", study(t, made.Name(), d))
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		parameters, values := draw(d, rng)
		point, err := compiled.Points.Parse("parameters", values)
		require.NoError(t, err)
		computed, warnings := compiled.Metrics.Compute(point)
		mechanism, err := made.Mechanism(parameters)
		require.NoError(t, err)
		want, err := privacy.Epsilon(privacy.Tightest{}, mechanism, 1, d.Privacy.Delta)
		require.NoError(t, err)
		got := computed["epsilon"].GetPrivacy()
		if math.Abs(got.GetEpsilon()-want.Epsilon) > 1e-7*want.Epsilon || len(warnings) > 0 {
			t.Errorf("%v: ε = %v with warnings %v, want %v", parameters, got.GetEpsilon(), warnings, want.Epsilon)
		}
		if mechanism.Adjacency() != want.Adjacency || got.GetAdjacency().String() != "ADJACENCY_"+d.Privacy.Adjacency {
			t.Errorf("adjacency %v of the study, %v of the mechanism", got.GetAdjacency(), want.Adjacency)
		}
	}
}

func Example() {
	t, err := builtin.Registry().New(context.Background(), "sparse-vector", trainer.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := t.Train(context.Background(), trainer.Run{
		Parameters: trainer.Parameters{"cutoff": int64(10), "noise_scale": 0.01},
		Replicates: 5,
		Seed:       new(uint64(1)),
	}, nil)
	fmt.Println(m.Metrics["error"], err)
	// Output: [0 0 0 0 0] <nil>
}
