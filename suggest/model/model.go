package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// ErrNoData is returned by [Fit], wrapped with the objective's name, when
// a measured objective has no finite value yet.
var ErrNoData = errors.New("suggest: no finite value to fit a model to")

// Options tunes [Fit]. The zero value is ready to use.
type Options struct {
	// ModelKnown fits a surrogate to objectives with a Known function too, from
	// the values in the history, as Avent et al. did. By default they are
	// exact.
	ModelKnown bool

	// Seed determines the starting points.
	Seed uint64

	// ImputeInfeasible gives infeasible configurations the worst value seen, so that a
	// search avoids them.
	ImputeInfeasible bool

	// Homoscedastic takes unknown noise to be the same everywhere.
	Homoscedastic bool

	// ForReading makes a model whose predictions are reported or chosen from, and not one
	// for a search. It matters where no standard error is known, so that noise is learned.
	// By default the prior expects little noise, so that a search goes on where a few runs
	// do not show a difference yet. For reading the prior is wider: luck must not pass for
	// merit, and the checkpoints of a run may share noise that no single run shows. Predictions
	// then also hold what is not known of the hyperparameters, see [Model.Posterior].
	ForReading bool

	// Smooth takes the metrics to be infinitely differentiable functions, by the kernel
	// [surrogate.SquaredExponential], instead of twice differentiable ones.
	Smooth bool

	// Cache remembers what fits learn, so that the next model of a growing history, or
	// another model of the same one, costs less. The caller owns it. nil remembers nothing.
	Cache *Cache

	// Workers do what a fit can do in parallel. The zero value uses GOMAXPROCS
	// goroutines.
	Workers surrogate.Workers
}

// Model is the posterior of every objective and constraint of a problem given a
// history: independent Gaussian processes, each on its metric's transform, and the
// exact function where one is known. A *Model is immutable and safe for concurrent
// use.
type Model struct {
	problem        *suggest.Problem
	metrics        []suggest.Objective     // the objectives, then the constraints
	configurations []suggest.Configuration // that the model was made of
	gps            []*surrogate.GP         // by metric, nil for an exact one
	observed       []Observed              // by metric
	knownNoise     []float64               // by metric, of one typical run, NaN if it was learned
	variants       []variants              // by metric, nil for one that was not fitted to this history
	showsNoise     []noiseShown            // by metric, nil for one that was not fitted to this history
	explanations   [][]*surrogate.GP       // by metric, see Posterior; nil in a model for searching
	plausible      [][]*surrogate.GP       // by metric, draws about the explanations; nil in a model for searching
	checked        Check                   // of a model for reading
	limits         []limits                // by metric, of what is predicted
	fences         []fence                 // by metric, beyond which values are squashed
	outlying       map[int]bool            // see outliers
	runsPerTrial   float64                 // typically
	cost           *surrogate.GP           // of the logarithm of measured costs, or nil
}

// Fit fits the surrogates to h, with replicates of a configuration pooled.
// It uses a few of the checkpoints of a run, and of many runs those near the front and a
// sample of the others. It ignores pending configurations. A metric that only an earlier
// study has measured keeps that study's posterior. Fit returns a [space.FieldErrors] when p
// is invalid or h does not fit p, [ErrNoData], an error of the surrogate that names the
// metric, or the context's error.
//
// A value that is infinite in the bad direction counts as the worst finite value seen;
// other values that are not finite are left out. Finite values far beyond the others and the reference, or the bounds
// of a constraint, count as bad, but hardly as how bad; see [Model.IsOutlier].
func Fit(ctx context.Context, p *suggest.Problem, h *suggest.History, o Options) (*Model, error) {
	if err := suggest.Validate(p, h, suggest.Request{}); err != nil {
		return nil, err
	}
	f := newFitter(p, h, o)
	m := &Model{
		problem:        p,
		metrics:        f.metrics,
		configurations: f.pooled(),
		gps:            make([]*surrogate.GP, len(f.metrics)),
		observed:       make([]Observed, len(f.metrics)),
		knownNoise:     make([]float64, len(f.metrics)),
		variants:       make([]variants, len(f.metrics)),
		showsNoise:     make([]noiseShown, len(f.metrics)),
		limits:         make([]limits, len(f.metrics)),
		fences:         slices.Repeat([]fence{noFence}, len(f.metrics)),
	}
	for j := range f.metrics {
		m.limits[j] = limitsOf(&f.metrics[j], j, m.configurations)
		if f.metrics[j].Known != nil && !o.ModelKnown {
			continue
		}
		fit, err := f.fit(ctx, j)
		m.gps[j], m.observed[j], m.knownNoise[j], m.variants[j], m.fences[j] = fit.gp, fit.observed, fit.noise, fit.draw, fit.fence
		m.showsNoise[j] = fit.shown
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("metric %q: %w", f.metrics[j].Name, err)
		}
	}
	m.outlying = m.outliers(h)
	if o.ForReading {
		if err := m.check(ctx, f); err != nil {
			return nil, err
		}
	}
	m.runsPerTrial = f.runsPerTrial()
	if p.Cost == suggest.CostMeasured {
		var err error
		if m.cost, err = f.fitCost(ctx); err != nil {
			return nil, fmt.Errorf("cost: %w", err)
		}
	}
	return m, nil
}

