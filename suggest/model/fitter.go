package model

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// fitter fits the surrogates of one problem and history.
type fitter struct {
	problem *suggest.Problem
	history *suggest.History
	options Options
	metrics []suggest.Objective
	runs    []span
	chosen  []int                           // indices of the evaluations that make the model
	all     []suggest.Configuration         // of these evaluations, once they are pooled
	samples map[int][]suggest.Configuration // by number of runs
	inputs  [][]float64                     // by evaluation, once they are encoded
	bases   []base                          // by metric, of an earlier study
	narrow  []bool                          // by metric, the fence of its values that was learned
	tied    []int
}

// base is the surrogate of an earlier study.
type base struct {
	gp     *surrogate.GP // nil if there is none
	noise  float64       // of one typical run, NaN if it was learned
	digest digest
	prior  surrogate.Normal // of its weight
}

func newFitter(p *suggest.Problem, h *suggest.History, o Options) *fitter {
	f := &fitter{problem: p, history: h, options: o, metrics: p.Metrics(), runs: runs(h), tied: tied(p)}
	f.bases, f.narrow = make([]base, len(f.metrics)), make([]bool, len(f.metrics))
	f.samples = make(map[int][]suggest.Configuration)
	f.inputs = make([][]float64, len(h.Evaluations))
	f.chosen = f.choose()
	return f
}

// tied gives the inputs of one categorical parameter one length scale, nil if
// there is no such parameter.
func tied(p *suggest.Problem) []int {
	scales := make([]int, p.InputDim())
	next, categorical := 0, false
	for j, column := range p.InputColumns() {
		if column < 0 {
			continue
		}
		width := 1
		if q := &p.Space.Parameters[j]; q.Kind == space.Categorical {
			width, categorical = len(q.Choices), true
		}
		for k := range width {
			scales[column+k] = next
		}
		next++
	}
	if !categorical {
		return nil
	}
	if p.Features != nil {
		for k := range p.Features.Count {
			scales[len(scales)-p.Features.Count+k] = next + k
		}
	}
	return scales
}

// fitted is the result of a fit of one metric.
type fitted struct {
	gp       *surrogate.GP
	observed Observed
	noise    float64  // variance of one typical run if that is known, else NaN
	draw     variants // draws variants of the surrogate
	shown    noiseShown
	fence    fence
}

// fit fits the surrogate of metric j.
func (f *fitter) fit(ctx context.Context, j int) (fitted, error) {
	if err := f.fitBase(ctx, j); err != nil {
		return fitted{}, err
	}
	data, err := f.observe(j, f.pooled(), f.options.ImputeInfeasible, false)
	if errors.Is(err, ErrNoData) && f.bases[j].gp != nil && len(f.history.Prior) > 0 {
		return fitted{gp: f.bases[j].gp, noise: f.bases[j].noise, fence: noFence}, nil
	}
	if err != nil {
		return fitted{}, err
	}
	result, _, err := f.learn(ctx, j, len(f.runs))
	if err != nil {
		return fitted{}, err
	}
	if f.narrow[j] = result.narrow; result.narrow {
		if data, err = f.observe(j, f.pooled(), f.options.ImputeInfeasible, true); err != nil {
			return fitted{}, err
		}
	}
	h, noiseFree := result.at(data)
	obs, _ := data.surrogate()
	base := f.bases[j].gp
	gp, err := surrogate.NewWithBase(f.kernel(), h, obs, base)
	draw := f.variants(j, h, result.ofRuns, obs, noiseFree, f.options.Homoscedastic)
	shown := func(ctx context.Context, byRepetitions bool) (bool, error) {
		d, learned, options, err := f.settings(j, h, result.ofRuns, f.options.Homoscedastic)
		if err != nil {
			return false, err
		}
		return d.showNoise(ctx, learned, options, h, byRepetitions)
	}
	noise := data.typicalNoise(obs)
	if noiseFree && h.RunVariance == 0 {
		noise = 0
	}
	return fitted{gp, Observed{data.configuration, data.y, data.runs}, noise, draw, shown, data.fence}, err
}

