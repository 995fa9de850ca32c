package front

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/dpareto/studies"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

var update = flag.Bool("update", false, "write the golden files")

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

// exampleStudy is the demo's study on Adult as a server returns it.
func exampleStudy(t *testing.T) *dparetov1.Study {
	t.Helper()
	content, err := studies.File("adult")
	require.NoError(t, err)
	file, err := studyfile.Parse(content)
	require.NoError(t, err)
	study := file.Study
	study.Name = "studies/adult"
	study.State = dparetov1.StudyState_STUDY_STATE_COMPLETED
	study.StateReason = "the budget of 64 trials is spent"
	study.Seed = 7
	study.CreateTime = timestamppb.New(time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC))
	study.TrialCounts = &dparetov1.TrialCounts{Succeeded: 61, Infeasible: 2, Failed: 1}
	return study
}

func exampleFront(kind dparetov1.FrontKind) *dparetov1.Front {
	point := func(trial string, step int64, epsilon, mean float64) *dparetov1.FrontPoint {
		p := &dparetov1.FrontPoint{
			Trial: "studies/adult/trials/" + trial, Step: step, Runs: 1,
			Parameters: map[string]*dparetov1.Value{
				"epochs": integer(step), "lot_size": integer(128), "learning_rate": double(0.0123456),
				"clipping_norm": double(0.1), "noise_multiplier": double(16),
			},
			Values: map[string]*dparetov1.FrontValue{
				"epsilon": {Value: epsilon},
				"error":   {Value: mean, Observed: new(mean - 0.01)},
			},
		}
		if kind == dparetov1.FrontKind_FRONT_KIND_POSTERIOR {
			p.Values["error"].Lower, p.Values["error"].Upper = new(mean-0.005), new(mean+0.005)
		}
		return p
	}
	replicated := point("9", 12, 0.2012345, 0.1602)
	replicated.Runs, replicated.Knee, replicated.Contribution = 3, true, 0.0123456
	replicated.Trials = []string{"studies/adult/trials/9", "studies/adult/trials/30"}
	value := replicated.GetValues()["error"]
	value.StandardError, value.Best, value.Worst = new(0.0012345), new(0.1499), new(0.1523)
	outside := point("5", 64, 20.5, 0.1499)
	outside.BeyondReference = true
	return &dparetov1.Front{
		Hypervolumes: []*dparetov1.KindHypervolume{
			{Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED, Hypervolume: 8.51234},
			{Kind: dparetov1.FrontKind_FRONT_KIND_POSTERIOR, Hypervolume: 8.49123},
			{Kind: dparetov1.FrontKind_FRONT_KIND_BEST, Hypervolume: 8.52},
			{Kind: dparetov1.FrontKind_FRONT_KIND_WORST, Hypervolume: 8.48},
		},
		Kind: kind, Hypervolume: 8.49123, Candidates: 300, Revision: 99, Objectives: []string{"epsilon", "error"},
		Reference: map[string]float64{"epsilon": 10, "error": 1},
		Points:    []*dparetov1.FrontPoint{point("17", 3, 0.005, 0.2356), replicated, point("2", 40, 1.0512345, 0.1501), outside},
		Warnings:  []*dparetov1.Warning{{Code: "SELECTION_BIAS", Message: "chosen by noisy measurements"}},
	}
}

// exampleComparison has one configuration of exampleFront with fresh runs and one
// without.
func exampleComparison() *Comparison {
	front := exampleFront(dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	r := &Comparison{
		Study: "adult", Kind: "posterior", FrontPoints: 4, FrontHypervolume: 8.49123,
		ComparedPoints: 1, ClaimedHypervolume: 8.48, Hypervolume: 8.47123,
	}
	for i, p := range front.GetPoints()[:2] {
		v := p.GetValues()["error"]
		point := comparedPoint{
			Front: p, Trial: p.GetTrial(), Step: p.GetStep(), Parameters: map[string]any{"epochs": p.GetStep()},
			Replicates: []string{"studies/adult/trials/70", "studies/adult/trials/72"},
			Values: map[string]comparedValue{
				"epsilon": {Claimed: p.GetValues()["epsilon"].GetValue()},
				"error":   {Claimed: v.GetValue(), Lower: v.Lower, Upper: v.Upper},
			},
		}
		if i == 0 {
			value := point.Values["error"]
			value.Remeasured, value.StandardError = new(0.2381), new(0.0011)
			point.Values["error"], point.Runs, point.Failures = value, 2, 1
			point.Replicates = append(point.Replicates, "studies/adult/trials/74")
		}
		r.Points = append(r.Points, point)
	}
	return r
}

func TestComparisonJSON(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, output.WriteJSON(&b, exampleComparison()))
	golden(t, "comparison.json", b.String())
}

