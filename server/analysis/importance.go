package analysis

import (
	"context"
	"errors"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/suggest"
	sensitivity "github.com/dpareto/dpareto/suggest/analysis"
	"github.com/dpareto/dpareto/suggest/model"
)

// AnalyzeImportance implements AnalysisService.
func (a *Analyses) AnalyzeImportance(ctx context.Context, req *dparetov1.AnalyzeImportanceRequest) (*dparetov1.AnalyzeImportanceResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	r, err := a.fronts.Results(ctx, id, false)
	if err != nil {
		return nil, err
	}
	return front.Kept(ctx, r, req, func(ctx context.Context) (*dparetov1.AnalyzeImportanceResponse, error) {
		return a.importance(ctx, r)
	})
}

// importance computes the importance of all parameters for all objectives.
func (a *Analyses) importance(ctx context.Context, r *front.Results) (*dparetov1.AnalyzeImportanceResponse, error) {
	resp := &dparetov1.AnalyzeImportanceResponse{Revision: r.Study.GetRevision()}
	models, err := models(ctx, r)
	switch {
	case errors.Is(err, model.ErrNoData):
		resp.Warnings = append(resp.Warnings, front.NoModel())
	case err != nil:
		return nil, err
	default:
		resp.Warnings = append(resp.Warnings, front.Doubts(models[0])...)
	}
	problem := r.Compiled.Problem
	return resp, a.pool.Run(ctx, pool.Analysis, func(ctx context.Context) error {
		for j := range problem.Objectives {
			o := &problem.Objectives[j]
			if models == nil && o.Known == nil {
				continue
			}
			s, err := sensitivity.Importance(ctx, problem, models, j, r.Study.GetSeed())
			if err != nil {
				return err
			}
			if math.IsNaN(s.Variance.Value) {
				continue // it can be computed nowhere
			}
			message := &dparetov1.ObjectiveImportance{Metric: o.Name, Transform: transform(o), Variance: interval(s.Variance)}
			for i := range problem.Space.Parameters {
				message.Parameters = append(message.Parameters, &dparetov1.ParameterImportance{
					Parameter: problem.Space.Parameters[i].Name, FirstOrder: interval(s.FirstOrder[i]), Total: interval(s.Total[i]),
				})
			}
			resp.Objectives = append(resp.Objectives, message)
		}
		return nil
	})
}

// models returns the model behind the posterior front, and one of smoother functions. Where all
// objectives are computed there is nothing to fit.
func models(ctx context.Context, r *front.Results) ([]*model.Model, error) {
	fitted, err := r.Fitted(ctx)
	if err != nil {
		return nil, err
	}
	o := r.ModelOptions()
	o.Smooth = true
	smooth, err := r.FitWith(ctx, o)
	if err != nil {
		return nil, err
	}
	return []*model.Model{fitted.Model, smooth}, nil
}

func interval(v sensitivity.Interval) *dparetov1.IntervalEstimate {
	return &dparetov1.IntervalEstimate{Value: v.Value, Lower: v.Lower, Upper: v.Upper}
}

func transform(o *suggest.Objective) dparetov1.Transform {
	switch o.Transform {
	case suggest.Log:
		return dparetov1.Transform_TRANSFORM_LOG
	case suggest.Logit:
		return dparetov1.Transform_TRANSFORM_LOGIT
	default:
		return dparetov1.Transform_TRANSFORM_IDENTITY
	}
}
