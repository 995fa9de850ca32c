package view_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/dpareto/studies"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/show"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	time.Local = time.UTC // tables show local time
	os.Exit(m.Run())
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func double(x float64) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}
}

func integer(x int64) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: x}}
}

func metric(x float64) *dparetov1.MetricValue { return &dparetov1.MetricValue{Value: &x} }

// exampleStudy is the demo's study on Adult as a server returns it.
func exampleStudy(t *testing.T) *dparetov1.Study {
	t.Helper()
	content, err := studies.File("adult")
	require.NoError(t, err)
	file, err := studyfile.Parse(content)
	require.NoError(t, err)
	study := file.Study
	study.Name = "studies/adult"
	study.Spec.Algorithm = &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_DEFAULT}
	study.State = dparetov1.StudyState_STUDY_STATE_COMPLETED
	study.StateReason = "the budget of 64 trials is spent"
	study.Seed = 7
	study.CreateTime = timestamppb.New(time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC))
	study.TrialCounts = &dparetov1.TrialCounts{Succeeded: 61, Infeasible: 2, Failed: 1}
	return study
}

func exampleTrials() []*dparetov1.Trial {
	configuration := func(epochs int64) map[string]*dparetov1.Value {
		return map[string]*dparetov1.Value{
			"epochs": integer(epochs), "lot_size": integer(128), "learning_rate": double(0.0123456),
			"clipping_norm": double(0.1), "noise_multiplier": double(16),
		}
	}
	return []*dparetov1.Trial{
		{
			Name: "studies/adult/trials/1", Number: 1, State: dparetov1.TrialState_TRIAL_STATE_SUCCEEDED,
			Parameters: configuration(12), Attempt: 1, WorkerId: "host-1",
			FinalMeasurement: &dparetov1.Measurement{
				Step: 12, Elapsed: durationpb.New(1500 * time.Millisecond),
				Metrics: map[string]*dparetov1.MetricValue{
					"epsilon": metric(0.0512345), "error": metric(0.1534), "loss": metric(0.3456789),
				},
			},
		},
		{
			Name: "studies/adult/trials/2", Number: 2, State: dparetov1.TrialState_TRIAL_STATE_INFEASIBLE,
			StateReason: "the weights are not finite\nafter epoch 3", Parameters: configuration(64), Attempt: 2,
			ComputedMetrics: map[string]*dparetov1.MetricValue{"epsilon": metric(math.Inf(1))},
		},
		{
			Name: "studies/adult/trials/3", Number: 3, State: dparetov1.TrialState_TRIAL_STATE_ACTIVE,
			Parameters: configuration(1), Attempt: 1,
			ComputedMetrics: map[string]*dparetov1.MetricValue{"epsilon": metric(12345678)},
			WorkerId:        `host, "1"-2`,
			Lease:           &dparetov1.Lease{WorkerId: `host, "1"-2`, Token: "secret"},
			Provenance:      &dparetov1.Provenance{FallbackReason: "dpareto failed, quasi-random was used"},
			Warnings:        []*dparetov1.Warning{{Code: "REPORT_DIFFERS", Message: "the worker reported another ε"}},
		},
		{Name: "studies/adult/trials/4", Number: 4, State: dparetov1.TrialState_TRIAL_STATE_QUEUED, Parameters: configuration(2)},
		{
			Name: "studies/adult/trials/5", Number: 5, State: dparetov1.TrialState_TRIAL_STATE_SUCCEEDED,
			StateReason: "the model expects no later checkpoint of the run to extend the front",
			Origin:      dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED, Parameters: configuration(64), Attempt: 3,
			Measurements: []*dparetov1.Measurement{{Step: 7}, {Step: 8}},
			PastAttempts: []*dparetov1.Attempt{
				{Number: 1, WorkerId: "a", Outcome: dparetov1.AttemptOutcome_ATTEMPT_OUTCOME_RELEASED, Reason: "preempted"},
				{Number: 3, WorkerId: "b", Outcome: dparetov1.AttemptOutcome_ATTEMPT_OUTCOME_OVERTAKEN, Measurements: []*dparetov1.Measurement{{Step: 1}}},
			},
			FinalMeasurement: &dparetov1.Measurement{Step: 8, Metrics: map[string]*dparetov1.MetricValue{"epsilon": metric(0.02), "error": metric(0.2)}},
			Provenance: &dparetov1.Provenance{
				Algorithm:   "default",
				Predictions: map[string]*dparetov1.MetricPrediction{"error": {Median: 0.16, Lower: 0.15, Upper: 0.18}},
			},
		},
		{
			Name: "studies/adult/trials/6", Number: 6, State: dparetov1.TrialState_TRIAL_STATE_QUEUED,
			Origin: dparetov1.TrialOrigin_TRIAL_ORIGIN_REPLICATE, ReplicateOf: "studies/adult/trials/5", Parameters: configuration(8),
		},
		{
			Name: "studies/adult/trials/7", Number: 7, State: dparetov1.TrialState_TRIAL_STATE_QUEUED,
			Origin: dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED, Parameters: configuration(12),
		},
	}
}

