package analyze

import (
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// text returns a section as people see it.
func text(t *testing.T, heading []string, table *output.Table) string {
	t.Helper()
	var b strings.Builder
	if err := table.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return strings.Join(heading, "\n") + "\n" + b.String()
}

func wantTexts(t *testing.T, got string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestFitSection(t *testing.T) {
	resp := &dparetov1.CrossValidateResponse{
		Objectives: []*dparetov1.ObjectiveValidation{
			{
				Metric: "error", Coverage: new(0.5), RSquared: new(0.875), Points: []*dparetov1.ValidationPoint{
					{Trial: "studies/s/trials/3", Step: 8, Observed: 0.25, Predicted: &dparetov1.MetricPrediction{Median: 0.3, Lower: 0.2, Upper: 0.4}},
					{Trial: "studies/s/trials/4", Observed: 0.5, Predicted: &dparetov1.MetricPrediction{Median: 0.3, Lower: 0.2, Upper: 0.4}},
				},
			},
			{Metric: "time"},
		},
		Warnings: []*dparetov1.Warning{{Code: "MODEL_THINNED", Message: "a few steps only"}},
	}
	wantTexts(t, text(t, fitHeading(resp), fitTable(resp)),
		"error: 50 % of 2 measurements within their 90 % intervals, R² 0.88", "time: not measured in this study", "note: a few steps only", "yes", "no", "within")
	rows := fitTable(resp).Rows
	if rows[0][1] != "3" || rows[0][2] != int64(8) || rows[0][7] != "yes" || rows[1][2] != nil || rows[1][7] != "no" {
		t.Errorf("rows %v", rows)
	}
}

func TestGainSection(t *testing.T) {
	resp := &dparetov1.ForecastGainResponse{
		Hypervolume: 2, CostUnit: "epochs",
		Points: []*dparetov1.GainPoint{
			{Runs: 1, Gain: &dparetov1.IntervalEstimate{Value: 0.125, Lower: -0.5, Upper: 0.75}, Cost: new(64.0), Probability: 0.5},
			{Runs: 2, Gain: &dparetov1.IntervalEstimate{Value: 0.25, Lower: 0, Upper: 1}, Probability: 0.75},
		},
		Warnings: []*dparetov1.Warning{{Code: "RUNS_PENDING", Message: "one trial is open"}},
	}
	wantTexts(t, text(t, gainHeading(resp), gainTable(resp)),
		"hypervolume of the posterior front: 2.000; 2 more runs are expected to gain 0.2500 (90 % interval 0 to 1.000)", "note: one trial is open", "cost_epochs", "64")
	if rows := gainTable(resp).Rows; rows[0][5] != 64.0 || rows[1][5] != nil {
		t.Errorf("rows %v", rows)
	}
	resp.CostUnit = "runs"
	if columns := gainTable(resp).Columns; len(columns) != 5 {
		t.Errorf("columns %v: the cost repeats the runs", columns)
	}
	if lines := gainHeading(new(dparetov1.ForecastGainResponse)); len(lines) != 1 || strings.Contains(lines[0], "expected") {
		t.Errorf("without a model: %q", lines)
	}
}
