package analysis

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// Run is a run to come: the configurations that it measures, one for each checkpoint in ascending
// order, or a single one; see [Checkpoints].
type Run []space.Point

// Forecast says what further runs are expected to gain.
type Forecast struct {
	// Hypervolume of the posterior front today, constants included, in the objectives' own units.
	Hypervolume float64

	// Gains of the first run, of the first two, and so on.
	Gains []Gain
}

// Gain is by how much some runs enlarge the hypervolume of the posterior front.
type Gain struct {
	// Mean, and 5 % and 95 % quantiles over possible measurements of the runs. A gain is
	// negative where the runs show that the front is not as good as it looked.
	Mean, Lower, Upper float64

	// Probability is the probability that the gain exceeds 1 % of Forecast.Hypervolume.
	Probability float64

	// Cost is the total cost of the runs, in the unit of [suggest.Problem].Cost, on average. It
	// is NaN if costs are measured and none is known.
	Cost float64
}

// worthwhile is the gain, relative to the hypervolume, that Gain.Probability is about.
const worthwhile = 0.01

// ForecastGain returns the expected gain of the next runs once the pending ones are complete. All
// are non-empty.
//
// The gain is the difference that a reader of the posterior front will see. An outcome of all
// runs is drawn from the joint posterior, noise included. The model learns the outcome, and the
// front of the posterior medians is chosen anew from all configurations then measured. (As a
// knowledge gradient does: Frazier, Powell, Dayanik, "The Knowledge-Gradient Policy for
// Correlated Normal Beliefs", INFORMS J. on Computing 21(4), 2009.) The hypervolume of the drawn
// functions or of the noisy outcomes would be larger: it credits the front with luck that no
// reader is shown.
//
// The model keeps its hyperparameters, and the runs are chosen before their results are seen. A
// search that sees results in between is expected to gain as much or more, if the model is right.
// The errors come from the surrogate and from ctx.
func ForecastGain(ctx context.Context, m *model.Model, pending, next []Run, seed uint64) (Forecast, error) {
	f, err := newForecaster(m, slices.Concat(pending, next))
	if err != nil {
		return Forecast{}, err
	}
	out := Forecast{Hypervolume: f.hypervolume(nil)}
	gains := make([][]float64, len(next))
	rng := rand.New(rand.NewPCG(seed, 0x6761696e))
	for draw := range draws(len(m.Problem().Objectives)) {
		if err := pause.Check(ctx); err != nil {
			return Forecast{}, err
		}
		f.draw(rng, draw%2 == 1)
		before := out.Hypervolume
		for k := range f.ends {
			f.observe(k)
			switch {
			case k < len(pending)-1:
			case k == len(pending)-1:
				before = f.hypervolume(&k)
			default:
				gains[k-len(pending)] = append(gains[k-len(pending)], f.hypervolume(&k)-before)
			}
		}
	}
	costs := costs(m, next)
	for k := range next {
		out.Gains = append(out.Gains, gain(gains[k], worthwhile*out.Hypervolume, costs[k]))
	}
	return out, nil
}

// draws returns the number of draws for a number of objectives, an even one. Hypervolumes of many
// objectives are expensive.
func draws(objectives int) int {
	const most, least = 512, 32
	return max(least, most>>(2*max(0, objectives-3)))
}

// gain summarises the gains of all draws.
func gain(all []float64, threshold, cost float64) Gain {
	slices.Sort(all)
	g := Gain{
		Mean:  stat.Mean(all, nil),
		Lower: stat.Quantile(0.05, stat.LinInterp, all, nil),
		Upper: stat.Quantile(0.95, stat.LinInterp, all, nil),
		Cost:  cost,
	}
	above, _ := slices.BinarySearchFunc(all, threshold, func(v, t float64) int {
		if v > t {
			return 1
		}
		return -1
	})
	g.Probability = float64(len(all)-above) / float64(len(all))
	return g
}