// New returns the model of given surrogates, for instance ones that were published: one for each
// objective and constraint, on the scale of its transform and over the encoded space, or nil to
// use its Known function. h says which configurations were evaluated. The model has no
// observations and no variants. New returns a [space.FieldErrors] when p is invalid or h does not
// fit p. It panics if a metric has neither a surrogate nor a Known function.
func New(p *suggest.Problem, h *suggest.History, surrogates []*surrogate.GP) (*Model, error) {
	if err := suggest.Validate(p, h, suggest.Request{}); err != nil {
		return nil, err
	}
	f := newFitter(p, h, Options{})
	m := &Model{
		problem:        p,
		metrics:        f.metrics,
		configurations: f.pooled(),
		gps:            slices.Clone(surrogates),
		observed:       make([]Observed, len(f.metrics)),
		knownNoise:     make([]float64, len(f.metrics)),
		variants:       make([]variants, len(f.metrics)),
		showsNoise:     make([]noiseShown, len(f.metrics)),
		limits:         make([]limits, len(f.metrics)),
		fences:         slices.Repeat([]fence{noFence}, len(f.metrics)),
		runsPerTrial:   f.runsPerTrial(),
	}
	for j := range f.metrics {
		m.limits[j] = limitsOf(&f.metrics[j], j, m.configurations)
		if m.gps[j] == nil && f.metrics[j].Known == nil {
			panic(fmt.Sprintf("model: metric %q has neither a surrogate nor a known function", f.metrics[j].Name))
		}
		m.knownNoise[j] = math.NaN()
	}
	return m, nil
}

// Problem returns the problem.
func (m *Model) Problem() *suggest.Problem { return m.problem }

// Within returns the model for a problem with other references. It must be m's problem otherwise.
func (m *Model) Within(p *suggest.Problem) *Model {
	next := *m
	next.problem, next.metrics = p, p.Metrics()
	return &next
}

// Configurations returns the evaluated configurations that the model was made of. The
// caller must not change them.
func (m *Model) Configurations() []suggest.Configuration { return m.configurations }

// Surrogate returns the Gaussian process of metric j, on the scale of its transform, or nil
// for a metric that is known exactly. Metrics are the objectives and then the constraints.
func (m *Model) Surrogate(j int) *surrogate.GP { return m.gps[j] }

// Observed are the observations that the surrogate of a metric was made of.
type Observed struct {
	// Configurations holds the index of each in [Model.Configurations], −1 for an
	// infeasible configuration with an imputed value.
	Configurations []int

	// Values are on the scale of the surrogate.
	Values []float64

	// Runs are the numbers of runs behind the values.
	Runs []int
}

// Observed returns the observations of metric j, in the order of its surrogate. There are none
// for a metric that is known exactly, or that only an earlier study has measured. The caller
// must not change them.
func (m *Model) Observed(j int) Observed { return m.observed[j] }

