package studyfile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

const example = `
study_id: example
display_name: Example
labels: {team: privacy}
spec:
  parameters:
    - id: rate
      double_domain: {min: 1e-4, max: 1}
      scale: LOG
    - id: lot
      integerDomain: {min: 1, max: 9007199254740992}
      scale: linear
      design: {uniform: {}}
    - id: kind
      categorical_domain: {categories: [sgd, "on"]}
  metrics:
    - id: epsilon
      role: OBJECTIVE
      goal: GOAL_MINIMIZE
      transform: Log
      reference_value: 10
      computed:
        privacy:
          dp_sgd: {sampling: fixed-size, dataset_size: 32561, batch_size: lot, noise_multiplier: "1.5", epochs: "3"}
          delta: 1e-5
          adjacency: REPLACE_ONE
          accountant: RDP
          conversion: IMPROVED
    - {id: loss, role: CONSTRAINT, bounds: {max: 2}, reported: {noise: NONE}}
  algorithm: {name: RANDOM}
  lease: {duration: 90s}
  seed: 18446744073709551615
  trainer:
    name: dp-sgd
    settings: {train_rows: 40000}
`

func TestParse(t *testing.T) {
	want := &studyfile.File{
		ID: "example",
		Study: &dparetov1.Study{
			DisplayName: "Example",
			Labels:      map[string]string{"team": "privacy"},
			Spec: &dparetov1.StudySpec{
				Parameters: []*dparetov1.ParameterSpec{
					{
						Id:     "rate",
						Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 1e-4, Max: 1}},
						Scale:  dparetov1.Scale_SCALE_LOG,
					},
					{
						Id:     "lot",
						Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 1, Max: 1 << 53}},
						Scale:  dparetov1.Scale_SCALE_LINEAR,
						Design: &dparetov1.DesignDistribution{Distribution: &dparetov1.DesignDistribution_Uniform{Uniform: &dparetov1.UniformDistribution{}}},
					},
					{
						Id: "kind",
						Domain: &dparetov1.ParameterSpec_CategoricalDomain{
							CategoricalDomain: &dparetov1.CategoricalDomain{Categories: []string{"sgd", "on"}},
						},
					},
				},
				Metrics: []*dparetov1.MetricSpec{
					{
						Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
						Transform: dparetov1.Transform_TRANSFORM_LOG, ReferenceValue: new(10.0),
						Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{
							Function: &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
								Mechanism: &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
									Sampling:    dparetov1.Sampling_SAMPLING_FIXED_SIZE,
									DatasetSize: "32561", BatchSize: "lot", NoiseMultiplier: "1.5",
									Length: &dparetov1.DpSgdMechanism_Epochs{Epochs: "3"},
								}},
								Delta:      1e-5,
								Adjacency:  dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
								Accountant: dparetov1.Accountant_ACCOUNTANT_RDP,
								Conversion: dparetov1.Conversion_CONVERSION_IMPROVED,
							}},
						}},
					},
					{
						Id: "loss", Role: dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT, Bounds: &dparetov1.MetricBounds{Max: new(2.0)},
						Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{Noise: dparetov1.Noise_NOISE_NONE}},
					},
				},
				Algorithm: &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
				Lease:     &dparetov1.LeasePolicy{Duration: &durationpb.Duration{Seconds: 90}},
				Seed:      new(uint64(1<<64 - 1)),
				Trainer:   &dparetov1.TrainerSpec{Name: "dp-sgd", Settings: map[string]string{"train_rows": "40000"}},
			},
		},
	}
	got, err := studyfile.Parse([]byte(example))
	require.NoError(t, err)
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
}

