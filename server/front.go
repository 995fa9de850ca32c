package server

import (
	"context"
	"errors"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/pareto"
)

const (
	warnSelectionBias = "SELECTION_BIAS"
	warnNoModel       = "NO_MODEL"
)

// measuredKinds are the kinds of fronts that need no model, in their order.
var measuredKinds = []dparetov1.FrontKind{
	dparetov1.FrontKind_FRONT_KIND_OBSERVED,
	dparetov1.FrontKind_FRONT_KIND_BEST,
	dparetov1.FrontKind_FRONT_KIND_WORST,
}

// Options configures Fronts. All fields are required.
type FrontsOptions struct {
	Studies    *Studies
	Store      *store.Store
	Background *Group
}

// Fronts implements FrontService: what is known of the front of a study. It is safe for
// concurrent use.
type Fronts struct {
	dparetov1.UnimplementedFrontServiceServer

	studies    *Studies
	store      *store.Store
	background *Group
}

// NewFronts returns the fronts of studies.
func NewFronts(o FrontsOptions) *Fronts {
	return &Fronts{studies: o.Studies, store: o.Store, background: o.Background}
}

// fits is what was fitted to the measurements of one study.
type fits struct {
	model          latest[*fittedModel]
	posterior      latest[*dparetov1.Front]
	posteriorTrace latest[[]*dparetov1.HypervolumePoint]
}

// studyFits are the fits of one study: to all measurements, and to final ones.
type studyFits struct{ all, final fits }

// kept returns what was fitted to such results before.
func (r *results) kept() *fits {
	both := Derived(r.cached, func() *studyFits { return new(studyFits) })
	if r.finalOnly {
		return &both.final
	}
	return &both.all
}

// GetFront implements FrontService.
func (f *Fronts) GetFront(ctx context.Context, req *dparetov1.GetFrontRequest) (*dparetov1.GetFrontResponse, error) {
	id, err := parseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	kind := req.GetKind()
	isPosterior := kind == dparetov1.FrontKind_FRONT_KIND_POSTERIOR
	if !isPosterior && !slices.Contains(measuredKinds, kind) {
		return nil, invalid.Field("kind", "must be set, is %v", kind)
	}
	r, err := f.results(ctx, id, req.GetFinalOnly())
	if err != nil {
		return nil, err
	}
	var front *dparetov1.Front
	if isPosterior {
		front, err = r.kept().posterior.get(ctx, f.background, r.study.GetRevision(), r.posteriorFront)
		if err != nil {
			return nil, err
		}
	} else {
		front = r.measuredFront(kind)
	}
	return &dparetov1.GetFrontResponse{Front: front}, nil
}

// measuredFront chooses the front by measured values.
func (r *results) measuredFront(kind dparetov1.FrontKind) *dparetov1.Front {
	values := r.values(kind)
	front := r.front(kind, values, pareto.NonDominated(r.costs(values)), nil)
	front.Candidates = int64(len(r.configurations))
	front.Warnings = append(front.Warnings, &dparetov1.Warning{
		Code:    warnSelectionBias,
		Message: "chosen by noisy measurements: fresh runs of these configurations give worse values on average than those that they were chosen by",
	})
	return front
}

// posteriorFront chooses the front by a model of all measurements, among the
// configurations that it was fitted to: between them it interpolates, and the luckiest
// interpolation is no result.
func (r *results) posteriorFront(ctx context.Context) (*dparetov1.Front, error) {
	const kind = dparetov1.FrontKind_FRONT_KIND_POSTERIOR
	fitted, err := r.fitted(ctx)
	if errors.Is(err, suggest.ErrNoData) {
		front := r.front(kind, nil, nil, nil)
		front.Warnings = append(front.Warnings, noModel())
		return front, nil
	}
	if err != nil {
		return nil, err
	}
	estimates := fitted.model.Estimates()
	values := make([][]float64, len(r.configurations))
	predictions := make([][]suggest.Prediction, len(r.configurations))
	var chosen []int
	for i := range estimates {
		if e := &estimates[i]; e.OnFront {
			c := r.measurements[e.Evaluations[0]].configuration
			values[c], predictions[c] = medians(e), e.Predictions
			chosen = append(chosen, c)
		}
	}
	front := r.front(kind, values, chosen, predictions)
	front.Candidates = int64(len(estimates))
	return front, nil
}

