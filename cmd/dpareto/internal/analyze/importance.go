package analyze

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// askImportance asks for the importance of parameters.
func askImportance(ctx context.Context, q *question) (*answer, error) {
	resp, err := q.call.Analyses.AnalyzeImportance(ctx, &dparetov1.AnalyzeImportanceRequest{Name: q.study.GetName()})
	if err != nil {
		return nil, q.failed("compute the importance of the parameters", err)
	}
	t := &output.Table{Columns: []string{"metric", "parameter"}}
	isText := q.call.Out.Format == output.Text
	for _, name := range []string{"first_order", "total"} {
		t.Columns = append(t.Columns, name)
		if isText {
			t.Columns = append(t.Columns, name+"_90%")
		} else {
			t.Columns = append(t.Columns, name+"_lower", name+"_upper")
		}
	}
	if isText {
		t.Columns = append(t.Columns, "")
	}
	for _, o := range resp.GetObjectives() {
		if !q.shows(o.GetMetric()) {
			continue
		}
		for _, p := range o.GetParameters() {
			row := []any{o.GetMetric(), p.GetParameter()}
			for _, v := range []*dparetov1.IntervalEstimate{p.GetFirstOrder(), p.GetTotal()} {
				if isText {
					row = append(row, share(v.GetValue()), share(v.GetLower())+" to "+share(v.GetUpper()))
				} else {
					row = append(row, v.GetValue(), v.GetLower(), v.GetUpper())
				}
			}
			if isText {
				row = append(row, bar(p.GetTotal().GetValue()))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return &answer{resp, resp.GetWarnings(), output.Section{
		Title: "Importance: share of the variation over the search space that a parameter explains, by itself and in total",
		Table: t,
	}}, nil
}

// share returns a share in [0, 1] with two decimals.
func share(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// bar returns a bar for a share in [0, 1].
func bar(x float64) string {
	const width = 20
	return strings.Repeat("█", int(math.Round(width*x)))
}