// settings returns the values of metric j from which hyperparameters about h are learned, also in the surrogate's form,
// and the options of that.
func (f *fitter) settings(j int, h surrogate.Hyperparameters, ofRuns float64, homoscedastic bool) (*observations, surrogate.Observations, surrogate.Options, error) {
	d, err := f.observe(j, f.sampled(len(f.runs)), false, f.narrow[j])
	if err != nil {
		return nil, surrogate.Observations{}, surrogate.Options{}, err
	}
	d.homoscedastic = homoscedastic
	obs, options := d.surrogate()
	options.Kernel, options.Base, options.BaseWeight = f.kernel(), f.bases[j].gp, f.bases[j].prior
	if h.RunVariance > 0 {
		options.MaxRunVariance = ofRuns
	}
	return d, obs, options, nil
}

// variants draws surrogates of the observations of metric j whose hyperparameters are about h.
func (f *fitter) variants(j int, h surrogate.Hyperparameters, ofRuns float64, obs surrogate.Observations, noiseFree, homoscedastic bool) variants {
	return func(count int, rng *rand.Rand) ([]*surrogate.GP, error) {
		d, learned, options, err := f.settings(j, h, ofRuns, homoscedastic)
		if err != nil {
			return nil, err
		}
		if noiseFree {
			options.FixedNoise, options.NoiseSlopes = d.nugget(), false
		}
		all, err := surrogate.Spread(learned, options, h, count, rng)
		if err != nil {
			return nil, err
		}
		gps := make([]*surrogate.GP, count)
		for i := range gps {
			if gps[i], err = surrogate.NewWithBase(f.kernel(), all[i], obs, f.bases[j].gp); err != nil {
				return nil, err
			}
		}
		return gps, nil
	}
}

// independent fits the surrogate of metric j in which every checkpoint has noise of its own, so that the common part of
// a run's checkpoints is signal. It begins with the hyperparameters of the usual surrogate. Its gp is nil where no run
// has checkpoints.
func (f *fitter) independent(ctx context.Context, j int, start surrogate.Hyperparameters) (fitted, error) {
	few, err := f.observe(j, f.sampled(len(f.runs)), false, f.narrow[j])
	if err != nil || slices.Max(few.group) == 0 || slices.Max(few.group) == len(few.group) || f.options.Homoscedastic {
		return fitted{}, err
	}
	few.homoscedastic, start.RunVariance = true, 0
	learned, options := few.surrogate()
	options.Kernel, options.Base, options.BaseWeight = f.kernel(), f.bases[j].gp, f.bases[j].prior
	options.Start, options.Restarts, options.Tolerance, options.Workers = &start, -1, fitTolerance, f.options.Workers
	found, err := surrogate.Fit(ctx, learned, options)
	if err != nil {
		return fitted{}, err
	}
	data, err := f.observe(j, f.pooled(), f.options.ImputeInfeasible, f.narrow[j])
	if err != nil {
		return fitted{}, err
	}
	data.homoscedastic = true
	obs, _ := data.surrogate()
	h := found.Hyperparameters()
	gp, err := surrogate.NewWithBase(f.kernel(), h, obs, f.bases[j].gp)
	return fitted{gp: gp, draw: f.variants(j, h, 0, obs, false, true)}, err
}

// kernel returns the kernel of the surrogates of metrics.
func (f *fitter) kernel() surrogate.Kernel {
	if f.options.Smooth {
		return surrogate.SquaredExponential{}
	}
	return surrogate.Matern52{}
}

// runsPerTrial returns the median number of runs behind an evaluation.
func (f *fitter) runsPerTrial() float64 {
	counts := []int{1}
	for _, r := range f.runs {
		counts = append(counts, f.history.Evaluations[r.last].RunCount())
	}
	slices.Sort(counts)
	return float64(counts[len(counts)/2])
}

// fitBase fits the surrogate of metric j of the earlier study, if there is one.
func (f *fitter) fitBase(ctx context.Context, j int) error {
	if len(f.history.Prior) == 0 {
		return f.publicBase(j)
	}
	earlier := newFitter(f.problem, &suggest.History{Evaluations: f.history.Prior}, f.options)
	data, err := earlier.observe(j, earlier.pooled(), false, false)
	if errors.Is(err, ErrNoData) {
		return nil // the earlier study says nothing of this metric
	}
	if err != nil {
		return err
	}
	result, source, err := earlier.learn(ctx, j, len(earlier.runs))
	if err != nil {
		return err
	}
	if result.narrow {
		if data, err = earlier.observe(j, earlier.pooled(), false, true); err != nil {
			return err
		}
	}
	// Another study is a prior, and no prior holds to the last digit: its values count as noisy here,
	// unless it says otherwise.
	obs, _ := data.surrogate()
	b := base{digest: data.digest(0, source), noise: data.typicalNoise(obs)}
	var ok bool
	if b.gp, ok = f.options.Cache.earlierSurrogate(b.digest); !ok {
		if b.gp, err = surrogate.New(f.kernel(), result.noisy, obs); err != nil {
			return err
		}
		f.options.Cache.putEarlierSurrogate(b.digest, b.gp)
	}
	f.bases[j] = b
	return nil
}

