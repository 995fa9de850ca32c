package analyze

import (
	"context"
	"fmt"

	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
)

// askGain asks by how much further runs are expected to enlarge the hypervolume.
func askGain(ctx context.Context, q *question) (*answer, error) {
	resp, err := q.call.Analyses.ForecastGain(ctx, &dparetov1.ForecastGainRequest{Name: q.study.GetName(), Runs: q.flags.gain})
	if err != nil {
		return nil, q.failed("forecast the gain of further runs", err)
	}
	section := output.Section{Title: "Expected gain of the next runs", Table: gainTable(resp)}
	if n := len(resp.GetPoints()); n > 0 {
		g := resp.GetPoints()[n-1].GetGain()
		section.Notes = append(section.Notes, fmt.Sprintf("hypervolume of the posterior front: %s; %d more runs are expected to gain %s (90 %% interval %s to %s)",
			show.Number(resp.GetHypervolume()), n, show.Number(g.GetValue()), show.Number(g.GetLower()), show.Number(g.GetUpper())))
	}
	return &answer{resp, resp.GetWarnings(), section}, nil
}

// gainTable returns a row for each number of runs.
func gainTable(resp *dparetov1.ForecastGainResponse) *output.Table {
	t := &output.Table{Columns: []string{"runs", "gain", "lower", "upper", "probability_of_1%"}}
	hasCost := resp.GetCostUnit() != "runs" // which the first column has
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