func TestTables(t *testing.T) {
	study := exampleStudy(t)
	posterior := exampleFront(dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	observed := exampleFront(dparetov1.FrontKind_FRONT_KIND_OBSERVED)
	for name, shown := range map[string]*output.Table{
		"front_posterior": table(study.GetSpec(), posterior, true),
		"front_narrow":    table(study.GetSpec(), posterior, false),
		"front_observed":  table(study.GetSpec(), observed, true),
		"hypervolumes": hypervolumeTable(study.GetSpec(), []*dparetov1.HypervolumePoint{
			{Trial: "studies/adult/trials/2", CompletedTrials: 1, Runs: 1, Steps: 12, Hypervolume: 7.91234},
			{Trial: "studies/adult/trials/1", CompletedTrials: 2, Runs: 2, Steps: 76, Hypervolume: 8.4},
		}),
		"comparison": exampleComparison().table(study.GetSpec(), posterior),
	} {
		t.Run(name, func(t *testing.T) {
			var text, comma bytes.Buffer
			require.NoError(t, errors.Join(shown.WriteText(&text), shown.WriteCSV(&comma)))
			golden(t, name+".txt", text.String())
			golden(t, name+".csv", comma.String())
			records, err := csv.NewReader(&comma).ReadAll()
			if err != nil || len(records) != len(shown.Rows)+1 {
				t.Errorf("%d records, want %d: %v", len(records), len(shown.Rows)+1, err)
			}
		})
	}
	golden(t, "front_heading.txt", strings.Join(Heading(study, posterior), "\n")+"\n")
	golden(t, "comparison_heading.txt", strings.Join(exampleComparison().heading(study, posterior), "\n")+"\n")
}

// Generated data are named in the heading.
func TestGenerated(t *testing.T) {
	study := exampleStudy(t)
	study.Spec.Trainer.Settings["generated"] = "true"
	if heading := Heading(study, exampleFront(dparetov1.FrontKind_FRONT_KIND_OBSERVED)); !strings.Contains(heading[0], "generated data") {
		t.Errorf("heading %q", heading[0])
	}
}

func TestJSON(t *testing.T) {
	var one bytes.Buffer
	front := exampleFront(dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	require.NoError(t, view.WriteMessage(&one, front))
	golden(t, "front.json", one.String())
	// As jq '.points[0].parameters.epochs' would read it.
	var decoded struct {
		Kind   string `json:"kind"`
		Points []struct {
			Step       int64 `json:"step"`
			Parameters struct {
				Epochs int64   `json:"epochs"`
				Noise  float64 `json:"noise_multiplier"`
			} `json:"parameters"`
		} `json:"points"`
	}
	require.NoError(t, json.Unmarshal(one.Bytes(), &decoded))
	if p := decoded.Points[0]; decoded.Kind != "posterior" || p.Step != 3 || p.Parameters.Epochs != 3 || p.Parameters.Noise != 16 {
		t.Errorf("decoded %+v", decoded)
	}
}

// A constant point has neither trial nor parameters, and says so.
func TestConstantPointInTables(t *testing.T) {
	study, front := exampleStudy(t), exampleFront(dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	values := make(map[string]*dparetov1.FrontValue)
	for _, id := range front.GetObjectives() {
		values[id] = new(dparetov1.FrontValue)
	}
	front.Points = append([]*dparetov1.FrontPoint{{ConstantPoint: "majority", Values: values}}, front.GetPoints()...)
	for _, wide := range []bool{false, true} {
		rows := table(study.GetSpec(), front, wide)
		at := func(column string) any { return rows.Rows[0][slices.Index(rows.Columns, column)] }
		if at("remark") != "no run: majority" || at("trial") != nil {
			t.Errorf("row %v", rows.Rows[0])
		}
		if slices.Contains(rows.Rows[0], any("0 to 0")) {
			t.Errorf("an interval of a declared value: %v", rows.Rows[0])
		}
	}
	if f := Figure(study, front, nil); f.Front[0].Label != "no run: majority" {
		t.Errorf("figure %+v", f.Front[0])
	}
	resp := &dparetov1.QueryFrontResponse{
		Reachable: true, ConstantPoint: "majority", Reached: map[string]float64{"epsilon": 0, "error": 0.25}, Optimize: "error",
	}
	answer := recommendation(study.GetSpec(), resp)
	if len(answer.Rows) != 1 || answer.Rows[0][slices.Index(answer.Columns, "constant_point")] != "majority" || answer.Rows[0][slices.Index(answer.Columns, "error")] != 0.25 {
		t.Errorf("recommendation %v", answer)
	}
	resp = &dparetov1.QueryFrontResponse{ // where no model agrees with the measurements
		Reachable: true, Reached: map[string]float64{"epsilon": 1, "error": 0.25}, Parameters: front.GetPoints()[1].GetParameters(),
		ComputedMetrics: map[string]*dparetov1.MetricValue{"epsilon": {Value: new(1.0)}},
	}
	answer = recommendation(study.GetSpec(), resp)
	if at := slices.Index(answer.Columns, "error"); at < 0 || answer.Rows[0][at] != 0.25 || slices.Contains(answer.Columns, "error_lower") {
		t.Errorf("measured recommendation %v", answer)
	}
}
