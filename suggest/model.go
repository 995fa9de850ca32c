package suggest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// ErrNoData is returned by [FitModel], wrapped with the objective's name, when
// a measured objective has no finite value yet.
var ErrNoData = errors.New("suggest: no finite value to fit a model to")

// ModelOptions tunes [FitModel]. The zero value is ready to use.
type ModelOptions struct {
	// ModelKnown fits a surrogate to objectives with a Known function too, from
	// the values in the history, as Avent et al. did. By default they are
	// exact.
	ModelKnown bool

	// Restarts is the number of starting points, beyond the first, of each
	// surrogate's fit. 0 means a number that falls from 4 to 0 as the history
	// grows; a negative number means none.
	Restarts int

	// Seed determines the starting points.
	Seed uint64

	// ForReading lets the data alone say how noisy single runs are, where no standard
	// error is known. By default noise that has to be learned is expected to be a small
	// share of the variance, so that a search does not give up on what a few runs do not
	// tell apart. A model that is read, and from which configurations are chosen for their
	// predictions, must not take luck for merit.
	ForReading bool

	// imputeInfeasible gives infeasible configurations the worst value seen.
	imputeInfeasible bool

	// homoscedastic makes unknown noise the same everywhere.
	homoscedastic bool
}

// Model is the posterior of every objective and constraint of a problem given a
// history: independent Gaussian processes, each on its metric's transform, and the
// exact function where one is known. A *Model is immutable and safe for concurrent
// use.
type Model struct {
	problem        *Problem
	metrics        []Objective     // the objectives, then the constraints
	configurations []configuration // that the model was made of
	gps            []*surrogate.GP // by metric, nil for an exact one
	knownNoise     []float64       // by metric, of one typical run, NaN if it was learned
	runsPerTrial   float64         // typically
	cost           *surrogate.GP   // of the logarithm of measured costs, or nil
}

// FitModel fits the surrogates to h, with replicates of a configuration pooled.
// Of the checkpoints of a run it uses a few, and of a history of many runs those
// that matter to the front with a sample of the others. Pending configurations are
// ignored. A metric that only an earlier study has measured is expected to be what it
// was there. It returns a [space.FieldErrors] when p is invalid or h does not fit p,
// [ErrNoData], an error of the surrogate that names the metric, or the context's
// error.
//
// Values that are infinite in the bad direction are given the worst finite
// value seen, others that are not finite are left out.
func FitModel(ctx context.Context, p *Problem, h *History, o ModelOptions) (*Model, error) {
	if err := validate(p, h, Request{}); err != nil {
		return nil, err
	}
	f := newFitter(p, h, o)
	m := &Model{
		problem:        p,
		metrics:        f.metrics,
		configurations: f.pooled(),
		gps:            make([]*surrogate.GP, len(f.metrics)),
		knownNoise:     make([]float64, len(f.metrics)),
	}
	for j := range f.metrics {
		if f.metrics[j].Known != nil && !o.ModelKnown {
			continue
		}
		var err error
		m.gps[j], m.knownNoise[j], err = f.fit(ctx, j)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("metric %q: %w", f.metrics[j].Name, err)
		}
	}
	m.runsPerTrial = f.runsPerTrial()
	if p.Cost == CostMeasured {
		var err error
		if m.cost, err = f.fitCost(ctx); err != nil {
			return nil, fmt.Errorf("cost: %w", err)
		}
	}
	return m, nil
}

// fitter fits the surrogates of one problem and history.
type fitter struct {
	problem *Problem
	history *History
	options ModelOptions
	metrics []Objective
	runs    []span
	chosen  []int                   // indices of the evaluations that make the model
	all     []configuration         // of these evaluations, once they are pooled
	samples map[int][]configuration // by number of runs
	inputs  [][]float64             // by evaluation, once they are encoded
	bases   []base                  // by metric, what an earlier study tells
	tied    []int
}

// base is the surrogate of an earlier study.
type base struct {
	gp     *surrogate.GP // nil if there is none
	noise  float64       // of one typical run, NaN if it was learned
	digest [16]byte
}

