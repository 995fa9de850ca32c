package analyze

import (
	"context"
	"fmt"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// fit prints how well the model of a study predicts measurements that it does not know.
func fit(ctx context.Context, call *remote.Call, study string) error {
	resp, err := call.Analyses.CrossValidate(ctx, &dparetov1.CrossValidateRequest{Name: study})
	if err != nil {
		return &remote.CallError{Action: "cross-validate the model of " + study, Err: err}
	}
	if err := call.Out.Heading(fitHeading(resp)); err != nil {
		return err
	}
	return view.Print(call.Out, fitTable(resp), resp)
}

// fitHeading returns a line for each objective, and the warnings.
func fitHeading(resp *dparetov1.CrossValidateResponse) []string {
	lines := []string{"what the model predicts for each configuration without the runs of it"}
	for _, o := range resp.GetObjectives() {
		if len(o.GetPoints()) == 0 {
			lines = append(lines, o.GetMetric()+": not measured in this study")
			continue
		}
		line := fmt.Sprintf("%s: %.0f %% of %d measurements within their 90 %% intervals", o.GetMetric(), 100*o.GetCoverage(), len(o.GetPoints()))
		if o.RSquared != nil {
			line += fmt.Sprintf(", R² %.2f", o.GetRSquared())
		}
		lines = append(lines, line)
	}
	return append(lines, notes(resp.GetWarnings())...)
}

// notes returns a line for each warning.
func notes(warnings []*dparetov1.Warning) []string {
	var lines []string
	for _, w := range warnings {
		lines = append(lines, "note: "+w.GetMessage())
	}
	return lines
}

// fitTable returns a row for each measurement.
func fitTable(resp *dparetov1.CrossValidateResponse) *output.Table {
	t := &output.Table{Columns: []string{"metric", "trial", "step", "observed", "predicted", "lower", "upper", "within"}}
	for _, o := range resp.GetObjectives() {
		for _, p := range o.GetPoints() {
			q := p.GetPredicted()
			within := "no"
			if q.GetLower() <= p.GetObserved() && p.GetObserved() <= q.GetUpper() {
				within = "yes"
			}
			var step any
			if p.GetStep() > 0 {
				step = p.GetStep()
			}
			t.Rows = append(t.Rows, []any{o.GetMetric(), view.ID(p.GetTrial()), step, p.GetObserved(), q.GetMedian(), q.GetLower(), q.GetUpper(), within})
		}
	}
	return t
}
