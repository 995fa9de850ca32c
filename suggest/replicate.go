package suggest

import (
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// A trial of a configuration that is on the front already moves its median by a
// Gaussian whose variance is what the trial takes off the posterior variance there, of
// which that counts which a trial of the new configuration would not take off as well: one
// next to it tells as much of it.
// Where the noise is known that holds of all new configurations near the front, which may
// improve it besides, so that none is tried again.
// The value of the trial is the expected hypervolume improvement with this variance
// over the front without the configuration, less the improvement that its median
// makes for certain. It vanishes as the noise does. A new configuration is worth its
// expected improvement over the front of the medians, with all of its variance: more
// than its first trial can show, in favour of what has not been tried.

// foresee returns the predictions of the objectives' surrogates.
func (v *visitor) foresee(gps []*surrogate.GP, x [][]float64) outlook {
	o := v.outlook(1)
	for j := range v.problem.Objectives {
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
func (v *visitor) gain(front target, r run, o outlook) float64 {
	return math.Exp(v.improvement(front, 0, v.load(r, o), false))
}

// told returns the outlook on the medians of runs after one more trial of each, after the
// given numbers of them; now is the outlook at the looks x of the runs without it. The
// variances are of how far the medians move: what is left of now's after the trial of
// another configuration, which the surrogates after know, less what would be left of them
// after the run's own.
func (v *visitor) told(now outlook, runs []run, trials []int, x [][]float64, after []*surrogate.GP) outlook {
	told := v.foresee(after, x)
	told.means = now.means
	for j, variances := range told.variances {
		for i, r := range runs {
			for k := r.first; k < r.first+r.looks() && variances != nil; k++ {
				if variance := now.variances[j][k]; variance > 0 {
					variances[k] = math.Max(0, variances[k]-1/(1/variance+v.model.information(j, x[k], trials[i])))
				} else {
					variances[k] = 0
				}
			}
		}
	}
	return told
}

// worth returns the probability that a run of q meets the constraints, divided by what
// it costs.
func (v *visitor) worth(q space.Point) float64 {
	at := v.siteAt(q)
	sum := -v.logCost(at, nil)
	for i := range v.problem.Constraints {
		c := &v.problem.Constraints[i]
		j := len(v.problem.Objectives) + i
		if gp := v.model.gps[j]; gp != nil {
			v.x = v.encode(v.x, at, 0)
			p, _ := acquisition.LogFeasible(v.model.metrics[j].law(gp.Predict(v.x)), c.Lower, c.Upper)
			sum += p
		}
	}
	return math.Exp(sum)
}

// information returns the precision that one more trial at the encoded point x adds to
// the given number of them. Where the noise of runs is known, what the surrogate
// learned beyond it is a misfit that repetition does not average out.
func (m *Model) information(j int, x []float64, trials int) float64 {
	noise, misfit := m.gps[j].Noise(x), 0.0
	if known := m.knownNoise[j]; !math.IsNaN(known) {
		noise, misfit = known, noise
	}
	noise /= m.runsPerTrial
	return 1/(noise/float64(trials+1)+misfit) - 1/(noise/float64(trials)+misfit)
}

// after returns the surrogates after a trial of q that measures what they predict.
func (m *Model) after(q space.Point) ([]*surrogate.GP, error) {
	gps := slices.Clone(m.gps)
	x := m.problem.Space.Encode(nil, q)
	for j, gp := range m.gps {
		if gp == nil {
			continue
		}
		noise := 0.0 // besides what was learned
		if known := m.knownNoise[j]; !math.IsNaN(known) {
			noise = known / m.runsPerTrial
		}
		mean, _ := gp.Predict(x)
		var err error
		if gps[j], err = gp.Append(x, mean, noise); err != nil {
			return nil, err
		}
	}
	return gps, nil
}

// learnsNoise reports whether the size of some objective's noise is not known.
func (m *Model) learnsNoise() bool {
	for j := range m.problem.Objectives {
		if m.gps[j] != nil && math.IsNaN(m.knownNoise[j]) {
			return true
		}
	}
	return false
}

// replicate returns the evaluated configuration on the front that it is most
// worth to run again, and whether that is worth more than the new configuration q. It never
// is where all noise is known.
func (e *explorer) replicate(q space.Point, pending []space.Point) (space.Point, bool) {
	if e.seeking || !e.model.learnsNoise() {
		return nil, false
	}
	list, trials := e.replicable(pending)
	if len(list) == 0 {
		return nil, false
	}
	v := e.visitor()
	own, x := v.runs([]space.Point{q}, looks)
	best := v.gain(e.fronts[0], own[0], v.foresee(e.model.gps, x)) * v.worth(q)
	after, err := e.model.after(q)
	if err != nil {
		return nil, false
	}
	runs, x := v.runs(list, looks)
	now := v.foresee(e.model.gps, x)
	told, certain := v.told(now, runs, trials, x, after), now.certain()
	var again space.Point
	for i, c := range list {
		var others [][]float64
		for _, m := range e.members {
			if !m.barred && !e.sameRun(m.point, c) {
				others = append(others, m.medians)
			}
		}
		front := e.target(others)
		if gain := (v.gain(front, runs[i], told) - v.gain(front, runs[i], certain)) * v.worth(c); gain > best {
			best, again = gain, c
		}
	}
	return again, again != nil
}

// sameRun reports whether two configurations may be states of one run.
func (e *explorer) sameRun(a, b space.Point) bool {
	for j := range a {
		if a[j] != b[j] && j != e.checkpoint {
			return false
		}
	}
	return true
}

// replicable returns the configurations, as they were run, that are on the front of
// the medians, were measured with noise and are not pending, and how often they were tried.
func (e *explorer) replicable(pending []space.Point) (list []space.Point, trials []int) {
	for _, m := range e.members {
		if !m.measured || !m.open || !math.IsInf(m.gain, 1) {
			continue
		}
		q := m.point.Clone()
		if e.checkpoint >= 0 && !e.perEpoch {
			q = e.complete(q)
		}
		same := func(p space.Point) bool { return e.sameRun(p, q) }
		if !slices.ContainsFunc(list, same) && !slices.ContainsFunc(pending, same) && e.problem.Space.Contains(q) == nil && e.problem.allowed(q) {
			list, trials = append(list, q), append(trials, m.trials)
		}
	}
	return list, trials
}