// Likelihood returns the logarithm of the marginal likelihood of the measurements of metric j
// under its surrogate, by which models of one history compare. It is 0 for a metric that is known
// exactly.
func (m *Model) Likelihood(j int) float64 {
	if m.gps[j] == nil {
		return 0
	}
	return m.gps[j].LogMarginalLikelihood()
}

// noiseShown reports whether the measurements of a metric show noise, see [Model.ShowsNoise].
type noiseShown func(ctx context.Context, byRepetitions bool) (bool, error)

// variants draws surrogates of a metric with other hyperparameters.
type variants func(count int, rng *rand.Rand) ([]*surrogate.GP, error)

// Variants draws count surrogates of metric j whose hyperparameters are draws from about their
// posterior, see [surrogate.Spread]. They are all Surrogate(j) where that belongs to an earlier
// study. The model must come from [Fit] and have a surrogate for the metric.
func (m *Model) Variants(j, count int, rng *rand.Rand) ([]*surrogate.GP, error) {
	if m.variants[j] == nil {
		return slices.Repeat([]*surrogate.GP{m.gps[j]}, count), nil
	}
	return m.variants[j](count, rng)
}

// KnownNoise returns the noise variance of one typical run in metric j on the scale of its
// surrogate, or NaN if it was learned.
func (m *Model) KnownNoise(j int) float64 { return m.knownNoise[j] }

// ShowsNoise reports whether the measurements of metric j show that they have noise: repetitions differ or, unless
// these alone count, a surrogate with learned noise is e³ times as probable as one without, which takes a fit. It
// is false where noise was not learned from the measurements.
func (m *Model) ShowsNoise(ctx context.Context, j int, byRepetitions bool) (bool, error) {
	if m.showsNoise[j] == nil || !math.IsNaN(m.knownNoise[j]) {
		return false, nil
	}
	return m.showsNoise[j](ctx, byRepetitions)
}

// RunsPerTrial returns the median number of runs behind an evaluation.
func (m *Model) RunsPerTrial() float64 { return m.runsPerTrial }

// RunCost returns the Gaussian process of the logarithm of the cost of a run, or nil
// if costs are not measured or not known.
func (m *Model) RunCost() *surrogate.GP { return m.cost }

// Predict returns the posterior of every objective at q. It panics if q has the
// wrong length.
func (m *Model) Predict(q space.Point) []suggest.Prediction {
	return m.predictions(m.Distributions(nil, nil, q))
}

func (m *Model) predictions(distributions []acquisition.Distribution) []suggest.Prediction {
	predictions := make([]suggest.Prediction, len(distributions))
	for j, l := range distributions {
		predictions[j] = m.possible(j, prediction(&m.problem.Objectives[j], l))
	}
	return predictions
}

// limits are the least and the largest value that a metric is predicted to have.
type limits struct{ least, most float64 }

// limitsOf returns the possible range of a metric. One on its own scale that was never negative is taken for one that
// cannot be, such as a loss; and one to maximise that was never outside of [0, 1] for a fraction.
func limitsOf(o *suggest.Objective, j int, configurations []suggest.Configuration) limits {
	all := limits{math.Inf(-1), math.Inf(1)}
	if o.Transform != suggest.Identity {
		return all
	}
	least, most := math.Inf(1), math.Inf(-1)
	for i := range configurations {
		if v := configurations[i].Values[j]; !math.IsNaN(v) {
			least, most = math.Min(least, v), math.Max(most, v)
		}
	}
	if least >= 0 {
		all.least = 0
		if o.Goal == suggest.Maximize && most <= 1 {
			all.most = 1
		}
	}
	return all
}

// Possible returns the value of metric j that is nearest to v among those that a run can have: a loss is not
// negative, and an accuracy is in [0, 1]. Values of exact metrics stay.
func (m *Model) Possible(j int, v float64) float64 {
	if m.gps[j] == nil {
		return v
	}
	return min(max(v, m.limits[j].least), m.limits[j].most)
}

// possible returns a prediction of metric j without what no run can have.
func (m *Model) possible(j int, p suggest.Prediction) suggest.Prediction {
	return suggest.Prediction{Median: m.Possible(j, p.Median), Lower: m.Possible(j, p.Lower), Upper: m.Possible(j, p.Upper)}
}

