package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/outputperturbation"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
)

func TestRegistry(t *testing.T) {
	registry := builtin.Registry()
	options := map[string]map[string]string{
		dpsgd.Name:                 {dpsgd.SettingGenerated: "true", dpsgd.SettingTrainRows: "100"},
		dpsgd.NameAdam:             {dpsgd.SettingGenerated: "true", dpsgd.SettingTrainRows: "100"},
		outputperturbation.Name:    {dpsgd.SettingGenerated: "true", dpsgd.SettingTrainRows: "100"},
		objectiveperturbation.Name: {dpsgd.SettingGenerated: "true", dpsgd.SettingTrainRows: "100"},
	}
	for _, d := range registry.Definitions() {
		made, err := registry.New(t.Context(), d.Name, trainer.Options{Settings: options[d.Name]})
		if err != nil {
			t.Fatal(err)
		}
		if made.Name() != d.Name {
			t.Errorf("the trainer registered as %s calls itself %s", d.Name, made.Name())
		}
		if d.Summary == "" {
			t.Errorf("%s has no summary", d.Name)
		}
	}
}

func TestRegistrySharesData(t *testing.T) {
	registry := builtin.Registry()
	options := trainer.Options{Settings: map[string]string{
		dpsgd.SettingGenerated: "true", dpsgd.SettingEvaluation: dpsgd.EvaluationTest,
	}}
	load := func(name string) *dpsgd.Trainer {
		made, err := registry.New(t.Context(), name, options)
		if err != nil {
			t.Fatal(err)
		}
		return made.(*dpsgd.Trainer)
	}
	if load(dpsgd.Name).Parts() != load(dpsgd.NameAdam).Parts() {
		t.Error("two trainers of one registry have loaded their data twice")
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
		switch p.Law.Kind {
		case trainer.LawUniform:
			parameter["design"] = object{"uniform": object{}}
		case trainer.LawNormal:
			parameter["design"] = object{"normal": object{"mean": p.Law.Mean, "standard_deviation": p.Law.StandardDeviation}}
		case trainer.LawShiftedExponential:
			parameter["design"] = object{"shifted_exponential": object{"rate": p.Law.Rate, "shift": p.Law.Shift}}
		default:
		}
		parameters = append(parameters, parameter)
	}
	privacy := object{
		d.Privacy.Mechanism: d.Privacy.Fields, "delta": d.Privacy.Delta,
		"adjacency": "ADJACENCY_" + d.Privacy.Adjacency, "accountant": "ACCOUNTANT_" + d.Privacy.Accountant,
	}
	if d.Privacy.Conversion != "" {
		privacy["conversion"] = "CONVERSION_" + d.Privacy.Conversion
	}
	if sampling, ok := d.Privacy.Fields["sampling"]; ok {
		d.Privacy.Fields["sampling"] = "SAMPLING_" + sampling
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
		"algorithm": object{"name": "ALGORITHM_DPARETO"}, "trainer": object{"name": name},
	})
	if err != nil {
		t.Fatal(err)
	}
	spec := new(dparetov1.StudySpec)
	if err := protojson.Unmarshal(text, spec); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return spec
}

// Every declaration makes a study that the server accepts, and states what the trainer
// does: its parameters, run at the ends of their domains, give its metrics.
func TestDeclarations(t *testing.T) {
	registry := builtin.Registry()
	small := map[string]string{dpsgd.SettingGenerated: "true", dpsgd.SettingTrainRows: "1000"}
	with := func(settings map[string]string) map[string]string {
		maps.Copy(settings, small)
		return settings
	}
	settings := map[string][]map[string]string{
		dpsgd.Name: {
			small, with(map[string]string{dpsgd.SettingEvaluation: dpsgd.EvaluationTest}),
			with(map[string]string{dpsgd.SettingSampling: "poisson", dpsgd.SettingModel: "mlp", dpsgd.SettingHidden: "5"}),
		},
		dpsgd.NameAdam: {small},
	}
	for _, definition := range registry.Definitions() {
		variants := settings[definition.Name]
		if variants == nil {
			variants = []map[string]string{nil}
		}
		for _, s := range variants {
			options := trainer.Options{Settings: s}
			d, err := registry.Declare(t.Context(), definition.Name, options)
			if err != nil {
				t.Fatal(err)
			}
			made, err := registry.New(t.Context(), definition.Name, options)
			if err != nil {
				t.Fatal(err)
			}
			run := trainer.Run{Parameters: make(trainer.Parameters), Replicates: 1, Seed: 1}
			for _, p := range d.Parameters {
				run.Parameters[p.Name] = p.Min
				if p.Integer {
					run.Parameters[p.Name] = int64(p.Min)
				}
			}
			m, err := made.Train(t.Context(), run, nil)
			if err != nil {
				t.Errorf("%s %v: %v", definition.Name, s, err)
			}
			var declared []string
			for _, metric := range d.Metrics {
				declared = append(declared, metric.Name)
			}
			slices.Sort(declared)
			if measured := slices.Sorted(maps.Keys(m.Metrics)); !slices.Equal(declared, measured) {
				t.Errorf("%s %v declares the metrics %v and measures %v", definition.Name, s, declared, measured)
			}
			if s[dpsgd.SettingSampling] != "" {
				continue // the server accounts for lots of fixed size only
			}
			if _, err := spec.Compile("spec", study(t, definition.Name, d)); err != nil {
				t.Errorf("%s %v: %v", definition.Name, s, err)
			}
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
		Seed:       1,
	}, nil)
	fmt.Println(m.Metrics["error"], err)
	// Output: [0 0 0 0 0] <nil>
}
