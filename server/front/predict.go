package front

import (
	"context"
	"errors"
	"fmt"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/suggest/model"
)

// maxPredictions bounds the configurations in one call.
const maxPredictions = 1000

// PredictMetrics implements FrontService.
func (f *Fronts) PredictMetrics(ctx context.Context, req *dparetov1.PredictMetricsRequest) (*dparetov1.PredictMetricsResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	if n := len(req.GetConfigurations()); n < 1 || n > maxPredictions {
		return nil, invalid.Field("configurations", "must hold 1 to %d configurations, holds %d", maxPredictions, n)
	}
	r, err := f.Results(ctx, id, false)
	if err != nil {
		return nil, err
	}
	resp := &dparetov1.PredictMetricsResponse{Revision: r.Study.GetRevision()}
	fitted, err := r.Fitted(ctx)
	switch {
	case errors.Is(err, model.ErrNoData):
		resp.Warnings = append(resp.Warnings, NoModel())
	case err != nil:
		return nil, err
	default:
		resp.Warnings = append(resp.Warnings, Doubts(fitted.Model)...)
	}
	return resp, f.pool.Run(ctx, pool.Analysis, func(ctx context.Context) error {
		for i, c := range req.GetConfigurations() {
			if err := pause.Check(ctx); err != nil {
				return err
			}
			point, err := r.Compiled.Points.Parse(fmt.Sprintf("configurations[%d].parameters", i), c.GetParameters())
			if err != nil {
				return err
			}
			p := new(dparetov1.ConfigurationPrediction)
			p.ComputedMetrics, p.Warnings = r.Compiled.Metrics.Compute(point)
			if fitted != nil && !fitted.Model.Check().Contradicted {
				p.Predictions = predictions(r.Compiled, fitted.Model.Predict(point))
			}
			resp.Predictions = append(resp.Predictions, p)
		}
		return nil
	})
}