// Distribution returns the distribution of the cost of metric j where its surrogate
// predicts N(mean, variance).
func (m *Model) Distribution(j int, mean, variance float64) acquisition.Distribution {
	return distribution(&m.metrics[j], mean, variance)
}

// Prediction returns the model's prediction of objective j, in its own unit, where its
// surrogate predicts N(mean, variance).
func (m *Model) Prediction(j int, mean, variance float64) suggest.Prediction {
	return m.possible(j, prediction(&m.problem.Objectives[j], m.Distribution(j, mean, variance)))
}

// plausible is the number of draws of the hyperparameters over which Posterior takes the variance.
const plausible = 8

// Posterior returns the mean and the variance of metric j at the encoded point x, on the scale of
// its surrogate, which the metric must have.
//
// A model for reading averages two explanations of learning curves with equal weights: the checkpoints of
// a run share noise, or they share signal. Without checkpoints there is one explanation. The mean is the
// average of their means. The variance around it is an average over draws of the hyperparameters about
// each explanation, see [Model.Variants]: the most likely hyperparameters alone give too small a variance.
// Beyond 256 configurations the explanations themselves take the place of the draws.
func (m *Model) Posterior(j int, x []float64) (mean, variance float64) {
	all := m.others(m.plausible, j)
	mean = m.Mean(j, x)
	for _, gp := range all {
		own, spread := gp.Predict(x)
		variance += (spread + (own-mean)*(own-mean)) / float64(len(all))
	}
	return mean, m.widened(j, x, variance)
}

// Mean returns the mean of [Model.Posterior], in a time that is linear in the number of observations.
func (m *Model) Mean(j int, x []float64) (mean float64) {
	all := m.others(m.explanations, j)
	for _, gp := range all {
		own, _ := gp.Bound(x)
		mean += own / float64(len(all))
	}
	return mean
}

// PosteriorBatch is [Model.Posterior] at several points, which together take less time than one
// by one. The lengths of means, variances and x are the same.
func (m *Model) PosteriorBatch(j int, means, variances []float64, x [][]float64) {
	for i := range x {
		means[i] = m.Mean(j, x[i])
	}
	clear(variances)
	all, own, spreads := m.others(m.plausible, j), make([]float64, len(x)), make([]float64, len(x))
	for _, gp := range all {
		gp.PredictBatch(own, spreads, x)
		for i, mean := range own {
			variances[i] += (spreads[i] + (mean-means[i])*(mean-means[i])) / float64(len(all))
		}
	}
	for i, v := range variances {
		variances[i] = m.widened(j, x[i], v)
	}
}

// others returns all[j], or the surrogate of metric j if there is none.
func (m *Model) others(all [][]*surrogate.GP, j int) []*surrogate.GP {
	if all == nil || all[j] == nil {
		return m.gps[j : j+1]
	}
	return all[j]
}

// Distributions appends the distributions of the costs at q to dst[:0]. x is a buffer for the
// encoded point.
func (m *Model) Distributions(dst []acquisition.Distribution, x []float64, q space.Point) []acquisition.Distribution {
	dst = dst[:0]
	x = m.problem.Inputs(x, q)
	for j := range m.problem.Objectives {
		if gp := m.gps[j]; gp != nil {
			mean, variance := m.Posterior(j, x)
			dst = append(dst, m.Distribution(j, mean, variance))
		} else {
			dst = append(dst, acquisition.Distribution{Mean: m.problem.Objectives[j].KnownCost(q)})
		}
	}
	return dst
}

// Estimate is a model's view of one evaluated configuration.
type Estimate struct {
	suggest.Configuration

	// Predictions are the posteriors of the objectives given the whole history. Where the
	// measurements contradict the model (see [Check]), the medians of modelled ones are the
	// measured values, and the bounds NaN.
	Predictions []suggest.Prediction

	// OnFront is set if no other configuration's posterior medians dominate
	// this one's, and no constant of the problem dominates or equals them. A configuration that does not
	// count (see [Model.Counts]), or with a constraint whose posterior median is out of bounds, is never on
	// the front.
	OnFront bool
}

