package front

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/background"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/history"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
)

const (
	warnNoModel        = "NO_MODEL"
	warnLooseReference = "LOOSE_REFERENCE"
	warnUnreached      = "UNREACHED_REFERENCE"
	warnOutlier        = "OUTLIER"
)

// measuredKinds are the kinds of fronts that need no model, in order.
var measuredKinds = []dparetov1.FrontKind{
	dparetov1.FrontKind_FRONT_KIND_OBSERVED,
	dparetov1.FrontKind_FRONT_KIND_BEST,
	dparetov1.FrontKind_FRONT_KIND_WORST,
}

// Options configures Fronts. All fields are required.
type Options struct {
	Studies    *study.Studies
	Histories  *history.Histories
	Engine     *engine.Engine
	Background *background.Group
	Pool       *pool.Pool
}

// Fronts implements FrontService. It is safe for concurrent use.
type Fronts struct {
	studies    *study.Studies
	histories  *history.Histories
	engine     *engine.Engine
	background *background.Group
	pool       *pool.Pool
}

// New returns the fronts of the studies in a store.
func New(o Options) *Fronts {
	return &Fronts{studies: o.Studies, histories: o.Histories, engine: o.Engine, background: o.Background, pool: o.Pool}
}

// GetFront implements FrontService.
func (f *Fronts) GetFront(ctx context.Context, req *dparetov1.GetFrontRequest) (*dparetov1.GetFrontResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	kind := req.GetKind()
	if kind != dparetov1.FrontKind_FRONT_KIND_POSTERIOR && !slices.Contains(measuredKinds, kind) {
		return nil, invalid.Field("kind", "must be set, is %v", kind)
	}
	if n := req.GetMaxOthers(); n < 0 || n > maxOthers {
		return nil, invalid.Field("max_others", "must be in [0, %d], is %d", maxOthers, n)
	}
	r, err := f.Results(ctx, id, req.GetFinalOnly())
	if err != nil {
		return nil, err
	}
	chosen, err := r.chosen(ctx, kind)
	if err != nil {
		return nil, err
	}
	return &dparetov1.GetFrontResponse{Front: r.withOthers(chosen, int(req.GetMaxOthers()))}, nil
}

// chosen returns the front of a kind. Callers share it and must not change it.
func (r *Results) chosen(ctx context.Context, kind dparetov1.FrontKind) (*choice, error) {
	return r.kept().fronts[kind].get(ctx, r.fronts.background, r.Study.GetRevision(), func(ctx context.Context) (*choice, error) {
		if kind == dparetov1.FrontKind_FRONT_KIND_POSTERIOR {
			return r.posteriorFront(ctx)
		}
		return r.measuredFront(kind), nil
	})
}

// measuredFront chooses the front by measured values.
func (r *Results) measuredFront(kind dparetov1.FrontKind) *choice {
	values := r.values(kind)
	chosen := r.choose(kind, values, pareto.NonDominatedBeside(r.costs(values), r.problem.ConstantCosts()), nil)
	chosen.front.Candidates = int64(len(r.Configurations))
	chosen.front.Warnings = append(chosen.front.Warnings, &dparetov1.Warning{
		Code:    study.WarnSelectionBias,
		Message: "chosen by noisy measurements: on average, fresh runs of these configurations give worse values than these",
	})
	return chosen
}