// publicRuns is the number of runs from which on a study needs no runs of others.
const publicRuns = 48

// meanNoise is the noise variance, relative to the variance of the function, with which the values of
// a [suggest.FeatureMean] are taken, for the factorisation of their covariance.
const meanNoise = 1e-4

// irrelevant is the length scale of an input that does not matter.
const irrelevant = 1e6

// publicBase makes the mean that is known beforehand the base of metric j, if that is an error and the
// study is young.
func (f *fitter) publicBase(j int) error {
	mean := f.problem.MeanOf(j)
	if mean == nil || len(f.runs) >= publicRuns {
		return nil
	}
	first := f.problem.InputDim() - f.problem.Features.Count
	h := surrogate.Hyperparameters{
		SignalVariance: mean.Variance, NoiseVariance: meanNoise * mean.Variance,
		LengthScales: slices.Concat(slices.Repeat([]float64{irrelevant}, first), mean.LengthScales),
	}
	sign := 1.0
	if f.metrics[j].Goal == suggest.Maximize {
		sign = -1
	}
	data := &observations{}
	data.reserve(len(mean.Values))
	for i, features := range mean.Points {
		data.add(i, slices.Concat(make([]float64, first), features), sign*mean.Values[i], 0, 1, 0, 0)
	}
	gp, err := surrogate.New(nil, h, surrogate.Observations{X: data.x, Y: data.y})
	if err != nil {
		return err
	}
	f.bases[j] = base{gp: gp, noise: math.NaN(), digest: data.digest(0, digest{}), prior: surrogate.Normal{Mean: 1, StdDev: meanWeight}}
	return nil
}

// meanWeight is the standard deviation of the weight of a mean that is known beforehand, around 1.
const meanWeight = 0.5

// fitCost returns the surrogate of the logarithm of the cost of runs, or nil if no
// cost is known.
func (f *fitter) fitCost(ctx context.Context) (*surrogate.GP, error) {
	var obs surrogate.Observations
	for _, r := range f.runs {
		e := &f.history.Evaluations[r.last]
		if e.Cost > 0 && len(obs.Y) < modelSize {
			obs.X = append(obs.X, f.problem.Inputs(nil, e.Point))
			obs.Y = append(obs.Y, math.Log(e.Cost))
		}
	}
	if len(obs.Y) == 0 {
		return nil, nil
	}
	few := obs
	if n := len(obs.Y); n > fitSize {
		few = surrogate.Observations{}
		for i := range fitSize {
			k := (2*i + 1) * n / (2 * fitSize)
			few.X, few.Y = append(few.X, obs.X[k]), append(few.Y, obs.Y[k])
		}
	}
	gp, err := surrogate.Fit(ctx, few, surrogate.Options{Tied: f.tied, Seed: sample.Fit.Seed(f.options.Seed), Restarts: 1, Workers: f.options.Workers})
	if err != nil {
		return nil, err
	}
	return surrogate.New(nil, gp.Hyperparameters(), obs)
}

// pooled returns the configurations that make the model.
func (f *fitter) pooled() []suggest.Configuration {
	if f.all == nil {
		f.all = f.history.Pool(f.chosen)
	}
	return f.all
}

// sampled returns the configurations from which hyperparameters are learned after n runs.
func (f *fitter) sampled(n int) []suggest.Configuration {
	configurations, ok := f.samples[n]
	if !ok {
		configurations = f.history.Pool(f.sample(n))
		f.samples[n] = configurations
	}
	return configurations
}

// input returns the surrogates' input of a configuration.
func (f *fitter) input(c *suggest.Configuration) []float64 {
	first := c.Evaluations[0]
	if f.inputs[first] == nil {
		f.inputs[first] = f.problem.Inputs(nil, c.Point)
	}
	return f.inputs[first]
}