// costs returns the costs of the first run, of the first two, and so on.
func costs(m *model.Model, runs []Run) []float64 {
	p := m.Problem()
	costs := make([]float64, len(runs))
	for k, run := range runs {
		end := run[len(run)-1]
		switch p.Cost {
		case suggest.CostCheckpoint:
			costs[k] = end[p.CheckpointIndex()]
		case suggest.CostMeasured:
			costs[k] = math.NaN()
			if gp := m.RunCost(); gp != nil {
				x := p.Inputs(nil, end)
				mean, variance := gp.Predict(x)
				costs[k] = math.Exp(mean + (variance+gp.Noise(x))/2)
			}
		default:
			costs[k] = 1
		}
	}
	return floats.CumSum(costs, costs)
}

// candidate is a configuration that is measured, or will be by one of the runs.
type candidate struct {
	run      int         // that measures it first, −1 for a measured one
	known    []float64   // by metric: the exact cost, or value of a constraint
	means    []float64   // by metric: of the surrogate, today
	loadings [][]float64 // by metric, see [surrogate.Foresight]
	drawn    []float64   // by metric: means given the outcomes of a draw so far
}

// forecaster draws outcomes of runs and the fronts that follow.
type forecaster struct {
	model      *model.Model
	foresights []*surrogate.Foresight // by metric, nil for an exact one
	ends       []int                  // number of observations up to each run
	candidates []candidate
	reference  []float64
	constants  [][]float64 // costs
	normals    [][]float64 // by metric, of the present draw
	costs      [][]float64 // buffer
}

func newForecaster(m *model.Model, runs []Run) (*forecaster, error) {
	f := &forecaster{model: m, reference: m.Problem().ReferenceCosts(), constants: m.Problem().ConstantCosts()}
	points := make([][]space.Point, len(runs))
	end := 0
	for k, run := range runs {
		points[k] = run
		end += len(run)
		f.ends = append(f.ends, end)
	}
	var err error
	if f.foresights, err = m.Foresee(points); err != nil {
		return nil, err
	}
	f.normals = make([][]float64, len(f.foresights))
	for j := range f.normals {
		f.normals[j] = make([]float64, end)
	}
	for i := range m.Configurations() {
		if c := &m.Configurations()[i]; m.Counts(c) {
			f.add(c.Point, -1, c.Values)
		}
	}
	for k, run := range runs {
		for _, q := range run {
			f.add(q, k, nil)
		}
	}
	f.drop()
	return f, nil
}

// add adds a configuration. values are the values of its metrics, or nil if they must be computed.
func (f *forecaster) add(q space.Point, run int, values []float64) {
	p := f.model.Problem()
	metrics := len(f.foresights)
	c := candidate{
		run: run, known: make([]float64, metrics), means: make([]float64, metrics),
		loadings: make([][]float64, metrics), drawn: make([]float64, metrics),
	}
	x := p.Inputs(nil, q)
	for j, foresight := range f.foresights {
		switch i := j - len(p.Objectives); {
		case foresight != nil:
			c.loadings[j] = make([]float64, foresight.Len())
			foresight.Predict(c.loadings[j], x)
			c.means[j] = f.model.Mean(j, x)
		case i < 0:
			c.known[j] = p.Objectives[j].KnownCost(q)
		case values != nil:
			c.known[j] = values[j]
		default:
			c.known[j] = p.Constraints[i].Known(q)
		}
	}
	copy(c.drawn, c.means)
	f.candidates = append(f.candidates, c)
}

// extreme is the number of standard deviations that no draw of a posterior mean is taken to move.
const extreme = 4

// drop leaves out the measured configurations that no draw brings to the front: even at their best
// others are better at their worst. Configurations under measured constraints stay.
func (f *forecaster) drop() {
	p := f.model.Problem()
	if slices.ContainsFunc(f.foresights[len(p.Objectives):], func(s *surrogate.Foresight) bool { return s != nil }) {
		return
	}
	bound := func(c *candidate, sign float64) []float64 {
		costs := f.costsOf(c, c.means)
		for j := range costs {
			if c.loadings[j] != nil && !math.IsNaN(costs[j]) {
				d := f.model.Distribution(j, c.means[j], floats.Dot(c.loadings[j], c.loadings[j]))
				a, b := d.Quantile(-extreme), d.Quantile(extreme)
				costs[j] = sign * max(sign*a, sign*b)
			}
		}
		return costs
	}
	worst := p.ConstantCosts()
	for i := range f.candidates {
		if c := &f.candidates[i]; c.run < 0 {
			worst = append(worst, bound(c, 1))
		}
	}
	front := pareto.NewFront(worst, f.reference)
	f.candidates = slices.DeleteFunc(f.candidates, func(c candidate) bool {
		isBest := func(v []float64) bool { return slices.Equal(v, bound(&c, 1)) }
		return c.run < 0 && !front.Improves(bound(&c, -1)) && !slices.ContainsFunc(front.Points(), isBest)
	})
}