// Estimates returns every different configuration that was evaluated, in order
// of its first evaluation, with its posterior and whether it is on the front of
// the posterior medians. A front of the raw measurements would consist of the
// configurations with the luckiest noise.
func (m *Model) Estimates() []Estimate {
	estimates := make([]Estimate, len(m.configurations))
	costs := make([][]float64, len(m.configurations))
	for i := range m.configurations {
		c := m.configurations[i]
		distributions := m.Distributions(nil, nil, c.Point)
		predicted := m.predictions(distributions)
		costs[i] = m.Medians(&c, distributions)
		if m.checked.Contradicted {
			costs[i] = m.measuredCosts(&c)
			for j := range predicted {
				if m.gps[j] != nil {
					predicted[j] = suggest.Prediction{Median: c.Values[j], Lower: math.NaN(), Upper: math.NaN()}
				}
			}
		}
		c.Point, c.Evaluations = c.Point.Clone(), slices.Clone(c.Evaluations)
		c.Values, c.StdErrors = slices.Clone(c.Values), slices.Clone(c.StdErrors)
		estimates[i] = Estimate{Configuration: c, Predictions: predicted}
	}
	for _, i := range pareto.NonDominatedBeside(costs, m.problem.ConstantCosts()) {
		estimates[i].OnFront = true
	}
	return estimates
}

// Medians returns the medians of the costs of an evaluated configuration, given their
// distributions, or NaNs if it cannot be on a front.
func (m *Model) Medians(c *suggest.Configuration, distributions []acquisition.Distribution) []float64 {
	costs := medians(distributions)
	if !m.Counts(c) || !m.Acceptable(c.Point, c.Values) {
		for j := range costs {
			costs[j] = math.NaN()
		}
	}
	return costs
}

func medians(distributions []acquisition.Distribution) []float64 {
	costs := make([]float64, len(distributions))
	for j, l := range distributions {
		costs[j] = l.Median()
	}
	return costs
}

// Acceptable reports whether the medians of the constraints at q are within
// bounds. Known ones have the given values, or are computed if these are nil.
func (m *Model) Acceptable(q space.Point, values []float64) bool {
	var x []float64
	for i := range m.problem.Constraints {
		constraint := &m.problem.Constraints[i]
		j := len(m.problem.Objectives) + i
		var v float64
		switch {
		case m.gps[j] != nil:
			if x == nil {
				x = m.problem.Inputs(nil, q)
			}
			v = m.Distribution(j, m.Mean(j, x), 0).Median()
		case values != nil:
			v = values[j]
		default:
			v = constraint.Known(q)
		}
		if !constraint.Holds(v) {
			return false
		}
	}
	return true
}

// Front returns the front of the posterior medians of the evaluated and of the
// given other configurations, and of the problem's constants, in costs below the reference.
func (m *Model) Front(others []space.Point) *pareto.Front {
	costs := m.problem.ConstantCosts()
	var x []float64
	for i := range m.configurations {
		c := &m.configurations[i]
		if m.Counts(c) && m.Acceptable(c.Point, c.Values) {
			x = m.problem.Inputs(x, c.Point)
			costs = append(costs, m.medianCosts(x, c.Point, c.Values))
		}
	}
	for _, q := range others {
		if m.Acceptable(q, nil) {
			x = m.problem.Inputs(x, q)
			costs = append(costs, m.medianCosts(x, q, nil))
		}
	}
	return pareto.NewFront(costs, m.problem.ReferenceCosts())
}

// medianCosts returns the medians of the costs of the objectives at q, with inputs x. Known ones have
// the given values, or are computed if these are nil. A median takes no variance, and so a time linear
// in the number of observations.
func (m *Model) medianCosts(x []float64, q space.Point, values []float64) []float64 {
	costs := make([]float64, len(m.problem.Objectives))
	for j := range costs {
		o := &m.problem.Objectives[j]
		switch {
		case m.gps[j] != nil:
			costs[j] = m.Distribution(j, m.Mean(j, x), 0).Median()
		case values != nil:
			costs[j] = o.Cost(values[j])
		default:
			costs[j] = o.KnownCost(q)
		}
	}
	return costs
}

