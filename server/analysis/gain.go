package analysis

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/analysis"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
)

const (
	defaultRuns = 10
	maxRuns     = 50
)

// Codes of warnings of a forecast.
const (
	warnFewerRuns   = "FEWER_RUNS"
	warnBudgetSpent = "BUDGET_SPENT"
	warnRunsPending = "RUNS_PENDING"
)

// ForecastGain implements AnalysisService.
func (a *Analyses) ForecastGain(ctx context.Context, req *dparetov1.ForecastGainRequest) (*dparetov1.ForecastGainResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	runs := int(req.GetRuns())
	if runs < 0 || runs > maxRuns {
		return nil, invalid.Field("runs", "must be in [1, %d], or 0 for the default, is %d", maxRuns, runs)
	}
	if runs == 0 {
		runs = defaultRuns
	}
	r, err := a.fronts.Results(ctx, id, false)
	if err != nil {
		return nil, err
	}
	f, err := front.Kept(ctx, r, req, func(ctx context.Context) (*forecast, error) {
		return a.forecast(ctx, r, id, runs)
	})
	if err != nil {
		return nil, err
	}
	if f.proposal == nil {
		return f.resp, nil
	}
	resp := proto.CloneOf(f.resp)
	resp.Warnings = forecastWarnings(r.Study, f.proposal, runs) // the state can change with time
	return resp, nil
}

// forecast is what further runs are likely to gain, without warnings about them.
type forecast struct {
	resp     *dparetov1.ForecastGainResponse
	proposal *engine.Proposal // nil without a model
}

// forecast computes what further runs are likely to gain.
func (a *Analyses) forecast(ctx context.Context, r *front.Results, study string, runs int) (*forecast, error) {
	resp := &dparetov1.ForecastGainResponse{Revision: r.Study.GetRevision(), CostUnit: costUnit(r.Study.GetSpec())}
	fitted, err := r.Fitted(ctx)
	if errors.Is(err, model.ErrNoData) {
		resp.Warnings = append(resp.Warnings, front.NoModel())
		return &forecast{resp: resp}, nil
	}
	if err != nil {
		return nil, err
	}
	proposal, err := engine.Propose(ctx, a.engine, study, r.Study.GetUid(), runs)
	if err != nil {
		return nil, err
	}
	var gains analysis.Forecast
	err = a.pool.Run(ctx, pool.Analysis, func(ctx context.Context) error {
		gains, err = analysis.ForecastGain(ctx, fitted.Model, runsOf(r, proposal.Pending), runsOf(r, proposal.Next), r.Study.GetSeed())
		return err
	})
	if err != nil {
		return nil, err
	}
	resp.Warnings = append(resp.Warnings, front.Doubts(fitted.Model)...)
	resp.Hypervolume = gains.Hypervolume
	for k, g := range gains.Gains {
		resp.Points = append(resp.Points, &dparetov1.GainPoint{
			Runs:        int32(k + 1),
			Gain:        &dparetov1.IntervalEstimate{Value: g.Mean, Lower: g.Lower, Upper: g.Upper},
			Cost:        defined(g.Cost),
			Probability: g.Probability,
		})
	}
	return &forecast{resp, proposal}, nil
}

// costUnit returns the unit of a study's cost.
func costUnit(spec *dparetov1.StudySpec) string {
	switch cost := spec.GetCost().GetMeasure().(type) {
	case *dparetov1.CostSpec_CheckpointParameter:
		return spec.GetCheckpointParameter()
	case *dparetov1.CostSpec_Metric:
		return cost.Metric
	default:
		return "runs"
	}
}

// runsOf returns the runs of configurations, with the checkpoints that runs of the study measure.
func runsOf(r *front.Results, points []space.Point) []analysis.Run {
	var evaluations []suggest.Evaluation
	for i := range r.Measurements {
		evaluations = append(evaluations, r.Evaluations[i])
	}
	var runs []analysis.Run
	for _, q := range points {
		runs = append(runs, analysis.Checkpoints(r.Compiled.Problem, evaluations, q))
	}
	return runs
}

// forecastWarnings states the limits on the number of runs, and the omissions of the forecast.
func forecastWarnings(study *dparetov1.Study, p *engine.Proposal, asked int) []*dparetov1.Warning {
	var warnings []*dparetov1.Warning
	add := func(code, format string, args ...any) {
		warnings = append(warnings, &dparetov1.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	n := len(p.Next)
	switch {
	case n < asked && study.GetSpec().GetPrivateMode() != nil:
		add(warnFewerRuns, "the study's privacy budget covers %d of the %d runs", n, asked)
	case n < asked:
		add(warnFewerRuns, "the designer finds %d further configurations, not %d", n, asked)
	}
	most := study.GetSpec().GetBudget().GetMaxTrials()
	left := max(0, most-p.Number+1)
	switch {
	case n == 0:
	case study.GetState() == dparetov1.StudyState_STUDY_STATE_COMPLETED:
		add(warnBudgetSpent, "the study is complete (%s): the runs need a larger budget", study.GetStateReason())
	case most > 0 && left < int64(n):
		add(warnBudgetSpent, "the study's budget leaves %d of these %d runs: the others need a larger one", left, n)
	}
	if open := len(p.Pending); open > 0 {
		add(warnRunsPending, "%d trials are open: the gain of further runs is in addition to theirs", open)
	}
	return warnings
}
