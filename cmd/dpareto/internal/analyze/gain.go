package analyze

import (
	"context"
	"fmt"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// gain prints by how much further runs of a study are expected to enlarge its hypervolume.
func gain(ctx context.Context, call *remote.Call, study string, runs int32) error {
	resp, err := call.Analyses.ForecastGain(ctx, &dparetov1.ForecastGainRequest{Name: study, Runs: runs})
	if err != nil {
		return &remote.CallError{Action: "forecast the gain of runs of " + study, Err: err}
	}
	if err := call.Out.Heading(gainHeading(resp)); err != nil {
		return err
	}
	return view.Print(call.Out, gainTable(resp), resp)
}

// gainHeading returns what all runs together are expected to gain, and the warnings.
func gainHeading(resp *dparetov1.ForecastGainResponse) []string {
	line := "hypervolume of the posterior front: " + output.Number(resp.GetHypervolume())
	if n := len(resp.GetPoints()); n > 0 {
		g := resp.GetPoints()[n-1].GetGain()
		line += fmt.Sprintf("; %d more runs are expected to gain %s (90 %% interval %s to %s)", n, output.Number(g.GetValue()), output.Number(g.GetLower()), output.Number(g.GetUpper()))
	}
	return append([]string{line}, notes(resp.GetWarnings())...)
}

// gainTable returns a row for each number of runs.
func gainTable(resp *dparetov1.ForecastGainResponse) *output.Table {
	t := &output.Table{Columns: []string{"runs", "gain", "lower", "upper", "probability"}}
	hasCost := resp.GetCostUnit() != "runs"
	if hasCost {
		t.Columns = append(t.Columns, "cost_"+resp.GetCostUnit())
	}
	for _, p := range resp.GetPoints() {
		row := []any{int64(p.GetRuns()), p.GetGain().GetValue(), p.GetGain().GetLower(), p.GetGain().GetUpper(), p.GetProbability()}
		if hasCost {
			var cost any
			if p.Cost != nil {
				cost = p.GetCost()
			}
			row = append(row, cost)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