func newFitter(p *Problem, h *History, o ModelOptions) *fitter {
	f := &fitter{problem: p, history: h, options: o, metrics: p.metrics(), runs: runs(h), tied: tied(p.Space)}
	f.bases = make([]base, len(f.metrics))
	f.samples = make(map[int][]configuration)
	f.inputs = make([][]float64, len(h.Evaluations))
	f.chosen = f.choose()
	return f
}

// metrics returns the objectives, then the constraints as objectives.
func (p *Problem) metrics() []Objective {
	metrics := slices.Clone(p.Objectives)
	for i := range p.Constraints {
		metrics = append(metrics, p.Constraints[i].objective())
	}
	return metrics
}

// tied gives the columns of one categorical parameter one length scale, nil if
// there is no such parameter.
func tied(s *space.Space) []int {
	var scales []int
	next, categorical := 0, false
	for i := range s.Parameters {
		width := 1
		if p := &s.Parameters[i]; p.Kind == space.Categorical {
			width, categorical = len(p.Choices), true
		}
		for range width {
			scales = append(scales, next)
		}
		next++
	}
	if !categorical {
		return nil
	}
	return scales
}

// fit returns the surrogate of metric j, and the noise variance of one typical run
// if that is known, else NaN.
func (f *fitter) fit(ctx context.Context, j int) (*surrogate.GP, float64, error) {
	if err := f.fitBase(ctx, j); err != nil {
		return nil, 0, err
	}
	data, err := f.observe(j, f.pooled(), f.options.imputeInfeasible)
	if errors.Is(err, ErrNoData) && f.bases[j].gp != nil {
		return f.bases[j].gp, f.bases[j].noise, nil
	}
	if err != nil {
		return nil, 0, err
	}
	h, _, err := f.learn(ctx, j, len(f.runs))
	if err != nil {
		return nil, 0, err
	}
	obs, _ := data.surrogate()
	gp, err := surrogate.NewWithBase(nil, h, obs, f.bases[j].gp)
	return gp, data.typicalNoise(obs), err
}

// runsPerTrial returns the median number of runs behind an evaluation.
func (f *fitter) runsPerTrial() float64 {
	counts := []int{1}
	for _, r := range f.runs {
		counts = append(counts, f.history.Evaluations[r.last].runs())
	}
	slices.Sort(counts)
	return float64(counts[len(counts)/2])
}

// fitBase fits the surrogate of metric j of the earlier study, if there is one.
func (f *fitter) fitBase(ctx context.Context, j int) error {
	if len(f.history.Prior) == 0 {
		return nil
	}
	earlier := newFitter(f.problem, &History{Evaluations: f.history.Prior}, f.options)
	data, err := earlier.observe(j, earlier.pooled(), false)
	if errors.Is(err, ErrNoData) {
		return nil // the earlier study says nothing of this metric
	}
	if err != nil {
		return err
	}
	h, digest, err := earlier.learn(ctx, j, len(earlier.runs))
	if err != nil {
		return err
	}
	obs, _ := data.surrogate()
	b := base{digest: data.digest(0, digest), noise: data.typicalNoise(obs)}
	var ok bool
	if b.gp, ok = earlierModels.get(b.digest); !ok {
		if b.gp, err = surrogate.New(nil, h, obs); err != nil {
			return err
		}
		earlierModels.put(b.digest, b.gp)
	}
	f.bases[j] = b
	return nil
}

