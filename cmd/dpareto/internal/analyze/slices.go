package analyze

import (
	"context"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
)

// askSlices asks for the objectives along each parameter.
func askSlices(ctx context.Context, q *question) (*answer, error) {
	fixed, err := q.fixed()
	if err != nil {
		return nil, err
	}
	resp, err := q.call.Analyses.AnalyzeSlices(ctx, &dparetov1.AnalyzeSlicesRequest{Name: q.study.GetName(), Parameters: fixed, Points: q.flags.points})
	if err != nil {
		return nil, q.failed("compute the slices", err)
	}
	t := &output.Table{Columns: []string{"metric", "parameter", "value", "median", "lower", "upper"}}
	for _, s := range resp.GetSlices() {
		if !q.shows(s.GetMetric()) {
			continue
		}
		for _, p := range s.GetPoints() {
			t.Rows = append(t.Rows, append([]any{s.GetMetric(), s.GetParameter(), view.Value(p.GetValue())}, q.prediction(s.GetMetric(), p.GetPrediction())...))
		}
	}
	return &answer{resp, resp.GetWarnings(), output.Section{Title: "Slices" + q.held(resp.GetParameters()), Table: t}}, nil
}

// prediction returns the cells of a prediction.
func (q *question) prediction(metric string, p *dparetov1.MetricPrediction) []any {
	return []any{q.value(metric, p.GetMedian()), q.value(metric, p.GetLower()), q.value(metric, p.GetUpper())}
}

// askContour asks for an objective over two parameters.
func askContour(ctx context.Context, q *question) (*answer, error) {
	fixed, err := q.fixed()
	if err != nil {
		return nil, err
	}
	metric := q.flags.metric
	for _, m := range show.Objectives(q.study.GetSpec()) {
		if metric == "" && m.GetReported() != nil {
			metric = m.GetId()
		}
	}
	if metric == "" {
		return nil, command.Usagef("--contour: no objective is measured; add --metric")
	}
	x, y := q.flags.contour[0], q.flags.contour[1]
	resp, err := q.call.Analyses.AnalyzeContour(ctx, &dparetov1.AnalyzeContourRequest{
		Name: q.study.GetName(), Metric: metric, XParameter: x, YParameter: y, Parameters: fixed, Points: q.flags.points,
	})
	if err != nil {
		return nil, q.failed("compute the contour", err)
	}
	t := &output.Table{Columns: []string{x, y, "median", "lower", "upper"}}
	for i, p := range resp.GetPredictions() {
		columns := len(resp.GetXValues())
		row := []any{view.Value(resp.GetXValues()[i%columns]), view.Value(resp.GetYValues()[i/columns])}
		t.Rows = append(t.Rows, append(row, q.prediction(metric, p)...))
	}
	return &answer{resp, resp.GetWarnings(), output.Section{Title: "Contour of " + metric + q.held(resp.GetParameters(), x, y), Table: t}}, nil
}