// costsOf returns the medians of the costs of a candidate for some means of the surrogates, or
// NaNs if it is not acceptable.
func (f *forecaster) costsOf(c *candidate, means []float64) []float64 {
	p := f.model.Problem()
	median := func(j int) float64 {
		if c.loadings[j] == nil {
			return c.known[j]
		}
		return f.model.Distribution(j, means[j], 0).Median()
	}
	costs := make([]float64, len(p.Objectives))
	for j := range costs {
		costs[j] = median(j)
	}
	for i := range p.Constraints {
		if !p.Constraints[i].Holds(median(len(p.Objectives) + i)) {
			floats.AddConst(math.NaN(), costs)
		}
	}
	return costs
}

// draw begins a draw of the outcomes of all runs: a new one, or the opposite of the last.
func (f *forecaster) draw(rng *rand.Rand, opposite bool) {
	for _, z := range f.normals {
		for i := range z {
			if opposite {
				z[i] = -z[i]
			} else {
				z[i] = rng.NormFloat64()
			}
		}
	}
	for i := range f.candidates {
		copy(f.candidates[i].drawn, f.candidates[i].means)
	}
}

// observe adds the outcome of run k to the means.
func (f *forecaster) observe(k int) {
	first := 0
	if k > 0 {
		first = f.ends[k-1]
	}
	for i := range f.candidates {
		c := &f.candidates[i]
		for j, loadings := range c.loadings {
			if loadings != nil {
				c.drawn[j] += floats.Dot(loadings[first:f.ends[k]], f.normals[j][first:f.ends[k]])
			}
		}
	}
}

// hypervolume returns the hypervolume of the front of the configurations measured up to run k, or today.
func (f *forecaster) hypervolume(k *int) float64 {
	f.costs = append(f.costs[:0], f.constants...)
	for i := range f.candidates {
		if c := &f.candidates[i]; c.run < 0 || k != nil && c.run <= *k {
			f.costs = append(f.costs, f.costsOf(c, c.drawn))
		}
	}
	return pareto.Hypervolume(f.costs, f.reference)
}

// Checkpoints returns the run of a configuration that measures as many checkpoints as the runs so
// far, in the middle of them, and no earlier one than they, evenly spaced in the logarithm. Models
// use six of a run at most. Without a checkpoint parameter it is the configuration alone.
func Checkpoints(p *suggest.Problem, evaluations []suggest.Evaluation, q space.Point) Run {
	const most = 6
	c := p.CheckpointIndex()
	if c < 0 {
		return Run{q}
	}
	var counts []float64
	first, count := q[c], 0.0
	for i := range evaluations {
		e := &evaluations[i]
		first = min(first, e.Point[c])
		count++
		if i+1 == len(evaluations) || e.Run == 0 || evaluations[i+1].Run != e.Run {
			counts = append(counts, count)
			count = 0
		}
	}
	slices.Sort(counts)
	n := 1
	if len(counts) > 0 {
		n = int(min(most, counts[len(counts)/2]))
	}
	var run Run
	before := 0.0
	for i := range n {
		at := q[c] // the last one always
		if i < n-1 {
			at = max(before+1, math.Round(first*math.Pow(q[c]/first, float64(i)/float64(n-1))))
		}
		if at > q[c] || at == q[c] && i < n-1 {
			continue
		}
		step := q.Clone()
		step[c] = at
		run = append(run, step)
		before = at
	}
	return run
}