// A study that a server returned can be created again from its JSON.
func TestParseRoundTrip(t *testing.T) {
	first, err := studyfile.Parse([]byte(example))
	require.NoError(t, err)
	for _, useProtoNames := range []bool{false, true} {
		returned := &dparetov1.Study{Name: "studies/copied", Spec: first.Study.GetSpec(), State: dparetov1.StudyState_STUDY_STATE_ACTIVE}
		content, err := protojson.MarshalOptions{UseProtoNames: useProtoNames, Indent: "  "}.Marshal(returned)
		require.NoError(t, err)
		again, err := studyfile.Parse(content)
		require.NoError(t, err)
		if again.ID != "copied" || again.Study.GetName() != "" {
			t.Errorf("id %q and name %q, want copied and none", again.ID, again.Study.GetName())
		}
		if diff := cmp.Diff(first.Study.GetSpec(), again.Study.GetSpec(), protocmp.Transform()); diff != "" {
			t.Errorf("spec (-want +got):\n%s", diff)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ name, content, want string }{
		{"empty", "", "the file holds no study"},
		{"scalar", "adult", "the file holds no study"},
		{"syntax", "study_id: a\nspec:\n  parameters: [\n", "line 3: "},
		{"tab", "spec:\n\tparameters: []\n", "line 2: found character that cannot start any token"},
		{"repeated key", "study_id: a\nstudy_id: b\n", "line 2: study_id: is given twice, first in line 1"},
		{"id", "study_id: [1]", "study_id: must be a string"},
		{"unknown field", "spec: {metrics: [{id: a, rol: TRACKED}]}", "spec.metrics[0].rol: unknown field, want one of id, role,"},
		{"unknown top field", "specs: {}", "specs: unknown field, want one of name, uid,"},
		{"enum", "spec: {parameters: [{scale: LOGARITHMIC}]}", `spec.parameters[0].scale: is "LOGARITHMIC", want one of LINEAR, LOG`},
		{"enum number", "spec: {parameters: [{scale: 2}]}", "spec.parameters[0].scale: is 2, want one of"},
		{"number", "spec: {parameters: [{}, {double_domain: {min: low}}]}", `spec.parameters[1].double_domain.min: must be a number, is "low"`},
		{"integer", "spec: {budget: {max_trials: 1.5}}", "spec.budget.max_trials: must be a whole number in the range of int64, is 1.5"},
		{"boolean", "spec: {parameters: [{categorical_domain: {categories: [on]}}]}", "categories[0]: must be a string, is true (quote it)"},
		{"map entry", "labels: {a: [1]}", `labels["a"]: must be a string, is a list`},
		{"list", "spec: {metrics: {id: a}}", "spec.metrics: must be a list, is a mapping"},
		{"mapping", "spec: {budget: 64}", "spec.budget: must be a mapping, is 64"},
		{"missing element", "spec: {metrics: [null]}", "spec.metrics[0]: must be a mapping, is empty"},
		{"duration", "spec: {lease: {duration: 2m}}", `spec.lease.duration: must be a duration in seconds such as "90s", is "2m"`},
		{
			"two domains", "spec: {parameters: [{double_domain: {}, integer_domain: {}}]}",
			"spec.parameters[0].integer_domain: cannot be combined with double_domain",
		},
		{"same field twice", "display_name: a\ndisplayName: b", "line 1: display_name: is given twice, also as displayName"},
		{"negative seed", "spec: {seed: -1}", "spec.seed: must be a whole number in the range of uint64, is -1"},
		{"several", "labels: 3\nspec: {sed: 1}", "labels: must be a mapping, is 3; line 2: spec.sed: unknown field"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := studyfile.Parse([]byte(tt.content))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v\nwant   %s", err, tt.want)
			}
			if strings.ContainsAny(err.Error(), "\n\u00a0") {
				t.Errorf("the error has more than one line or odd spaces: %q", err)
			}
		})
	}
}

// Names of studies and ledgers are taken with and without their prefix, as arguments of commands are.
func TestNames(t *testing.T) {
	parse := func(study, ledger string) *studyfile.File {
		t.Helper()
		file, err := studyfile.Parse([]byte(fmt.Sprintf(`
study_id: %[1]ss
spec:
  test_ledger: %[2]speople
  train_ledger: %[2]sothers
  prior_studies: [%[1]sone, %[1]stwo]
ledgers: [{name: %[2]speople, records: 10}]
`, study, ledger)))
		require.NoError(t, err)
		return file
	}
	long, short := parse("studies/", "ledgers/"), parse("", "")
	if diff := cmp.Diff(long, short, protocmp.Transform()); diff != "" {
		t.Errorf("short names (-long +short):\n%s", diff)
	}
	if s := short.Study.GetSpec(); short.ID != "s" || s.GetTestLedger() != "ledgers/people" || s.GetTrainLedger() != "ledgers/others" ||
		!slices.Equal(s.GetPriorStudies(), []string{"studies/one", "studies/two"}) || short.Ledgers[0].GetName() != "ledgers/people" {
		t.Errorf("%v", short)
	}
}

// Ledgers stand beside the study, and their faults are named like its own.
func TestLedgers(t *testing.T) {
	file, err := studyfile.Parse([]byte(example + "ledgers: [{name: ledgers/people, records: 10, epsilon: 1, delta: 1e-5, adjacency: replace-one}]\n"))
	require.NoError(t, err)
	want := []*dparetov1.Ledger{{Name: "ledgers/people", Records: 10, Epsilon: 1, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE}}
	if diff := cmp.Diff(want, file.Ledgers, protocmp.Transform()); diff != "" {
		t.Errorf("ledgers (-want +got):\n%s", diff)
	}
	_, err = studyfile.Parse([]byte(example + "ledgers: [{name: ledgers/people, budget: 1}]\n"))
	if err == nil || !strings.Contains(err.Error(), "ledgers[0].budget: unknown field") {
		t.Errorf("an unknown field of a ledger: %v", err)
	}
}
