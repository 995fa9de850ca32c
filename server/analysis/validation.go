package analysis

import (
	"context"
	"errors"
	"fmt"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/suggest/analysis"
	"github.com/dpareto/dpareto/suggest/model"
)

// warnThinned says that a model is not made of all measurements.
const warnThinned = "MODEL_THINNED"

// CrossValidate implements AnalysisService.
func (a *Analyses) CrossValidate(ctx context.Context, req *dparetov1.CrossValidateRequest) (*dparetov1.CrossValidateResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	r, err := a.fronts.Results(ctx, id, false)
	if err != nil {
		return nil, err
	}
	return front.Kept(ctx, r, req, func(ctx context.Context) (*dparetov1.CrossValidateResponse, error) {
		return a.validation(ctx, r)
	})
}

// validation computes how well the model predicts unseen results.
func (a *Analyses) validation(ctx context.Context, r *front.Results) (*dparetov1.CrossValidateResponse, error) {
	resp := &dparetov1.CrossValidateResponse{Revision: r.Study.GetRevision()}
	fitted, err := r.Fitted(ctx)
	if errors.Is(err, model.ErrNoData) {
		resp.Warnings = append(resp.Warnings, front.NoModel())
		return resp, nil
	}
	if err != nil {
		return nil, err
	}
	var validations []analysis.Validation
	err = a.pool.Run(ctx, pool.Analysis, func(ctx context.Context) error {
		validations, err = analysis.CrossValidate(ctx, fitted.Model)
		return err
	})
	if err != nil {
		return nil, err
	}
	resp.Warnings = append(resp.Warnings, front.Doubts(fitted.Model)...)
	for _, v := range validations {
		resp.Objectives = append(resp.Objectives, validationMessage(fitted, v))
	}
	if n, all := len(fitted.Model.Configurations()), len(fitted.Configurations); n < all {
		resp.Warnings = append(resp.Warnings, &dparetov1.Warning{
			Code:    warnThinned,
			Message: fmt.Sprintf("the model is made of %d of %d measured configurations: a few steps of each run, and of many runs those near the front and a sample of the others", n, all),
		})
	}
	return resp, nil
}

// validationMessage converts the validation of one objective.
func validationMessage(fitted *front.FittedModel, v analysis.Validation) *dparetov1.ObjectiveValidation {
	out := &dparetov1.ObjectiveValidation{
		Metric:   fitted.Compiled.Objectives()[v.Objective],
		Coverage: defined(v.Coverage),
		RSquared: defined(v.RSquared),
	}
	for _, p := range v.Points {
		// The model numbers evaluations as the results number measurements.
		first := &fitted.Measurements[fitted.Model.Configurations()[p.Configuration].Evaluations[0]]
		point := &dparetov1.ValidationPoint{
			Trial: fitted.TrialOf(first), Observed: p.Observed, Predicted: engine.PredictionMessage(p.Predicted),
		}
		if fitted.Compiled.Points.Checkpoints() {
			point.Step = first.Step
		}
		out.Points = append(out.Points, point)
	}
	return out
}

// defined returns a value, or nil for NaN.
func defined(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}