// Believe returns the model after observing, at q, exactly its prediction there: the kriging believer of
// Ginsbourger, Le Riche, Carraro, "Kriging is well-suited to parallelize optimization" (2010). Means do not
// change, variances shrink around q.
func (m *Model) Believe(q space.Point) (*Model, error) {
	next := *m
	next.gps, next.plausible, next.explanations = slices.Clone(m.gps), nil, nil
	x := m.problem.Inputs(nil, q)
	for j, gp := range m.gps {
		if gp == nil {
			continue
		}
		mean, _ := gp.Predict(x)
		var err error
		if next.gps[j], err = gp.Append(x, mean, 0); err != nil {
			return nil, fmt.Errorf("metric %q: %w", m.metrics[j].Name, err)
		}
	}
	return &next, nil
}

// Observe returns the model after evaluations of one run that it does not contain, with
// the same hyperparameters. The problem has a checkpoint parameter.
func (m *Model) Observe(run []suggest.Evaluation) (*Model, error) {
	next := *m
	next.gps, next.plausible, next.explanations = slices.Clone(m.gps), nil, nil
	checkpoint := m.problem.CheckpointIndex()
	for j, gp := range m.gps {
		if gp == nil {
			continue
		}
		var obs surrogate.Observations
		enclosed := m.fenceWith(j, run)
		for i := range run {
			e := &run[i]
			v := e.Values[j]
			if math.IsNaN(v) || math.IsInf(v, 0) {
				continue
			}
			z, variance := latent(&m.metrics[j], v, e.StdError(j), e.RunCount())
			if math.IsNaN(variance) {
				variance = 0 // learned
				if known := m.knownNoise[j]; !math.IsNaN(known) {
					variance = known / float64(e.RunCount())
				}
			}
			z, slope, doubt := enclosed.squash(z)
			obs.X = append(obs.X, m.problem.Inputs(nil, e.Point))
			obs.Y = append(obs.Y, z)
			obs.NoiseVariance = append(obs.NoiseVariance, slope*slope*variance+doubt)
			obs.Runs = append(obs.Runs, float64(e.RunCount()))
			obs.Groups = append(obs.Groups, newRun)
			obs.Positions = append(obs.Positions, math.Log(e.Point[checkpoint]))
		}
		if len(obs.X) == 0 {
			continue
		}
		var err error
		if next.gps[j], err = gp.Extend(obs); err != nil {
			return nil, fmt.Errorf("metric %q: %w", m.metrics[j].Name, err)
		}
	}
	return &next, nil
}

// Foresee returns for each metric what its surrogate may become with further runs, each of which
// measures some configurations: its checkpoints, in order, or a single one. A run has the typical
// number of repetitions. A metric that is known exactly has nil.
func (m *Model) Foresee(runs [][]space.Point) ([]*surrogate.Foresight, error) {
	out := make([]*surrogate.Foresight, len(m.gps))
	checkpoint := m.problem.CheckpointIndex()
	for j, gp := range m.gps {
		if gp == nil {
			continue
		}
		var obs surrogate.Observations
		for i, run := range runs {
			for _, q := range run {
				obs.X = append(obs.X, m.problem.Inputs(nil, q))
				// Repetitions do not average out what is learned beside known noise.
				if known := m.knownNoise[j]; !math.IsNaN(known) {
					obs.NoiseVariance = append(obs.NoiseVariance, known/m.runsPerTrial)
					obs.Runs = append(obs.Runs, 1)
				} else {
					obs.NoiseVariance = append(obs.NoiseVariance, 0)
					obs.Runs = append(obs.Runs, m.runsPerTrial)
				}
				if checkpoint >= 0 {
					obs.Groups = append(obs.Groups, newRun-i)
					obs.Positions = append(obs.Positions, math.Log(q[checkpoint]))
				}
			}
		}
		var err error
		if out[j], err = gp.Foresee(obs); err != nil {
			return nil, fmt.Errorf("metric %q: %w", m.metrics[j].Name, err)
		}
	}
	return out, nil
}

// newRun is the group of a run that is not in a model yet.
const newRun = math.MaxInt32
