package front

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/model"
	frontquery "github.com/dpareto/dpareto/suggest/query"
)

const (
	// defaultConfidence is the default confidence of QueryFront.
	defaultConfidence = 0.5
	// warnNotMeasured marks a recommendation that was never run.
	warnNotMeasured = "NOT_MEASURED"
)

// QueryFront implements FrontService.
func (f *Fronts) QueryFront(ctx context.Context, req *dparetov1.QueryFrontRequest) (*dparetov1.QueryFrontResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	r, err := f.Results(ctx, id, false)
	if err != nil {
		return nil, err
	}
	query, err := queryOf(r.Compiled, req)
	if err != nil {
		return nil, err
	}
	query.Seed = r.Study.GetSeed()
	return Kept(ctx, r, req, func(ctx context.Context) (*dparetov1.QueryFrontResponse, error) {
		return r.query(ctx, query, req.GetMeasuredOnly())
	})
}

// query answers a query.
func (r *Results) query(ctx context.Context, query frontquery.Query, measuredOnly bool) (*dparetov1.QueryFrontResponse, error) {
	resp := &dparetov1.QueryFrontResponse{
		Optimize: r.Compiled.Objectives()[query.Optimize],
		Revision: r.Study.GetRevision(),
	}
	constant, index, hasConstant := query.Constant(r.problem)
	answer := func(best *frontquery.Answer) { // nil if nothing was found
		switch {
		case hasConstant && (best == nil || !query.Better(r.problem, best, &constant)):
			resp.ConstantPoint = r.Study.GetSpec().GetConstantPoints()[index].GetId()
			r.reach(resp, &constant)
		case best != nil:
			r.answer(resp, best)
		}
	}
	fitted, err := r.Fitted(ctx)
	if errors.Is(err, model.ErrNoData) {
		resp.Warnings = append(resp.Warnings, NoModel())
		answer(nil)
		return resp, nil
	}
	if err != nil {
		return nil, err
	}
	resp.Warnings = append(resp.Warnings, Doubts(fitted.Model)...)
	resp.Warnings = append(resp.Warnings, r.outliers(fitted.Model)...)
	if query.Confidence > defaultConfidence && fitted.Model.Check().Contradicted {
		resp.Warnings = append(resp.Warnings, &dparetov1.Warning{
			Code:    warnNoConfidence,
			Message: fmt.Sprintf("no model agrees with the measurements, so nothing holds with a confidence of %g: the answer has the best measured values, which may not hold", query.Confidence),
		})
	}
	return resp, r.fronts.pool.Run(ctx, pool.Analysis, func(ctx context.Context) error {
		best, ok := query.Measured(fitted.Model)
		if !measuredOnly {
			predicted, found, err := query.Search(ctx, fitted.Model)
			if err != nil {
				return err
			}
			if found && (!ok || query.Better(r.problem, &predicted, &best)) {
				best, ok = predicted, true
			}
		}
		if ok {
			answer(&best)
		} else {
			answer(nil)
		}
		return nil
	})
}

// queryOf converts and checks a request.
func queryOf(compiled *spec.Study, req *dparetov1.QueryFrontRequest) (frontquery.Query, error) {
	objectives := compiled.Objectives()
	q := frontquery.Query{Bounds: make([]float64, len(objectives)), Confidence: req.GetConfidence(), Optimize: -1}
	var fields invalid.Fields
	if q.Confidence == 0 {
		q.Confidence = defaultConfidence
	}
	if !(q.Confidence > 0 && q.Confidence < 1) {
		fields.Addf("confidence", "must be in (0, 1), or 0 for the default, is %g", q.Confidence)
	}
	if len(req.GetBounds()) == 0 {
		fields.Addf("bounds", "must hold at least one bound")
	}
	for _, id := range slices.Sorted(maps.Keys(req.GetBounds())) {
		field := fmt.Sprintf("bounds[%q]", id)
		if !slices.Contains(objectives, id) {
			fields.Addf(field, "is not an objective of the study (objectives: %v)", objectives)
			continue
		}
		compiled.Metrics.CheckBound(&fields, field, id, req.GetBounds()[id])
	}
	for j, id := range objectives {
		bound, ok := req.GetBounds()[id]
		if !ok {
			bound = math.NaN()
			if q.Optimize < 0 {
				q.Optimize = j
			}
		}
		q.Bounds[j] = bound
	}
	q.Optimize = max(q.Optimize, 0)
	if id := req.GetOptimize(); id != "" {
		if q.Optimize = slices.Index(objectives, id); q.Optimize < 0 {
			fields.Addf("optimize", "%q is not an objective of the study (objectives: %v)", id, objectives)
		}
	}
	return q, fields.Err()
}

// Fitted returns the model of all results, also used for the posterior front.
func (r *Results) Fitted(ctx context.Context) (*FittedModel, error) {
	return r.kept().model.get(ctx, r.fronts.background, r.Study.GetRevision(), r.fit)
}

// NoModel returns the warning of a study without measurements.
func NoModel() *dparetov1.Warning {
	return &dparetov1.Warning{Code: warnNoModel, Message: "nothing has been measured yet"}
}

// answer adds the configuration that answers a query to a response.
func (r *Results) answer(resp *dparetov1.QueryFrontResponse, a *frontquery.Answer) {
	computed, warnings := r.Compiled.Metrics.Compute(a.Point)
	r.reach(resp, a)
	resp.Parameters = r.Compiled.Points.Values(a.Point)
	resp.Predictions = predictions(r.Compiled, a.Predictions)
	resp.ComputedMetrics = computed
	resp.Privacy = r.Compiled.Metrics.Guarantee(computed)
	resp.Step = r.Compiled.Points.LastStep(a.Point)
	resp.Warnings = append(resp.Warnings, warnings...)
	resp.Warnings = append(resp.Warnings, r.seededWarning()...)
	key := a.Point.Key()
	if c := slices.IndexFunc(r.Configurations, func(c Configuration) bool { return c.Point.Key() == key }); c >= 0 {
		resp.Runs = int64(r.Configurations[c].runs)
		resp.Trials = r.trialsOf(&r.Configurations[c])
		return
	}
	resp.Warnings = append(resp.Warnings, &dparetov1.Warning{
		Code:    warnNotMeasured,
		Message: "the model recommends this configuration, but it was never run: run it before you rely on it",
	})
}

// reach adds the values that an answer reaches.
func (r *Results) reach(resp *dparetov1.QueryFrontResponse, a *frontquery.Answer) {
	resp.Reachable = a.Met()
	resp.Reached = make(map[string]float64)
	for j, id := range r.Compiled.Objectives() {
		resp.Reached[id] = a.Reached[j]
	}
}

// predictions returns the predictions of the measured objectives by id.
func predictions(compiled *spec.Study, all []suggest.Prediction) map[string]*dparetov1.MetricPrediction {
	messages := make(map[string]*dparetov1.MetricPrediction)
	for j, id := range compiled.Objectives() {
		if compiled.Problem.Objectives[j].Known == nil && !math.IsNaN(all[j].Lower) {
			messages[id] = engine.PredictionMessage(all[j])
		}
	}
	return messages
}

// trialsOf returns the names of the trials that measured a configuration.
func (d *Data) trialsOf(c *Configuration) []string {
	var names []string
	for _, k := range c.Measurements {
		if name := d.TrialOf(&d.Measurements[k]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