// observe gathers the data of metric j in the given configurations. narrow says which fence
// of its values to take.
func (f *fitter) observe(j int, configurations []suggest.Configuration, imputeInfeasible, narrow bool) (*observations, error) {
	o := &f.metrics[j]
	data := &observations{
		deterministic: o.Known != nil, noiseFree: o.NoiseFree, homoscedastic: f.options.Homoscedastic, forReading: f.options.ForReading,
		fractions: o.Transform == suggest.Logit, smooth: f.options.Smooth, featured: f.problem.Features != nil, tied: f.tied,
	}
	data.reserve(len(configurations))
	checkpoint := f.problem.CheckpointIndex()
	groups := make(map[int64]int) // of the surrogate, by run
	add := func(i int, v, se float64, runs, group int) {
		c := &configurations[i]
		z, variance := latent(o, v, se, runs)
		position := 0.0
		if checkpoint >= 0 {
			position = math.Log(c.Point[checkpoint])
		}
		data.add(i, f.input(c), z, variance, runs, group, position)
		data.floor = append(data.floor, noiseFloor(o, v))
	}
	for i := range configurations {
		c := &configurations[i]
		if v := c.Values[j]; math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if len(c.Evaluations) == 1 || !data.deterministic && !o.NoiseFree && alone(c, f.history, j) {
			for _, k := range c.Evaluations {
				e := &f.history.Evaluations[k]
				add(i, e.Values[j], e.StdError(j), e.RunCount(), groupOf(groups, e.Run))
			}
			continue
		}
		add(i, c.Values[j], c.StdErrors[j], c.Runs, 0)
	}
	if len(data.y) == 0 {
		return nil, ErrNoData
	}
	f.enclose(data, j, narrow)
	worst, doubt := data.y[0], 0.0
	for i, z := range data.y {
		if worst = worse(o, worst, z); worst == z && data.doubt != nil {
			doubt = data.doubt[i]
		}
	}
	impute := func(i int, x []float64) {
		data.add(i, x, worst, math.NaN(), 1, 0, 0)
		data.floor = append(data.floor, 0)
		if data.doubt != nil {
			data.doubt = append(data.doubt, doubt)
		}
	}
	// Infinitely bad values count as the worst measured value: worse ones would bend the
	// surrogate everywhere.
	for i := range configurations {
		if c := &configurations[i]; isBad(o, c.Values[j]) {
			impute(i, f.input(c))
		}
	}
	if imputeInfeasible && o.Known == nil { // a known objective has its value there too
		for _, q := range f.history.Infeasible {
			impute(-1, f.problem.Inputs(nil, q))
		}
	}
	return data, nil
}

// groupOf returns the number, from 1, of a run in the order of first appearance, or 0 for
// an evaluation that is no checkpoint.
func groupOf(groups map[int64]int, run int64) int {
	if run == 0 {
		return 0
	}
	if _, ok := groups[run]; !ok {
		groups[run] = len(groups) + 1
	}
	return groups[run]
}