// conditionalStudy has everything that exampleStudy has not.
func conditionalStudy(t *testing.T) *dparetov1.Study {
	t.Helper()
	file, err := studyfile.Parse([]byte(`
study_id: choices
spec:
  parameters:
    - {id: optimizer, categorical_domain: {categories: [sgd, adam, lamb]}}
    - {id: beta, double_domain: {min: 0.5, max: 0.99}, scale: LINEAR, when: {optimizer: [adam, lamb]}}
    - {id: epochs, integer_domain: {min: 1, max: 64}, scale: LOG}
  parameter_constraints: ["optimizer != 'lamb' || epochs < 10"]
  metrics:
    - {id: epochs_used, role: OBJECTIVE, goal: MINIMIZE, transform: LOG, reference_value: 64, computed: {expression: double(epochs)}}
    - {id: error, role: OBJECTIVE, goal: MINIMIZE, transform: LOGIT, reported: {noise: KNOWN}}
    - {id: gap, role: CONSTRAINT, bounds: {min: -1, max: 0.05}, reported: {noise: NONE}}
  checkpoint_parameter: epochs
  disable_early_stopping: true
  replicates: 3
  cost: checkpoint_parameter
  prior_studies: [studies/earlier]
  algorithm: {name: DEFAULT, initial_trials: 4}
  budget: {max_trials: 9, max_duration: 3600s, max_stagnant_trials: 20}
`))
	require.NoError(t, err)
	file.Study.Name = "studies/choices"
	file.Study.CreateTime = timestamppb.New(time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC))
	return file.Study
}