// fitCost returns the surrogate of the logarithm of the cost of runs, or nil if no
// cost is known.
func (f *fitter) fitCost(ctx context.Context) (*surrogate.GP, error) {
	var obs surrogate.Observations
	for _, r := range f.runs {
		e := &f.history.Evaluations[r.last]
		if e.Cost > 0 && len(obs.Y) < modelSize {
			obs.X = append(obs.X, f.problem.Space.Encode(nil, e.Point))
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
	gp, err := surrogate.Fit(ctx, few, surrogate.Options{Tied: f.tied, Seed: f.options.Seed, Restarts: 1})
	if err != nil {
		return nil, err
	}
	return surrogate.New(nil, gp.Hyperparameters(), obs)
}

// pooled returns the configurations that make the model.
func (f *fitter) pooled() []configuration {
	if f.all == nil {
		f.all = pool(f.history, f.chosen, len(f.metrics))
	}
	return f.all
}

// sampled returns the configurations from which hyperparameters are learned after n runs.
func (f *fitter) sampled(n int) []configuration {
	configurations, ok := f.samples[n]
	if !ok {
		configurations = pool(f.history, f.sample(n), len(f.metrics))
		f.samples[n] = configurations
	}
	return configurations
}

// input returns the surrogates' input of a configuration.
func (f *fitter) input(c *configuration) []float64 {
	first := c.evaluations[0]
	if f.inputs[first] == nil {
		f.inputs[first] = f.problem.Space.Encode(nil, c.point)
	}
	return f.inputs[first]
}

// observe gathers the data of metric j in the given configurations.
func (f *fitter) observe(j int, configurations []configuration, imputeInfeasible bool) (*observations, error) {
	o := &f.metrics[j]
	data := &observations{deterministic: o.Known != nil, homoscedastic: f.options.homoscedastic, forReading: f.options.ForReading, tied: f.tied}
	data.reserve(len(configurations))
	checkpoint := f.problem.checkpoint()
	worst := math.NaN()
	groups := make(map[int64]int) // of the surrogate, by run
	add := func(c *configuration, v, se float64, runs, group int) {
		z, variance := o.latent(v, se, runs)
		position := 0.0
		if checkpoint >= 0 {
			position = math.Log(c.point[checkpoint])
		}
		data.add(f.input(c), z, variance, runs, group, position)
		if math.IsNaN(worst) {
			worst = z
		}
		worst = o.worst(worst, z)
	}
	for i := range configurations {
		c := &configurations[i]
		if v := c.values[j]; math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if len(c.evaluations) == 1 || !data.deterministic && c.alone(f.history, j) {
			for _, k := range c.evaluations {
				e := &f.history.Evaluations[k]
				add(c, e.Values[j], e.stdError(j), e.runs(), groupOf(groups, e.Run))
			}
			continue
		}
		add(c, c.values[j], c.stdErrors[j], c.runs, 0)
	}
	if math.IsNaN(worst) {
		return nil, ErrNoData
	}
	// The bad values, as bad as the worst that was measured: worse would bend
	// the surrogate everywhere.
	for i := range configurations {
		if c := &configurations[i]; o.isBad(c.values[j]) {
			data.add(f.input(c), worst, math.NaN(), 1, 0, 0)
		}
	}
	if imputeInfeasible && o.Known == nil { // a known objective has its value there too
		for _, q := range f.history.Infeasible {
			data.add(f.problem.Space.Encode(nil, q), worst, math.NaN(), 1, 0, 0)
		}
	}
	return data, nil
}

// groupOf returns the number, from 1, of a run among those before it, or 0 for a run
// of its own.
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
// of unknown noise, so that each is better seen for itself: with the others of
// its run.
func (c *configuration) alone(h *History, j int) bool {
	for _, k := range c.evaluations {
		e := &h.Evaluations[k]
		v := e.Values[j]
		if e.runs() > 1 || !math.IsNaN(e.stdError(j)) || math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// Predict returns the posterior of every objective at q. It panics if q has the
// wrong length.
func (m *Model) Predict(q space.Point) []Prediction {
	laws := m.laws(nil, nil, q)
	predictions := make([]Prediction, len(laws))
	for j, l := range laws {
		predictions[j] = m.problem.Objectives[j].prediction(l)
	}
	return predictions
}

// laws appends the laws of the costs at q to dst[:0]. x is a buffer for the
// encoded point.
func (m *Model) laws(dst []acquisition.Law, x []float64, q space.Point) []acquisition.Law {
	dst = dst[:0]
	x = m.problem.Space.Encode(x, q)
	for j := range m.problem.Objectives {
		o := &m.problem.Objectives[j]
		if gp := m.gps[j]; gp != nil {
			dst = append(dst, o.law(gp.Predict(x)))
		} else {
			dst = append(dst, o.known(q))
		}
	}
	return dst
}

// Estimate is what a model says of one evaluated configuration.
type Estimate struct {
	Point space.Point

	// Evaluations are the indices of its evaluations in the history.
	Evaluations []int

	// Values and StdErrors are the pooled measurements, in own units: means
	// over Runs, and their standard errors (NaN if unknown).
	Values, StdErrors []float64
	Runs              int

	// Predictions are the posteriors given all of the history.
	Predictions []Prediction

	// OnFront tells that no other configuration's posterior medians dominate
	// this one's. A configuration with a value that is not finite, or with a
	// constraint whose posterior median is out of bounds, is never on the front.
	OnFront bool
}

// Estimates returns every different configuration that was evaluated, in order
// of its first evaluation, with its posterior and whether it is on the front of
// the posterior medians. That front, unlike the one of the raw measurements,
// does not consist of the configurations with the luckiest noise.
func (m *Model) Estimates() []Estimate {
	estimates := make([]Estimate, len(m.configurations))
	costs := make([][]float64, len(m.configurations))
	for i := range m.configurations {
		c := &m.configurations[i]
		laws := m.laws(nil, nil, c.point)
		e := Estimate{
			Point:       c.point.Clone(),
			Evaluations: slices.Clone(c.evaluations),
			Values:      slices.Clone(c.values),
			StdErrors:   slices.Clone(c.stdErrors),
			Runs:        c.runs,
			Predictions: make([]Prediction, len(laws)),
		}
		costs[i] = m.costs(c, laws)
		for j, l := range laws {
			e.Predictions[j] = m.problem.Objectives[j].prediction(l)
		}
		estimates[i] = e
	}
	for _, i := range pareto.NonDominated(costs) {
		estimates[i].OnFront = true
	}
	return estimates
}

// costs returns the medians of the laws at c, or NaN if c can not be on a front.
func (m *Model) costs(c *configuration, laws []acquisition.Law) []float64 {
	costs := make([]float64, len(laws))
	possible := c.finite() && m.acceptable(c.point, c.values)
	for j, l := range laws {
		costs[j] = l.Median()
		if !possible {
			costs[j] = math.NaN()
		}
	}
	return costs
}

// front returns the front of the posterior medians of the evaluated and of the
// given other configurations, in costs below the reference.
func (m *Model) front(others []space.Point) *pareto.Front {
	costs := make([][]float64, 0, len(m.configurations)+len(others))
	for i := range m.configurations {
		c := &m.configurations[i]
		costs = append(costs, m.costs(c, m.laws(nil, nil, c.point)))
	}
	for _, q := range others {
		if !m.acceptable(q, nil) {
			continue
		}
		laws := m.laws(nil, nil, q)
		medians := make([]float64, len(laws))
		for j, l := range laws {
			medians[j] = l.Median()
		}
		costs = append(costs, medians)
	}
	reference := make([]float64, len(m.problem.Objectives))
	for j := range reference {
		o := &m.problem.Objectives[j]
		reference[j] = o.cost(o.Reference)
	}
	return pareto.NewFront(costs, reference)
}

// believe returns the model after observing, at q, exactly what it predicts
// there: the kriging believer of Ginsbourger, Le Riche, Carraro, "Kriging is
// well-suited to parallelize optimization" (2010). Means do not change,
// variances shrink around q.
func (m *Model) believe(q space.Point) (*Model, error) {
	next := *m
	next.gps = slices.Clone(m.gps)
	x := m.problem.Space.Encode(nil, q)
	for j, gp := range m.gps {
		if gp == nil {
			continue
		}
		mean, _ := gp.Predict(x)
		appended, err := gp.Append(x, mean, 0)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", m.metrics[j].Name, err)
		}
		next.gps[j] = appended
	}
	return &next, nil
}
