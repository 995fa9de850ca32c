package studyfile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/dpareto/dpareto/clients/go/trainer"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/spec"
)

// What is written is read again as the study that was declared, and a server accepts it.
func TestDeclared(t *testing.T) {
	delta := 1e-6
	content := Declared{
		ID: "my-study", Trainer: "dp-sgd", Summary: "DP-SGD", Trials: 20, EpsilonReference: 5, Delta: &delta,
		Settings: map[string]string{"hidden": "128,64", "generated": "true"},
		Declaration: trainer.Declaration{
			Parameters: []trainer.ParameterDeclaration{
				{Name: "epochs", Usage: "passes: over \"the\" data", Integer: true, Min: 1, Max: 64, Design: trainer.Distribution{Kind: trainer.DistributionUniform}},
				{Name: "lot", Integer: true, Min: 8, Max: 512, Design: trainer.Distribution{Kind: trainer.DistributionNormal, Mean: 128, StandardDeviation: 64}},
				{Name: "noise", Min: 0.1, Max: 16, Logarithmic: true, Design: trainer.Distribution{Kind: trainer.DistributionShiftedExponential, Rate: 0.1, Shift: 0.1}},
				{Name: "rate", Min: 5e-4, Max: 5e-2, Logarithmic: true},
			},
			Metrics: []trainer.MetricDeclaration{
				{Name: "error", Usage: "fraction # of examples", Unit: "ratio", Objective: true, Transform: trainer.TransformLogit, Reference: 1, SampleSize: 100},
				{Name: "loss"},
			},
			Privacy: &trainer.PrivacyDeclaration{
				Mechanism: "dp_sgd",
				Fields: map[string]string{
					"sampling": "FIXED_SIZE", "dataset_size": "1000", "batch_size": "lot", "noise_multiplier": "math.sqrt(noise)", "epochs": "epochs",
				},
				Delta: 1e-5, Adjacency: "REPLACE_ONE",
			},
			CheckpointParameter: "epochs",
		},
	}.Write()
	file, err := Parse(content)
	if err != nil {
		t.Fatalf("%v in\n%s", err, content)
	}
	if file.ID != "my-study" {
		t.Errorf("id %q", file.ID)
	}
	want := new(dparetov1.Study)
	require.NoError(t, protojson.Unmarshal([]byte(`{
		"labels": {"trainer": "dp-sgd"},
		"spec": {
			"parameters": [
				{"id": "epochs", "integer_domain": {"min": 1, "max": 64}, "scale": "SCALE_LINEAR", "design": {"uniform": {}}},
				{"id": "lot", "integer_domain": {"min": 8, "max": 512}, "scale": "SCALE_LINEAR", "design": {"normal": {"mean": 128, "standard_deviation": 64}}},
				{"id": "noise", "double_domain": {"min": 0.1, "max": 16}, "scale": "SCALE_LOG", "design": {"shifted_exponential": {"rate": 0.1, "shift": 0.1}}},
				{"id": "rate", "double_domain": {"min": 0.0005, "max": 0.05}, "scale": "SCALE_LOG"}
			],
			"metrics": [
				{"id": "epsilon", "role": "METRIC_ROLE_OBJECTIVE", "goal": "GOAL_MINIMIZE", "transform": "TRANSFORM_LOG", "reference_value": 5,
					"computed": {"privacy": {"dp_sgd": {"sampling": "SAMPLING_FIXED_SIZE", "dataset_size": "1000", "batch_size": "lot",
						"noise_multiplier": "math.sqrt(noise)", "epochs": "epochs"}, "delta": 1e-6, "adjacency": "ADJACENCY_REPLACE_ONE"}}},
				{"id": "error", "role": "METRIC_ROLE_OBJECTIVE", "goal": "GOAL_MINIMIZE", "transform": "TRANSFORM_LOGIT", "reference_value": 1,
					"unit": "ratio", "reported": {"sample_size": 100}},
				{"id": "loss", "role": "METRIC_ROLE_TRACKED", "reported": {}}
			],
			"checkpoint_parameter": "epochs",
			"budget": {"max_trials": 20},
			"lease": {"duration": "60s"},
			"trainer": {"name": "dp-sgd", "settings": {"hidden": "128,64", "generated": "true"}}
		}}`), want))
	if diff := cmp.Diff(want, file.Study, protocmp.Transform()); diff != "" {
		t.Errorf("study (-want +got):\n%s", diff)
	}
	if _, err := spec.Compile("spec", file.Study.GetSpec()); err != nil {
		t.Error(err)
	}
}

func TestScalar(t *testing.T) {
	for text, want := range map[string]string{
		"lot_size": "lot_size", "FIXED_SIZE": "FIXED_SIZE", "dp-sgd": "dp-sgd", "600": `"600"`, "4.0": `"4.0"`,
		"true": `"true"`, "No": `"No"`, "": `""`, "math.sqrt(x)": `"math.sqrt(x)"`, "a: b": `"a: b"`,
	} {
		if got := scalar(text); got != want {
			t.Errorf("scalar(%q) = %s, want %s", text, got, want)
		}
	}
}