func TestTables(t *testing.T) {
	study := exampleStudy(t)
	second := proto.CloneOf(study)
	second.Name, second.DisplayName = "studies/b", ""
	second.Spec.Budget = nil
	second.State = dparetov1.StudyState_STUDY_STATE_ACTIVE
	second.TrialCounts = &dparetov1.TrialCounts{Queued: 1, Active: 2}
	for name, table := range map[string]*output.Table{
		"study":         view.Study(study),
		"study_choices": view.Study(conditionalStudy(t)),
		"trial":         view.Trial(study.GetSpec(), exampleTrials()[4]),
		"studies":       view.Studies([]*dparetov1.Study{study, second}),
		"studies_empty": view.Studies(nil),
		"trials":        view.Trials(study.GetSpec(), exampleTrials()),
	} {
		t.Run(name, func(t *testing.T) {
			var text, comma bytes.Buffer
			require.NoError(t, table.WriteText(&text))
			golden(t, name+".txt", text.String())
			require.NoError(t, table.WriteCSV(&comma))
			golden(t, name+".csv", comma.String())
			records, err := csv.NewReader(&comma).ReadAll()
			if err != nil || len(records) != len(table.Rows)+1 {
				t.Errorf("%d records, want %d: %v", len(records), len(table.Rows)+1, err)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	var all bytes.Buffer
	require.NoError(t, view.WriteMessages(&all, exampleTrials()))
	golden(t, "trials.json", all.String())
	var none bytes.Buffer
	require.NoError(t, view.WriteMessages[*dparetov1.Trial](&none, nil))
	var list []json.RawMessage
	if err := json.Unmarshal(none.Bytes(), &list); err != nil || list == nil || len(list) != 0 {
		t.Errorf("no messages are %q, want an empty array", none.String())
	}
}

func TestPrivacyStatement(t *testing.T) {
	for study, want := range map[string]string{
		"adult":           "ε of one run, δ = 1e-5, replace-one adjacency, tightest accountant",
		"adult-variance":  "ε of one run, δ = 1e-5, replace-one adjacency, RDP accountant, improved conversion",
		"paper-adult-sgd": "ε of one run, δ = 1e-5, replace-one adjacency, RDP accountant, classic conversion",
		"svt":             "ε of one run, pure (δ = 0), replace-one adjacency, closed form",
	} {
		content, err := studies.File(study)
		require.NoError(t, err)
		file, err := studyfile.Parse(content)
		require.NoError(t, err)
		if got := show.PrivacyStatement(file.Study.GetSpec()); got != want {
			t.Errorf("%s: %q, want %q", study, got, want)
		}
	}
	dpsgd := func(m *dparetov1.DpSgdMechanism) *dparetov1.PrivacySpec {
		m.Sampling = dparetov1.Sampling_SAMPLING_POISSON
		return &dparetov1.PrivacySpec{Mechanism: &dparetov1.PrivacySpec_DpSgd{DpSgd: m}}
	}
	sized, settings := dpsgd(&dparetov1.DpSgdMechanism{DatasetSize: "1000"}), dpsgd(&dparetov1.DpSgdMechanism{SamplingProbability: "0.1"})
	for _, tt := range []struct {
		spec       *dparetov1.PrivacySpec
		adjacency  dparetov1.Adjacency
		publicSize bool
	}{
		{sized, dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, true},
		{sized, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE, false},
		{settings, dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, false},
		{&dparetov1.PrivacySpec{Mechanism: &dparetov1.PrivacySpec_RepeatedSelection{RepeatedSelection: &dparetov1.RepeatedSelectionMechanism{Base: sized}}},
			dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, true},
		{&dparetov1.PrivacySpec{Mechanism: &dparetov1.PrivacySpec_Composition{Composition: &dparetov1.CompositionMechanism{
			Parts: []*dparetov1.CompositionMechanism_Part{{Mechanism: settings}, {Mechanism: sized}},
		}}}, dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, true},
	} {
		tt.spec.Adjacency = tt.adjacency
		statement := show.PrivacyStatement(&dparetov1.StudySpec{Metrics: []*dparetov1.MetricSpec{{Source: &dparetov1.MetricSpec_Computed{
			Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Privacy{Privacy: tt.spec}},
		}}}})
		if strings.Contains(statement, "adjacency with a public number of records (zero-out)") != tt.publicSize {
			t.Errorf("%v: %q", tt.spec, statement)
		}
	}
	if got := show.PrivacyStatement(new(dparetov1.StudySpec)); got != "" {
		t.Errorf("without privacy: %q", got)
	}
}

// Generated data are named wherever a study's title is.
func TestGenerated(t *testing.T) {
	study := exampleStudy(t)
	if show.IsGenerated(study.GetSpec()) || strings.Contains(view.Title(study), "generated") {
		t.Errorf("the study on Adult is called %q", view.Title(study))
	}
	study.Spec.Trainer.Settings["generated"] = "true"
	want := study.GetDisplayName() + " (generated data)"
	if got := view.Title(study); got != want {
		t.Errorf("title %q, want %q", got, want)
	}
	study.DisplayName = want // as the demo sets it
	if got := view.Title(study); got != want {
		t.Errorf("title %q, want %q", got, want)
	}
}

// A trial repeats the first with its configuration, in whatever order trials are listed.
func TestRepeatedTrials(t *testing.T) {
	spec := &dparetov1.StudySpec{Parameters: []*dparetov1.ParameterSpec{{Id: "cutoff"}}}
	trial := func(number, cutoff int64, replicateOf string) *dparetov1.Trial {
		return &dparetov1.Trial{Number: number, ReplicateOf: replicateOf, Parameters: map[string]*dparetov1.Value{"cutoff": integer(cutoff)}}
	}
	listed := []*dparetov1.Trial{trial(107, 3, "studies/s/trials/57"), trial(90, 4, ""), trial(57, 3, ""), trial(12, 4, "")}
	var notes []string
	for _, row := range view.Trials(spec, listed).Rows {
		notes = append(notes, row[len(row)-1].(string))
	}
	if d := cmp.Diff([]string{"replicate of 57", "replicate of 12", "", ""}, notes); d != "" {
		t.Error(d)
	}
	if n := view.CountReplicates(listed); n != 2 {
		t.Errorf("%d replicates", n)
	}
}

// A list names a seeded run by a word, since all its rows may have it; the trial says what it means.
func TestSeededNote(t *testing.T) {
	const message = "not for release: the run was seeded"
	trial := &dparetov1.Trial{Number: 1, Warnings: []*dparetov1.Warning{{Code: "SEEDED", Message: message}}}
	row := view.Trials(new(dparetov1.StudySpec), []*dparetov1.Trial{trial}).Rows[0]
	if row[len(row)-1] != "seeded" {
		t.Errorf("listed with the note %q", row[len(row)-1])
	}
	rows := view.Trial(new(dparetov1.StudySpec), trial).Rows
	if last := rows[len(rows)-1]; last[1] != message {
		t.Errorf("shown with the note %q", last)
	}
}

// A setting that several trainers have is described once.
func TestTrainers(t *testing.T) {
	text := view.Trainers()
	for _, setting := range []string{"dataset", "split_seed", "model", "feature_norm"} {
		if n := strings.Count(text, "      "+setting+" (default ") + strings.Count(text, "      "+setting+": "); n != 1 {
			t.Errorf("%s is described %d times in\n%s", setting, n, text)
		}
	}
	if !strings.Contains(text, "      as above: ") {
		t.Errorf("no trainer refers to another in\n%s", text)
	}
}
