package analysis

import (
	"context"
	"errors"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	sensitivity "github.com/dpareto/dpareto/suggest/analysis"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
)

const (
	defaultSlicePoints = 41
	maxSlicePoints     = 200
)

// AnalyzeSlices implements AnalysisService.
func (a *Analyses) AnalyzeSlices(ctx context.Context, req *dparetov1.AnalyzeSlicesRequest) (*dparetov1.AnalyzeSlicesResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	points, err := pointsOf(req.GetPoints(), defaultSlicePoints, maxSlicePoints)
	if err != nil {
		return nil, err
	}
	r, err := a.fronts.Results(ctx, id, false)
	if err != nil {
		return nil, err
	}
	return front.Kept(ctx, r, req, func(ctx context.Context) (*dparetov1.AnalyzeSlicesResponse, error) {
		return a.slices(ctx, r, req, points)
	})
}

// slices computes the slices of all objectives along all parameters.
func (a *Analyses) slices(ctx context.Context, r *front.Results, req *dparetov1.AnalyzeSlicesRequest, points int) (*dparetov1.AnalyzeSlicesResponse, error) {
	p, err := newPlace(ctx, r, req.GetParameters())
	if err != nil {
		return nil, err
	}
	resp := &dparetov1.AnalyzeSlicesResponse{Warnings: p.warnings, Revision: r.Study.GetRevision()}
	if p.centre == nil {
		return resp, nil
	}
	resp.Parameters = r.Compiled.Points.Values(p.centre)
	return resp, a.pool.Run(ctx, pool.Analysis, func(ctx context.Context) error {
		for j := range r.Compiled.Problem.Objectives {
			if !p.believes(j) {
				continue
			}
			for k := range p.centre {
				if !r.Compiled.Problem.Space.Active(p.centre, k) {
					continue
				}
				slice, err := p.slice(ctx, j, k, points)
				if err != nil {
					return err
				}
				resp.Slices = append(resp.Slices, slice)
			}
		}
		return nil
	})
}

// pointsOf returns the number of values asked for, or its default.
func pointsOf(asked int32, usual, most int) (int, error) {
	switch n := int(asked); {
	case n == 0:
		return usual, nil
	case n < 2 || n > most:
		return 0, invalid.Field("points", "must be in [2, %d], or 0 for the default, is %d", most, n)
	default:
		return n, nil
	}
}

// place is where the others of a few parameters are held, with the prediction there.
type place struct {
	results  *front.Results
	model    *model.Model // nil if nothing has been measured
	centre   space.Point  // nil if there is none
	warnings []*dparetov1.Warning
}

// newPlace returns the place with the given parameters or, without any, at the knee of the posterior
// front, else at its middle point.
func newPlace(ctx context.Context, r *front.Results, parameters map[string]*dparetov1.Value) (*place, error) {
	p := &place{results: r}
	if len(parameters) > 0 {
		var err error
		if p.centre, err = r.Compiled.Points.Parse("parameters", parameters); err != nil {
			return nil, err
		}
	}
	fitted, err := r.Fitted(ctx)
	if errors.Is(err, model.ErrNoData) {
		p.warnings = append(p.warnings, front.NoModel())
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p.model = fitted.Model
	p.warnings = append(p.warnings, front.Doubts(fitted.Model)...)
	if p.centre != nil {
		return p, nil
	}
	posterior, err := r.Posterior(ctx)
	if err != nil {
		return nil, err
	}
	p.centre = centreOf(r, posterior)
	if p.centre == nil {
		return nil, invalid.Field("parameters", "must be set: the posterior front has no point in the search space")
	}
	return p, nil
}

// centreOf returns the knee of a front, else its middle point, or nil if no point of the front lies
// in the search space. Measured configurations may lie outside since the space has changed.
func centreOf(r *front.Results, f *dparetov1.Front) space.Point {
	var inside []space.Point
	for _, p := range f.GetPoints() {
		q, err := r.Compiled.Points.Parse("parameters", p.GetParameters())
		if err != nil {
			continue
		}
		if p.GetKnee() {
			return q
		}
		inside = append(inside, q)
	}
	if len(inside) == 0 {
		return nil
	}
	return inside[len(inside)/2]
}

// believes reports whether anything is known of objective j.
func (p *place) believes(j int) bool {
	return p.model != nil || p.results.Compiled.Problem.Objectives[j].Known != nil
}

// with returns the centre with another value of parameter k.
func (p *place) with(k int, v float64) space.Point {
	q := p.centre.Clone()
	q[k] = v
	return p.results.Compiled.Problem.Space.Canonical(q)
}

// values returns values of parameter k, and their messages.
func (p *place) values(k, points int) (values []float64, messages []*dparetov1.Value) {
	parameter := &p.results.Compiled.Problem.Space.Parameters[k]
	values = sensitivity.Values(parameter, points)
	for _, v := range values {
		messages = append(messages, p.results.Compiled.Points.Values(p.with(k, v))[parameter.Name])
	}
	return values, messages
}

// slice returns objective j along parameter k.
func (p *place) slice(ctx context.Context, j, k, points int) (*dparetov1.Slice, error) {
	problem := p.results.Compiled.Problem
	values, messages := p.values(k, points)
	at := make([]space.Point, len(values))
	for i, v := range values {
		at[i] = p.with(k, v)
	}
	predictions, err := sensitivity.Predict(ctx, problem, p.model, j, at)
	if err != nil {
		return nil, err
	}
	s := &dparetov1.Slice{Metric: problem.Objectives[j].Name, Parameter: problem.Space.Parameters[k].Name}
	for i, prediction := range predictions {
		if !math.IsNaN(prediction.Median) {
			s.Points = append(s.Points, &dparetov1.SlicePoint{Value: messages[i], Prediction: engine.PredictionMessage(prediction)})
		}
	}
	return s, nil
}