// fittedModel is a model with the results that it was fitted to.
type fittedModel struct {
	*results
	model *suggest.Model
}

// fit fits a model to all measurements.
func (r *results) fit(ctx context.Context) (*fittedModel, error) {
	model, err := r.modelOf(ctx, len(r.measurements))
	if err != nil {
		return nil, err
	}
	return &fittedModel{r, model}, nil
}

// modelOf returns a model of the first n measurements.
func (r *results) modelOf(ctx context.Context, n int) (*suggest.Model, error) {
	history := new(suggest.History)
	for i := range r.measurements[:n] {
		history.Evaluations = append(history.Evaluations, r.measurements[i].evaluation)
	}
	return suggest.FitModel(ctx, r.compiled.Problem, history, suggest.ModelOptions{Seed: r.study.GetSeed(), ForReading: true})
}

// medians returns the posterior medians of the objectives of an estimate.
func medians(e *suggest.Estimate) []float64 {
	values := make([]float64, len(e.Predictions))
	for j, p := range e.Predictions {
		values[j] = p.Median
	}
	return values
}

// front builds the message of the chosen configurations. values are those of all
// configurations by which they were chosen, and predictions what a model says of them,
// or nil.
func (r *results) front(kind dparetov1.FrontKind, values [][]float64, chosen []int, predictions [][]suggest.Prediction) *dparetov1.Front {
	front := &dparetov1.Front{
		Kind:       kind,
		Reference:  make(map[string]float64),
		Revision:   r.study.GetRevision(),
		Objectives: r.compiled.Objectives(),
	}
	for i, objective := range front.GetObjectives() {
		front.Reference[objective] = r.compiled.Problem.Objectives[i].Reference
	}
	chosen = slices.Clone(chosen)
	slices.SortStableFunc(chosen, func(i, j int) int { return slices.Compare(r.cost(values[i]), r.cost(values[j])) })
	costs := make([][]float64, len(chosen))
	for k, i := range chosen {
		costs[k] = r.cost(values[i])
		front.Points = append(front.Points, r.point(&r.configurations[i], values[i], predictions, i))
	}
	reference := r.reference()
	front.Hypervolume = pareto.Hypervolume(costs, reference)
	contributions := contributions(costs, reference)
	knee := knee(costs, reference)
	for k, p := range front.GetPoints() {
		p.BeyondReference = !within(costs[k], reference)
		p.Contribution = contributions[k]
		p.Knee = k == knee
	}
	front.Hypervolumes = r.hypervolumes(front)
	return front
}

// point builds the message of a configuration on a front.
func (r *results) point(c *configuration, values []float64, predictions [][]suggest.Prediction, i int) *dparetov1.FrontPoint {
	first := &r.measurements[c.measurements[0]]
	point := &dparetov1.FrontPoint{
		Trial:      first.trial.GetName(),
		Parameters: r.compiled.Values(c.point),
		Values:     make(map[string]*dparetov1.FrontValue),
		Privacy:    r.compiled.Guarantee(first.measurement.GetMetrics()),
		Runs:       int64(c.runs),
		Trials:     r.trialsOf(c),
	}
	if r.compiled.Checkpoints() {
		point.Step = first.measurement.GetStep()
	}
	for j, objective := range r.compiled.Objectives() {
		value := &dparetov1.FrontValue{Value: values[j]}
		point.Values[objective] = value
		if r.compiled.Problem.Objectives[j].Known != nil {
			continue
		}
		r.describe(value, c, j)
		if predictions != nil {
			value.Lower, value.Upper = &predictions[i][j].Lower, &predictions[i][j].Upper
		}
	}
	return point
}

// hypervolumes returns the hypervolumes of the fronts of every kind, that of a posterior
// one only if it is the given one.
func (r *results) hypervolumes(front *dparetov1.Front) []*dparetov1.KindHypervolume {
	var all []*dparetov1.KindHypervolume
	for _, kind := range measuredKinds {
		all = append(all, &dparetov1.KindHypervolume{Kind: kind, Hypervolume: pareto.Hypervolume(r.costs(r.values(kind)), r.reference())})
	}
	if front.GetKind() == dparetov1.FrontKind_FRONT_KIND_POSTERIOR {
		all = slices.Insert(all, 1, &dparetov1.KindHypervolume{Kind: front.GetKind(), Hypervolume: front.GetHypervolume()})
	}
	return all
}
