package engine

import (
	"context"
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// Another trial of a configuration on the front moves its median by a Gaussian. Its variance
// is the reduction of the posterior variance there by the trial, less the part that a trial of
// the new configuration would also take off: a trial next to it is nearly as informative.
// Where the noise is known, that holds for every new configuration near the front, which may
// improve the front besides, so that no configuration is tried again.
//
// The value of the trial is the expected hypervolume improvement with this variance
// over the front without the configuration, less the improvement that its median
// makes for certain. It vanishes as the noise does. A new configuration is worth its
// expected improvement over the front of the medians with its whole variance. That is more
// than its first trial can show, in favour of new configurations.

// comparison compares further trials of known configurations with a trial of a new one.
type comparison struct {
	v       *evaluator
	choices choices
}

// newComparison returns the comparison for a search.
func newComparison(e *explorer) comparison { return comparison{e.evaluator(), e.choices} }

// foresee returns the predictions of the objectives' surrogates.
func (c comparison) foresee(gps []*surrogate.GP, x [][]float64) outlook {
	o := c.v.outlook(1)
	for j := range c.v.problem.Objectives {
		if gps[j] != nil {
			o.means[j], o.variances[j] = make([]float64, len(x)), make([]float64, len(x))
			gps[j].PredictBatch(o.means[j], o.variances[j], x)
		}
	}
	return o
}

// certain returns an outlook without variances.
func (o outlook) certain() outlook {
	variances := make([][]float64, len(o.variances))
	for j := range variances {
		variances[j] = make([]float64, len(o.variances[j]))
	}
	o.variances = variances
	return o
}

// gain returns the expected improvement of the given front of medians by a run.
func (c comparison) gain(front target, r run, o outlook) float64 {
	return math.Exp(c.v.improvement(front, 0, c.v.load(r, o), false))
}

// repeated returns the outlook on the medians of runs after one more trial of each. trials
// are the numbers of trials so far, and now is the outlook at the looks x of the runs. The
// surrogates after know a trial of the new configuration. The variances are of how far the
// medians move: the variance after the trial of the new configuration, less the variance after
// another trial of the run.
func (c comparison) repeated(now outlook, runs []run, trials []int, x [][]float64, after []*surrogate.GP) outlook {
	o := c.foresee(after, x)
	o.means = now.means
	for j, variances := range o.variances {
		for i, r := range runs {
			for k := r.first; k < r.first+r.looks() && variances != nil; k++ {
				if variance := now.variances[j][k]; variance > 0 {
					variances[k] = math.Max(0, variances[k]-1/(1/variance+information(c.v.model, j, x[k], trials[i])))
				} else {
					variances[k] = 0
				}
			}
		}
	}
	return o
}

// worth returns the probability that a run of q meets the constraints, divided by what
// it costs.
func (c comparison) worth(q space.Point) float64 {
	v := c.v
	at := v.siteAt(q)
	sum := -v.logCost(at, nil)
	for i := range v.problem.Constraints {
		bounds := &v.problem.Constraints[i]
		j := len(v.problem.Objectives) + i
		if gp := v.model.Surrogate(j); gp != nil {
			v.x = v.encode(v.x, at, 0)
			mean, variance := gp.Predict(v.x)
			p, _ := acquisition.LogFeasible(v.model.Distribution(j, mean, variance), bounds.Lower, bounds.Upper)
			sum += p
		}
	}
	return math.Exp(sum)
}

// information returns the precision in metric j that one more trial at the encoded point x
// adds to the given number of trials. Where the noise of runs is known, the noise that the
// surrogate learned beyond it is a misfit that repetition does not average out.
func information(m *model.Model, j int, x []float64, trials int) float64 {
	noise, misfit := m.Surrogate(j).Noise(x), 0.0
	if known := m.KnownNoise(j); !math.IsNaN(known) {
		noise, misfit = known, noise
	}
	if noise == 0 {
		return 0
	}
	noise /= m.RunsPerTrial()
	return 1/(noise/float64(trials+1)+misfit) - 1/(noise/float64(trials)+misfit)
}

// surrogates returns the surrogates of a model by metric.
func (c comparison) surrogates() []*surrogate.GP {
	gps := make([]*surrogate.GP, len(c.v.processes))
	for j := range gps {
		gps[j] = c.v.model.Surrogate(j)
	}
	return gps
}

// after returns the surrogates after a trial of q that measures their predictions.
func (c comparison) after(q space.Point) ([]*surrogate.GP, error) {
	gps := c.surrogates()
	x := c.v.problem.Inputs(nil, q)
	for j, gp := range gps {
		if gp == nil {
			continue
		}
		noise := 0.0 // besides the learned noise
		if known := c.v.model.KnownNoise(j); !math.IsNaN(known) {
			noise = known / c.v.model.RunsPerTrial()
		}
		mean, _ := gp.Predict(x)
		var err error
		if gps[j], err = gp.Append(x, mean, noise); err != nil {
			return nil, err
		}
	}
	return gps, nil
}

// learnsNoise reports whether some objective's noise is learned, not known.
func learnsNoise(m *model.Model) bool {
	for j := range m.Problem().Objectives {
		if m.Surrogate(j) != nil && math.IsNaN(m.KnownNoise(j)) {
			return true
		}
	}
	return false
}

// replicate returns the evaluated configuration on the front that is most worth another run, and whether
// it is worth more than the new configuration q. It never is where all noise is known, nor while too little
// speaks for noise in a space of few configurations.
func (c comparison) replicate(ctx context.Context, q space.Point, pending []space.Point) (space.Point, bool, error) {
	if c.v.seeking || !learnsNoise(c.v.model) {
		return nil, false, nil
	}
	again, ok := c.worthRepeating(q, pending)
	if ok && c.choices.isSmall() {
		var err error
		if ok, err = c.showsNoise(ctx); err != nil {
			return nil, false, err
		}
	}
	return again, ok, nil
}

// showsNoise reports whether measurements show noise in some objective. An objective without a pattern looks
// like one with noise. Where most of a small space was tried, trying the others is cheaper than to mistake
// the one for the other, so that only repetitions count that differ.
func (c comparison) showsNoise(ctx context.Context) (bool, error) {
	mostTried := 2*float64(len(c.choices.tried)) > c.v.problem.Space.Cardinality()
	for j := range c.v.problem.Objectives {
		shown, err := c.v.model.ShowsNoise(ctx, j, mostTried)
		if shown || err != nil {
			return shown, err
		}
	}
	return false, nil
}

// worthRepeating returns the evaluated configuration on the front that is most worth another run, given its
// noise as it was learned, and whether it is worth more than the new configuration q.
func (c comparison) worthRepeating(q space.Point, pending []space.Point) (space.Point, bool) {
	list, trials := c.replicable(pending)
	if len(list) == 0 {
		return nil, false
	}
	gps := c.surrogates()
	own, x := c.v.runs([]space.Point{q}, looks)
	best := c.gain(c.v.fronts[0], own[0], c.foresee(gps, x)) * c.worth(q)
	after, err := c.after(q)
	if err != nil {
		return nil, false
	}
	runs, x := c.v.runs(list, looks)
	now := c.foresee(gps, x)
	repeated, certain := c.repeated(now, runs, trials, x, after), now.certain()
	var again space.Point
	for i, known := range list {
		var others [][]float64
		for _, m := range c.v.members {
			if !m.barred && !c.v.sameRun(m.point, known) {
				others = append(others, m.medians)
			}
		}
		front := c.v.view.target(others)
		if gain := (c.gain(front, runs[i], repeated) - c.gain(front, runs[i], certain)) * c.worth(known); gain > best {
			best, again = gain, known
		}
	}
	return again, again != nil
}

// replicable returns the configurations that another run may improve, as they were run, and
// how often they were tried: they are on the front of the medians, were measured with noise and
// are not pending.
func (c comparison) replicable(pending []space.Point) (list []space.Point, trials []int) {
	for _, m := range c.v.members {
		if !m.measured || !m.open || !math.IsInf(m.gain, 1) {
			continue
		}
		q := m.point.Clone()
		if c.v.checkpoint >= 0 && !c.v.perEpoch {
			q = c.v.complete(q)
		}
		same := func(p space.Point) bool { return c.v.sameRun(p, q) }
		if !slices.ContainsFunc(list, same) && !slices.ContainsFunc(pending, same) && c.v.problem.Space.Contains(q) == nil && c.v.problem.Allows(q) {
			list, trials = append(list, q), append(trials, m.trials)
		}
	}
	return list, trials
}