// Posterior returns the posterior front. Callers share it and must not change it.
func (r *Results) Posterior(ctx context.Context) (*dparetov1.Front, error) {
	chosen, err := r.chosen(ctx, dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	if err != nil {
		return nil, err
	}
	return chosen.front, nil
}

// posteriorFront chooses the front by a model of all measurements. Only measured configurations
// qualify: the model merely interpolates others, and the luckiest interpolation is not a result.
func (r *Results) posteriorFront(ctx context.Context) (*choice, error) {
	const kind = dparetov1.FrontKind_FRONT_KIND_POSTERIOR
	fitted, err := r.Fitted(ctx)
	if errors.Is(err, model.ErrNoData) {
		chosen := r.choose(kind, nil, nil, nil)
		chosen.front.Warnings = append(chosen.front.Warnings, NoModel())
		return chosen, nil
	}
	if err != nil {
		return nil, err
	}
	estimates, err := r.estimates(ctx, fitted.Model)
	if err != nil {
		return nil, err
	}
	values := make([][]float64, len(r.Configurations))
	predictions := make([][]suggest.Prediction, len(r.Configurations))
	var best []int
	for i := range estimates {
		if e := &estimates[i]; e.OnFront {
			c := r.Measurements[e.Evaluations[0]].Configuration
			values[c], predictions[c] = Medians(e), e.Predictions
			best = append(best, c)
		}
	}
	chosen := r.choose(kind, values, best, predictions)
	chosen.front.Candidates = int64(len(estimates))
	chosen.front.Warnings = append(chosen.front.Warnings, Doubts(fitted.Model)...)
	chosen.front.Warnings = append(chosen.front.Warnings, r.outliers(fitted.Model)...)
	return chosen, nil
}

// namedTrials is the number of trials that a warning names.
const namedTrials = 5

// outliers returns a warning for each metric with values that a model takes for outliers. It names their trials.
func (r *Results) outliers(m *model.Model) (warnings []*dparetov1.Warning) {
	for j, metric := range r.problem.Metrics() {
		var trials []string
		more := 0
		last := int64(0)
		for i := range r.Measurements {
			measured := &r.Measurements[i]
			if measured.Trial == last || !m.IsOutlier(j, r.Evaluations[i].Values[j]) {
				continue
			}
			if last = measured.Trial; len(trials) < namedTrials {
				trials = append(trials, strconv.FormatInt(measured.Trial, 10))
			} else {
				more++
			}
		}
		if len(trials) == 0 {
			continue
		}
		named := strings.Join(trials, ", ")
		if more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		warnings = append(warnings, &dparetov1.Warning{
			Code: warnOutlier,
			Message: fmt.Sprintf("%s is far from all other values in trials %s: the model hardly counts by how much, and no front or recommendation rests on such values alone; check these trials, and report runs that diverged as infeasible",
				metric.Name, named),
		})
	}
	return warnings
}

// FittedModel is a model and the results it was fitted to.
type FittedModel struct {
	*Results
	Model *model.Model
}

// fit fits a model to all measurements.
func (r *Results) fit(ctx context.Context) (*FittedModel, error) {
	m, err := r.modelOf(ctx, len(r.Measurements), r.ModelOptions())
	if err != nil {
		return nil, err
	}
	return &FittedModel{r, m}, nil
}

// ModelOptions returns the options of models that are read, and not searched.
func (r *Results) ModelOptions() model.Options {
	o := r.fronts.engine.ModelOptions(r.Study)
	o.ForReading = true
	return o
}

// FitWith fits a model to all measurements with other options than ModelOptions, in the pool.
func (r *Results) FitWith(ctx context.Context, o model.Options) (*model.Model, error) {
	return r.modelOf(ctx, len(r.Measurements), o)
}

// modelOf fits a model to the first n measurements, in the pool.
func (r *Results) modelOf(ctx context.Context, n int, o model.Options) (m *model.Model, err error) {
	history := r.history(n)
	err = r.fronts.pool.Run(ctx, pool.Analysis, func(ctx context.Context) error {
		m, err = model.Fit(ctx, r.problem, history, o)
		return err
	})
	return m, err
}

// estimates returns a model's estimates at the measured configurations, in the pool.
func (r *Results) estimates(ctx context.Context, m *model.Model) (estimates []model.Estimate, err error) {
	err = r.fronts.pool.Run(ctx, pool.Analysis, func(context.Context) error {
		estimates = m.Estimates()
		return nil
	})
	return estimates, err
}

// Medians returns the posterior medians of an estimate's objectives.
func Medians(e *model.Estimate) []float64 {
	values := make([]float64, len(e.Predictions))
	for j, p := range e.Predictions {
		values[j] = p.Median
	}
	return values
}

// choose makes a choice of the chosen configurations. values has the values of all configurations
// that they were chosen by. predictions has the model's predictions, or is nil.
func (r *Results) choose(kind dparetov1.FrontKind, values [][]float64, chosen []int, predictions [][]suggest.Prediction) *choice {
	front := &dparetov1.Front{
		Kind:       kind,
		Reference:  r.references(),
		Revision:   r.Study.GetRevision(),
		Objectives: r.Compiled.Objectives(),
	}
	points := r.constantPoints(values, chosen)
	for _, i := range chosen {
		points = append(points, placed{r.Cost(values[i]), r.point(&r.Configurations[i], values[i], predictions, i)})
	}
	slices.SortStableFunc(points, func(a, b placed) int { return slices.Compare(a.cost, b.cost) })
	costs := make([][]float64, len(points))
	for k, p := range points {
		costs[k] = p.cost
		front.Points = append(front.Points, p.point)
	}
	reference := r.problem.ReferenceCosts()
	front.Hypervolume = r.problem.Hypervolume(costs)
	contributions := contributions(costs, reference)
	knee := knee(costs, reference)
	for k, p := range front.GetPoints() {
		p.BeyondReference = !within(costs[k], reference)
		p.Contribution = contributions[k]
		p.Knee = k == knee
	}
	front.Hypervolumes = r.hypervolumes(front)
	front.Warnings = append(front.Warnings, r.unreachedReferences()...)
	front.Warnings = append(front.Warnings, r.looseReferences(costs)...)
	front.Warnings = append(front.Warnings, r.seededWarning()...)
	return &choice{front, r.others(kind, chosen)}
}

// placed is a point of a front and its place.
type placed struct {
	cost  []float64
	point *dparetov1.FrontPoint
}

// constantPoints returns the constant points that neither one another nor the chosen configurations beat.
func (r *Results) constantPoints(values [][]float64, chosen []int) []placed {
	costs := r.problem.ConstantCosts()
	for _, i := range chosen {
		costs = append(costs, r.Cost(values[i]))
	}
	var points []placed
	for _, i := range pareto.NonDominated(costs) {
		if i >= len(r.Compiled.Problem.Constants) {
			break
		}
		point := &dparetov1.FrontPoint{ConstantPoint: r.Study.GetSpec().GetConstantPoints()[i].GetId(), Values: make(map[string]*dparetov1.FrontValue)}
		for j, objective := range r.Compiled.Objectives() {
			point.Values[objective] = &dparetov1.FrontValue{Value: r.Compiled.Problem.Constants[i][j]}
		}
		points = append(points, placed{costs[i], point})
	}
	return points
}

// fewestRuns is the number of runs before a reference counts as unreached, however short the initial design.
const fewestRuns = 3

// unreachedReferences returns a warning for each stated reference that no run has reached after the
// initial design, or one if no run has reached all of them together: the hypervolume is then 0, and the
// front says nothing of how good the runs are.
func (r *Results) unreachedReferences() (warnings []*dparetov1.Warning) {
	if r.completed < int64(max(r.Compiled.InitialTrials(), fewestRuns)) || len(r.Measurements) == 0 {
		return nil
	}
	reference := r.problem.ReferenceCosts()
	best := slices.Repeat([]float64{math.Inf(1)}, len(reference))
	for i := range r.Measurements {
		for j, v := range r.Cost(r.Evaluations[i].Values[:len(reference)]) {
			if v < best[j] {
				best[j] = v
			}
		}
	}
	stated := false
	for j := range r.problem.Objectives {
		o := &r.problem.Objectives[j]
		stated = stated || !o.InferReference
		if o.InferReference || best[j] < reference[j] {
			continue
		}
		value := "no run has a value"
		if !math.IsInf(best[j], 0) {
			value = fmt.Sprintf("the best value so far is %.4g", r.Cost(best)[j])
		}
		warnings = append(warnings, &dparetov1.Warning{
			Code: warnUnreached,
			Message: fmt.Sprintf("no run reaches the reference_value of %s, %g: %s; runs add nothing to the hypervolume until one reaches it",
				o.Name, o.Reference, value),
		})
	}
	if len(warnings) > 0 || !stated {
		return warnings
	}
	together := func(v []float64) bool { return within(v, reference) }
	if slices.ContainsFunc(r.costs(r.values(dparetov1.FrontKind_FRONT_KIND_OBSERVED)), together) {
		return nil
	}
	message := "no run reaches the reference_value of every objective"
	if len(r.problem.Constraints) > 0 {
		message += " within the bounds of the constraints"
	}
	return []*dparetov1.Warning{{Code: warnUnreached, Message: message + "; runs add nothing to the hypervolume until one does"}}
}

// loose is how many times the range of a front its reference may lie from its best values without a
// warning. At ten times the missing hypervolume was 2.5 to 4 times as large on problems with known fronts.
const loose = 10

// looseReferences returns a warning for each given reference of a measured objective that is far
// beyond a front, whose costs are given.
func (r *Results) looseReferences(costs [][]float64) (warnings []*dparetov1.Warning) {
	p, reference := r.problem, r.problem.ReferenceCosts()
	counted := slices.DeleteFunc(slices.Clone(costs), func(v []float64) bool { return !within(v, reference) })
	if len(r.Configurations) < r.Compiled.InitialTrials() {
		return nil
	}
	for j := range p.Objectives {
		o := &p.Objectives[j]
		if times := looseness(counted, j, reference[j]); o.Known == nil && !o.InferReference && times > loose {
			warnings = append(warnings, &dparetov1.Warning{
				Code: warnLooseReference,
				Message: fmt.Sprintf("the reference_value of %s, %g, is %.3g times as far from the best value of the front as its worst value is: the search then values the ends of the front more than all between; a study without one takes it from the results",
					o.Name, o.Reference, times),
			})
		}
	}
	return warnings
}

// looseness returns how far a reference lies from the best cost of objective j on a front, in units of the
// front's range. It is NaN for a front of fewer than three points or without range.
func looseness(front [][]float64, j int, reference float64) float64 {
	if len(front) < 3 {
		return math.NaN()
	}
	best, worst := math.Inf(1), math.Inf(-1)
	for _, v := range front {
		best, worst = math.Min(best, v[j]), math.Max(worst, v[j])
	}
	if best == worst {
		return math.NaN()
	}
	return (reference - best) / (worst - best)
}

// seededWarning returns the warning of a study if a run was seeded.
func (d *Data) seededWarning() []*dparetov1.Warning {
	if !d.Seeded {
		return nil
	}
	return []*dparetov1.Warning{{
		Code:    study.WarnSeeded,
		Message: "not for release: trials of the study were seeded: anyone with the seed can remove their noise, so no epsilon holds for them",
	}}
}

// point builds the message of a configuration on a front.
func (r *Results) point(c *Configuration, values []float64, predictions [][]suggest.Prediction, i int) *dparetov1.FrontPoint {
	first := &r.Measurements[c.Measurements[0]]
	point := &dparetov1.FrontPoint{
		Trial:      r.TrialOf(first),
		Parameters: r.Compiled.Points.Values(c.Point),
		Values:     make(map[string]*dparetov1.FrontValue),
		Privacy:    r.Compiled.Metrics.Guarantee(first.Message().GetMetrics()),
		Runs:       int64(c.runs),
		Trials:     r.trialsOf(c),
	}
	if r.Compiled.Points.Checkpoints() {
		point.Step = first.Step
	}
	for j, objective := range r.Compiled.Objectives() {
		value := &dparetov1.FrontValue{Value: values[j]}
		point.Values[objective] = value
		if r.Compiled.Problem.Objectives[j].Known != nil {
			continue
		}
		r.describe(value, c, j)
		if predictions != nil && !math.IsNaN(predictions[i][j].Lower) {
			value.Lower, value.Upper = &predictions[i][j].Lower, &predictions[i][j].Upper
		}
	}
	return point
}

// hypervolumes returns the hypervolumes of all kinds of fronts. The posterior one is included only
// if front is posterior.
func (r *Results) hypervolumes(front *dparetov1.Front) []*dparetov1.KindHypervolume {
	var all []*dparetov1.KindHypervolume
	for _, kind := range measuredKinds {
		all = append(all, &dparetov1.KindHypervolume{Kind: kind, Hypervolume: r.measuredHypervolume(kind)})
	}
	if front.GetKind() == dparetov1.FrontKind_FRONT_KIND_POSTERIOR {
		all = slices.Insert(all, 1, &dparetov1.KindHypervolume{Kind: front.GetKind(), Hypervolume: front.GetHypervolume()})
	}
	return all
}
