package analysis

import (
	"context"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	sensitivity "github.com/dpareto/dpareto/suggest/analysis"
	"github.com/dpareto/dpareto/suggest/space"
)

const (
	defaultContourPoints = 25
	maxContourPoints     = 60
)

// AnalyzeContour implements AnalysisService.
func (a *Analyses) AnalyzeContour(ctx context.Context, req *dparetov1.AnalyzeContourRequest) (*dparetov1.AnalyzeContourResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	points, err := pointsOf(req.GetPoints(), defaultContourPoints, maxContourPoints)
	if err != nil {
		return nil, err
	}
	r, err := a.fronts.Results(ctx, id, false)
	if err != nil {
		return nil, err
	}
	axes, err := axesOf(r, req)
	if err != nil {
		return nil, err
	}
	return front.Kept(ctx, r, req, func(ctx context.Context) (*dparetov1.AnalyzeContourResponse, error) {
		return a.contour(ctx, r, req, axes, points)
	})
}

// contour computes an objective over two parameters.
func (a *Analyses) contour(ctx context.Context, r *front.Results, req *dparetov1.AnalyzeContourRequest, axes axes, points int) (*dparetov1.AnalyzeContourResponse, error) {
	p, err := newPlace(ctx, r, req.GetParameters())
	if err != nil {
		return nil, err
	}
	resp := &dparetov1.AnalyzeContourResponse{Warnings: p.warnings, Revision: r.Study.GetRevision()}
	if p.centre == nil || !p.believes(axes.objective) {
		return resp, nil
	}
	if err := axes.checkActive(r, p.centre); err != nil {
		return nil, err
	}
	resp.Parameters = r.Compiled.Points.Values(p.centre)
	var xs, ys []float64
	xs, resp.XValues = p.values(axes.x, points)
	ys, resp.YValues = p.values(axes.y, points)
	var at []space.Point
	for _, y := range ys {
		for _, x := range xs {
			q := p.centre.Clone()
			q[axes.x], q[axes.y] = x, y
			at = append(at, r.Compiled.Problem.Space.Canonical(q))
		}
	}
	return resp, a.pool.Run(ctx, pool.Analysis, func(ctx context.Context) error {
		predictions, err := sensitivity.Predict(ctx, r.Compiled.Problem, p.model, axes.objective, at)
		for _, prediction := range predictions {
			resp.Predictions = append(resp.Predictions, engine.PredictionMessage(prediction))
		}
		return err
	})
}

// axes are the indices of an objective and of two parameters.
type axes struct{ objective, x, y int }

// axesOf checks the axes of a requested contour.
func axesOf(r *front.Results, req *dparetov1.AnalyzeContourRequest) (axes, error) {
	objectives, parameters := r.Compiled.Objectives(), r.Compiled.Problem.Space.Parameters
	index := func(id string) int {
		return slices.IndexFunc(parameters, func(p space.Parameter) bool { return p.Name == id })
	}
	found := axes{slices.Index(objectives, req.GetMetric()), index(req.GetXParameter()), index(req.GetYParameter())}
	var fields invalid.Fields
	if found.objective < 0 {
		fields.Addf("metric", "%q is not an objective of the study (objectives: %v)", req.GetMetric(), objectives)
	}
	if found.x < 0 {
		fields.Addf("x_parameter", "%q is not a parameter of the study", req.GetXParameter())
	}
	if found.y < 0 {
		fields.Addf("y_parameter", "%q is not a parameter of the study", req.GetYParameter())
	}
	if found.x >= 0 && found.x == found.y {
		fields.Addf("y_parameter", "must differ from x_parameter")
	}
	return found, fields.Err()
}

// checkActive refuses a parameter that does not exist at the centre.
func (x axes) checkActive(r *front.Results, centre space.Point) error {
	var fields invalid.Fields
	check := func(field string, k int) {
		if s := r.Compiled.Problem.Space; !s.Active(centre, k) {
			fields.Addf(field, "%q does not exist at the configuration at which the other parameters are held; set parameters", s.Parameters[k].Name)
		}
	}
	check("x_parameter", x.x)
	check("y_parameter", x.y)
	return fields.Err()
}