// alone reports whether every evaluation of c is a finite value of a single run
// with unknown noise. The model then takes each for itself, to relate it to the other
// checkpoints of its run, rather than their mean.
func alone(c *suggest.Configuration, h *suggest.History, j int) bool {
	for _, k := range c.Evaluations {
		e := &h.Evaluations[k]
		v := e.Values[j]
		if e.RunCount() > 1 || !math.IsNaN(e.StdError(j)) || math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// fitSize is the number of observations that determine the hyperparameters at
// most. An evaluation of their posterior costs O(n³).
const fitSize = 256

// milestone returns the largest number of runs, at most n, after which
// hyperparameters are learned anew: every number up to refitBelow, then at growing
// intervals. At first, and at every doubling, they are learned from scratch (cold),
// otherwise starting from the last milestone's. So they depend on the history alone, not
// on what was asked on the way, and cost little.
func milestone(n int) (at int, cold bool) {
	at, cold = 1, true
	for next, doubling := 1, coldBelow; next <= n; {
		at, cold = next, next <= coldBelow
		if next >= 2*doubling {
			doubling *= 2
			cold = true
		}
		next += max(1, (next-refitBelow)/10)
	}
	return at, cold
}

// fitTolerance is the gain of the log posterior density, in nats, below which a
// step of a fit is not worth its cost.
const fitTolerance = 0.01

// refitBelow is the number of runs up to which hyperparameters are learned after every
// run.
const refitBelow = 60

// coldBelow is the number of runs up to which hyperparameters are always learned
// from scratch.
const coldBelow = 40

// learn returns the hyperparameters of metric j after the given number of runs,
// and the digest of the data that they were learned from.
func (f *fitter) learn(ctx context.Context, j, runs int) (learned, digest, error) {
	at, cold := milestone(runs)
	start, before := (*surrogate.Hyperparameters)(nil), f.bases[j].digest
	if !cold {
		last, earlier, err := f.learn(ctx, j, at-1)
		if err != nil {
			return last, earlier, err
		}
		start, before = &last.noisy, earlier
	}
	configurations := f.sampled(at)
	data, err := f.observe(j, configurations, false, false)
	if errors.Is(err, ErrNoData) && at < len(f.runs) {
		configurations = f.sampled(len(f.runs)) // the first runs measured nothing
		data, err = f.observe(j, configurations, false, false)
	}
	if err != nil {
		return learned{}, before, err
	}
	narrow, err := f.observe(j, configurations, false, true)
	if err != nil {
		return learned{}, before, err
	}
	choose := !slices.Equal(narrow.y, data.y)
	seed := sample.Mix(sample.Fit.Seed(f.options.Seed) ^ sample.Mix(uint64(j)))
	key := data.digest(seed, before)
	if choose {
		key = narrow.digest(seed, key)
	}
	if known, ok := f.options.Cache.hyperparameters(key); ok {
		return known, key, nil
	}
	fit := surrogate.Options{
		Seed: seed, Start: start, Base: f.bases[j].gp, BaseWeight: f.bases[j].prior,
		Kernel: f.kernel(), Tolerance: fitTolerance, Workers: f.options.Workers, Restarts: -1,
	}
	if cold {
		fit.Restarts = restarts(at)
	}
	result, err := data.learn(ctx, fit)
	if err != nil {
		return learned{}, key, err
	}
	if choose {
		other, err := narrow.learn(ctx, fit)
		if err != nil {
			return learned{}, key, err
		}
		density, err := data.density(result, fit)
		if err != nil {
			return learned{}, key, err
		}
		otherDensity, err := narrow.density(other, fit)
		if err != nil {
			return learned{}, key, err
		}
		if otherDensity > density+outlierEvidence*float64(narrow.squashed()) {
			result = other
		}
	}
	f.options.Cache.putHyperparameters(key, result)
	return result, key, nil
}

// fitted returns the data in the surrogate's form, and how to fit them, given what is the same for all data.
func (d *observations) fitted(fit surrogate.Options) (surrogate.Observations, surrogate.Options) {
	obs, own := d.surrogate()
	fit.FixedNoise, fit.NoiseSlopes, fit.MaxNoise, fit.Prior, fit.Tied = own.FixedNoise, own.NoiseSlopes, own.MaxNoise, own.Prior, own.Tied
	return obs, fit
}

// learn fits hyperparameters to the observations.
func (d *observations) learn(ctx context.Context, fit surrogate.Options) (learned, error) {
	obs, options := d.fitted(fit)
	if obs.Groups != nil && options.FixedNoise == nil && d.forReading {
		// Checkpoints alone would let luck explain every parameter that shifts whole curves.
		var err error
		if options.MaxRunVariance, err = d.noiseOfEnds(ctx, obs, options); err != nil {
			return learned{}, err
		}
	}
	gp, err := surrogate.Fit(ctx, obs, options)
	if err != nil {
		return learned{}, err
	}
	result := learned{noisy: gp.Hyperparameters(), best: gp.Hyperparameters(), ofRuns: options.MaxRunVariance, narrow: d.narrow}
	without, isBetter, err := d.withoutNoise(ctx, obs, options, gp)
	if isBetter {
		result.best, result.noiseFree = without, true
	}
	return result, err
}

// density returns the logarithm of the posterior density of hyperparameters, of the values before these were squashed.
func (d *observations) density(l learned, fit surrogate.Options) (float64, error) {
	obs, options := d.fitted(fit)
	options.MaxRunVariance = l.ofRuns
	if l.noiseFree {
		options.FixedNoise, options.NoiseSlopes = d.nugget(), false
	}
	density, err := surrogate.LogPosterior(obs, options, l.best)
	return density + d.logSlope, err
}

// fewRuns is the number of runs up to which a fit has several starting points.
const fewRuns = 24

// restarts is the number of starting points beyond the first for n runs: the
// fewer data, the more local maxima the posterior of the hyperparameters has.
func restarts(n int) int {
	if n <= fewRuns {
		return 3
	}
	return 1
}
