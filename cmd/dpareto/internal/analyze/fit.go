package analyze

import (
	"context"
	"fmt"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// askFit asks how well the model predicts measurements that it does not know.
func askFit(ctx context.Context, q *question) (*answer, error) {
	resp, err := q.call.Analyses.CrossValidate(ctx, &dparetov1.CrossValidateRequest{Name: q.study.GetName()})
	if err != nil {
		return nil, q.failed("cross-validate the model", err)
	}
	section := output.Section{
		Title: "Fit: what the model predicts for each configuration without the runs of it",
		Table: &output.Table{Columns: []string{"metric", "trial", "step", "observed", "predicted", "lower", "upper", "within"}},
	}
	for _, o := range resp.GetObjectives() {
		if !q.shows(o.GetMetric()) {
			continue
		}
		section.Notes = append(section.Notes, fitSummary(o))
		for _, p := range o.GetPoints() {
			section.Table.Rows = append(section.Table.Rows, fitRow(o.GetMetric(), p))
		}
	}
	return &answer{resp, resp.GetWarnings(), section}, nil
}

// fitSummary says how good the predictions of an objective are.
func fitSummary(o *dparetov1.ObjectiveValidation) string {
	if len(o.GetPoints()) == 0 {
		return o.GetMetric() + ": not measured in this study"
	}
	line := fmt.Sprintf("%s: %.0f %% of %d measurements within their 90 %% intervals", o.GetMetric(), 100*o.GetCoverage(), len(o.GetPoints()))
	if o.RSquared != nil {
		line += fmt.Sprintf(", R² %.2f", o.GetRSquared())
	}
	return line
}

// fitRow returns the row of a measurement.
func fitRow(metric string, p *dparetov1.ValidationPoint) []any {
	q := p.GetPredicted()
	within := "no"
	if q.GetLower() <= p.GetObserved() && p.GetObserved() <= q.GetUpper() {
		within = "yes"
	}
	var step any
	if p.GetStep() > 0 {
		step = p.GetStep()
	}
	return []any{metric, view.ID(p.GetTrial()), step, p.GetObserved(), q.GetMedian(), q.GetLower(), q.GetUpper(), within}
}
