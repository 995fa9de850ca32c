package engine

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// surface is the acquisition function of one suggestion: the logarithm of the
// expected hypervolume improvement of a run, over the posterior of the run's
// outcome and of the front that it improves, times the probability that it meets
// the constraints, divided by its cost. As long as no known configuration meets the
// constraints, it is the probability alone: improvements over an empty front would
// lead to where they are large, not to where they are possible.
//
// The front is uncertain because its points were measured with noise, or not yet.
// So the objectives are drawn, jointly, at every configuration that may be on
// it, and the improvement is averaged over the draws. Given a draw, the outcome is
// still Gaussian and its part of the expectation is exact. This is noisy expected
// hypervolume improvement (Daulton, Balandat, Bakshy, "Parallel Bayesian
// optimization of multiple noisy objectives with expected hypervolume
// improvement", NeurIPS 2021), with the outcome integrated analytically.
type surface struct {
	layout
	model     *model.Model
	processes []*surrogate.Conditioned // by metric, nil for a known one
	known     []*relaxed               // by objective, nil for a modelled one
	fronts    []target                 // by draw; the first is of the medians
	view      view                     // of the fronts
	outcomes  [][]float64              // standard normals of drawn outcomes, by objective; nil if nothing is drawn
	members   []member                 // that the fronts consist of
	common    *common                  // with other suggestions

	axis    int      // the only known objective, if runs are valued by trajectory, or -1
	runCost *relaxed // the logarithm of a known cost of runs, or nil

	boldness float64 // factor of the standard deviations of objectives: 1, or more to explore
	seeking  bool    // a configuration that meets the constraints: none is known or expected to
}

// look is the prediction of a run at one checkpoint and, after an evaluation, how the
// acquisition depends on it.
type look struct {
	means    [][]float64         // by metric and draw
	variance []float64           // by metric
	partial  []surrogate.Partial // by metric
	known    []float64           // by objective
	slopes   [][]float64         // by objective and parameter, of known ones

	dMeans    [][]float64 // by metric and draw
	dVariance []float64   // by metric
	dKnown    []float64   // by objective
}

// evaluator evaluates a surface. It has the buffers of one goroutine.
type evaluator struct {
	*surface
	looks         []*look
	x             []float64
	distributions []acquisition.Distribution
	outcome       []float64 // by objective
	costs         []float64
	order         []int
	values        []float64                 // by draw
	parts         [][][]acquisition.Partial // by draw, look and objective
	column        []acquisition.Partial
	dCosts        []float64
	dx            []float64
	before, after []float64 // features
}

func (s *surface) evaluator() *evaluator {
	features := 0
	if f := s.problem.Features; f != nil {
		features = f.Count
	}
	return &evaluator{
		before: make([]float64, features), after: make([]float64, features),
		surface:       s,
		distributions: make([]acquisition.Distribution, len(s.problem.Objectives)),
		outcome:       make([]float64, len(s.problem.Objectives)),
		dx:            make([]float64, s.dim),
	}
}

// pull adds to grad the gradient with respect to the positions of relaxed parameters, given the gradient dx with
// respect to the surrogates' inputs, for a site with the checkpoint parameter at step unless that is 0.
func (v *evaluator) pull(grad, dx []float64, at site, step float64) {
	for j := range grad {
		if v.isRelaxed(j) && v.columns[j] >= 0 {
			grad[j] += dx[v.columns[j]]
		}
	}
	f := v.problem.Features
	if f == nil {
		return
	}
	dx = dx[v.dim-f.Count:]
	q := v.relaxedPoint(at, step)
	for _, j := range f.Parameters {
		p := &v.problem.Space.Parameters[j]
		if !v.isRelaxed(j) || p.Min == p.Max {
			continue
		}
		low, high := math.Max(at.unit[j]-knownStep, 0), math.Min(at.unit[j]+knownStep, 1)
		saved := q[j]
		q[j], _ = continuous(p, low)
		f.Evaluate(v.before, q)
		q[j], _ = continuous(p, high)
		f.Evaluate(v.after, q)
		q[j] = saved
		for k := range dx {
			grad[j] += dx[k] * (v.after[k] - v.before[k]) / (high - low)
		}
	}
}

// prepare makes room for n looks.
func (v *evaluator) prepare(n int) {
	draws := len(v.fronts)
	for len(v.looks) < n {
		l := &look{
			means:     make([][]float64, len(v.processes)),
			variance:  make([]float64, len(v.processes)),
			partial:   make([]surrogate.Partial, len(v.processes)),
			known:     make([]float64, len(v.known)),
			slopes:    make([][]float64, len(v.known)),
			dMeans:    make([][]float64, len(v.processes)),
			dVariance: make([]float64, len(v.processes)),
			dKnown:    make([]float64, len(v.known)),
		}
		for j := range v.processes {
			l.means[j] = make([]float64, draws)
			l.dMeans[j] = make([]float64, draws)
		}
		for j := range v.known {
			l.slopes[j] = make([]float64, len(v.problem.Space.Parameters))
		}
		v.looks = append(v.looks, l)
	}
	for len(v.values) < draws {
		v.values = append(v.values, 0)
		v.parts = append(v.parts, nil)
	}
	for d := range v.parts {
		for len(v.parts[d]) < n {
			v.parts[d] = append(v.parts[d], make([]acquisition.Partial, len(v.problem.Objectives)))
		}
	}
	for len(v.costs) < n {
		v.costs = append(v.costs, 0)
		v.dCosts = append(v.dCosts, 0)
		v.column = append(v.column, acquisition.Partial{})
	}
}

// outlook holds predictions at the looks of runs, by metric; nil for a known one.
type outlook struct {
	draws     int
	means     [][]float64 // by look and draw
	variances [][]float64 // by look
}

func (s *surface) outlook(draws int) outlook {
	return outlook{draws, make([][]float64, len(s.processes)), make([][]float64, len(s.processes))}
}

// predict returns the runs of configurations and the predictions for all of them, which
// together take less time than one by one.
func (s *surface) predict(list []space.Point, n int) ([]run, outlook) {
	runs, x := s.runs(list, n)
	o := s.outlook(len(s.fronts))
	for j, p := range s.processes {
		if p != nil {
			o.means[j], o.variances[j] = make([]float64, len(x)*o.draws), make([]float64, len(x))
			p.PredictBatch(o.means[j], o.variances[j], x)
		}
	}
	return runs, o
}

// load fills the looks at a run, with the modelled metrics from an outlook, and returns
// their number.
func (v *evaluator) load(r run, o outlook) int {
	n := r.looks()
	v.prepare(n)
	for k, l := range v.looks[:n] {
		row := r.first + k
		for j := range o.means {
			if o.means[j] != nil {
				copy(l.means[j], o.means[j][row*o.draws:(row+1)*o.draws])
				l.variance[j] = o.variances[j][row]
			}
		}
		v.lookAtKnown(l, r.at, r.step(k), false)
	}
	return n
}

// value returns the acquisition at a site, averaged over the first draws of the
// front, for a run seen at the given steps (nil for its end alone). Unless grad is nil, it
// receives the gradient with respect to the positions of relaxed parameters.
func (v *evaluator) value(at site, steps []float64, draws int, grad []float64) float64 {
	value := v.evaluate(at, steps, draws, grad != nil)
	if grad != nil {
		v.gradient(grad, at, steps)
	}
	return value
}

// evaluate is value, but leaves the gradient to a later call of gradient.
func (v *evaluator) evaluate(at site, steps []float64, draws int, derivatives bool) float64 {
	n := max(1, len(steps))
	v.prepare(n)
	for k := range n {
		step := 0.0
		if len(steps) > 0 {
			step = steps[k]
		}
		l := v.looks[k]
		v.x = v.encode(v.x, at, step)
		for j, p := range v.processes {
			if p != nil {
				l.variance[j] = p.PredictPartial(&l.partial[j], l.means[j], v.x)
			}
		}
		v.lookAtKnown(l, at, step, derivatives)
	}
	return v.combine(n, draws, derivatives) - v.logCost(at, nil)
}

// gradient stores the gradient of the last evaluation, which was with derivatives, in grad.
func (v *evaluator) gradient(grad []float64, at site, steps []float64) {
	clear(grad)
	for k, l := range v.looks[:max(1, len(steps))] {
		step := 0.0
		if len(steps) > 0 {
			step = steps[k]
		}
		v.chain(grad, l, at, step)
	}
	v.logCost(at, grad)
	for j := range grad {
		if !v.isRelaxed(j) || !v.problem.Space.Active(at.point, j) {
			grad[j] = 0
		}
	}
}

// lookAtKnown stores the known objectives, with slopes if wanted.
func (v *evaluator) lookAtKnown(l *look, at site, step float64, slopes bool) {
	q, unit := at.point, at.unit
	if step != 0 {
		q, unit = q.Clone(), slices.Clone(unit)
		q[v.checkpoint], unit[v.checkpoint] = step, v.problem.Space.Parameters[v.checkpoint].Unit(step)
	}
	for j, k := range v.known {
		if k == nil {
			continue
		}
		if slopes {
			clear(l.slopes[j])
			l.known[j] = k.value(q, unit, l.slopes[j])
		} else {
			l.known[j] = k.value(q, unit, nil)
		}
	}
}

// distribution returns the distribution of objective j at a look, given a draw.
func (v *evaluator) distribution(l *look, j, draw int) acquisition.Distribution {
	if v.known[j] != nil {
		return acquisition.Distribution{Mean: l.known[j]}
	}
	return v.model.Distribution(j, l.means[j][draw], v.boldness*v.boldness*l.variance[j])
}

// combine returns the logarithm of the expected hypervolume improvement of a run with n
// looks and an end that meets the constraints, averaged over draws, and stores its derivatives
// in the looks if wanted. Given a draw, improvement and constraints are independent. Over the
// draws they are not: whether the configurations on the front meet the constraints is drawn,
// too.
func (v *evaluator) combine(n, draws int, derivatives bool) float64 {
	largest := math.Inf(-1)
	for d := range draws {
		v.values[d] = v.logFeasible(v.looks[n-1], d)
		if !v.seeking {
			v.values[d] += v.improvement(v.fronts[d], d, n, derivatives)
		}
		largest = math.Max(largest, v.values[d])
	}
	if math.IsInf(largest, -1) || math.IsNaN(largest) {
		for _, l := range v.looks[:n] {
			l.clear()
		}
		return math.Inf(-1)
	}
	sum := 0.0
	for _, value := range v.values[:draws] {
		sum += math.Exp(value - largest)
	}
	if derivatives {
		for k, l := range v.looks[:n] {
			l.clear()
			for d := range draws {
				weight := math.Exp(v.values[d]-largest) / sum
				if !v.seeking {
					v.add(l, v.parts[d][k], d, weight)
				}
				if k == n-1 {
					v.addFeasible(l, d, weight)
				}
			}
		}
	}
	return largest + math.Log(sum/float64(draws))
}

func (l *look) clear() {
	for j := range l.dMeans {
		clear(l.dMeans[j])
	}
	clear(l.dVariance)
	clear(l.dKnown)
}

// add adds weight times the derivatives of one draw.
func (v *evaluator) add(l *look, parts []acquisition.Partial, draw int, weight float64) {
	if weight == 0 {
		return
	}
	for j, p := range parts {
		if v.known[j] != nil {
			l.dKnown[j] += weight * p.Mean
			continue
		}
		o := &v.problem.Objectives[j]
		sign := 1.0
		if o.Goal == suggest.Maximize && o.Transform != suggest.Log {
			sign = -1
		}
		l.dMeans[j][draw] += weight * sign * p.Mean
		if l.variance[j] > 0 {
			l.dVariance[j] += weight * p.StdDev * v.boldness / (2 * math.Sqrt(l.variance[j]))
		}
	}
}

// byKnownCost returns the first n looks in ascending order of the known objective's
// cost. For a privacy loss, which grows along a run, that is their own order.
func (v *evaluator) byKnownCost(n int) []int {
	v.order = v.order[:0]
	for k := range n {
		v.order = append(v.order, k)
	}
	slices.SortStableFunc(v.order, func(a, b int) int {
		return cmp.Compare(v.looks[a].known[v.axis], v.looks[b].known[v.axis])
	})
	return v.order
}

// improvement returns the logarithm of the expected hypervolume improvement of a front
// by a run, given what a draw says of the run. A run that is looked at several times
// counts as its trajectory where one of two objectives is known, else as its best look.
func (v *evaluator) improvement(front target, draw, n int, derivatives bool) float64 {
	if v.axis >= 0 && n > 1 {
		trail, order := v.distributions[:0], v.byKnownCost(n)
		for i, k := range order {
			v.costs[i] = v.looks[k].known[v.axis]
			trail = append(trail, v.distribution(v.looks[k], 1-v.axis, draw))
		}
		v.distributions = trail
		if !derivatives {
			return acquisition.LogTrajectoryEHVI(front.front, v.axis, v.costs[:n], trail, nil, nil)
		}
		value := acquisition.LogTrajectoryEHVI(front.front, v.axis, v.costs[:n], trail, v.dCosts[:n], v.column[:n])
		for i, k := range order {
			v.parts[draw][k][v.axis] = acquisition.Partial{Mean: v.dCosts[i]}
			v.parts[draw][k][1-v.axis] = v.column[i]
		}
		return value
	}
	best, at := math.Inf(-1), 0
	for k, l := range v.looks[:n] {
		distributions := v.distributions[:0]
		for j := range v.known {
			distributions = append(distributions, v.distribution(l, j, draw))
		}
		v.distributions = distributions
		var parts []acquisition.Partial
		if derivatives {
			parts = v.parts[draw][k]
		}
		if value := front.logExpected(distributions, parts); value > best {
			best, at = value, k
		}
	}
	if derivatives {
		for k := range n {
			if k != at {
				clear(v.parts[draw][k])
			}
		}
	}
	return best
}

// logFeasible returns the logarithm of the probability that a run's end meets the
// constraints, given a draw.
func (v *evaluator) logFeasible(l *look, draw int) float64 {
	sum := 0.0
	for i := range v.problem.Constraints {
		value, _ := v.logMet(l, i, draw)
		sum += value
	}
	return sum
}

// addFeasible adds weight times the derivatives of logFeasible to a look.
func (v *evaluator) addFeasible(l *look, draw int, weight float64) {
	if weight == 0 {
		return
	}
	for i := range v.problem.Constraints {
		j := len(v.problem.Objectives) + i
		_, d := v.logMet(l, i, draw)
		l.dMeans[j][draw] += weight * d.Mean
		if l.variance[j] > 0 {
			l.dVariance[j] += weight * d.StdDev / (2 * math.Sqrt(l.variance[j]))
		}
	}
}

// logMet returns the logarithm of the probability that constraint i is met, given a draw, and
// its derivatives. They are 0 for a known constraint, see suggest.Problem.Allows.
func (v *evaluator) logMet(l *look, i, draw int) (float64, acquisition.Partial) {
	j := len(v.problem.Objectives) + i
	if v.processes[j] == nil {
		return 0, acquisition.Partial{}
	}
	c := &v.problem.Constraints[i]
	return acquisition.LogFeasible(v.model.Distribution(j, l.means[j][draw], l.variance[j]), c.Lower, c.Upper)
}

// logCost returns the logarithm of the cost of a run, and subtracts its gradient from grad unless that is nil.
func (v *evaluator) logCost(at site, grad []float64) float64 {
	switch v.problem.Cost {
	case suggest.CostCheckpoint:
		c := v.problem.CheckpointIndex()
		if !v.isRelaxed(c) {
			return math.Log(at.point[c])
		}
		cost, slope := continuous(&v.problem.Space.Parameters[c], at.unit[c])
		if grad != nil {
			grad[c] -= slope / cost
		}
		return math.Log(cost)
	case suggest.CostMeasured:
		if v.model.RunCost() == nil {
			return 0
		}
		v.x = v.encode(v.x, at, 0)
		if grad == nil {
			mean, _ := v.model.RunCost().Predict(v.x)
			return mean
		}
		spare := make([]float64, v.dim)
		mean, _ := v.model.RunCost().PredictGradient(v.dx, spare, v.x)
		floats.Scale(-1, v.dx)
		v.pull(grad, v.dx, at, 0)
		return mean
	case suggest.CostKnown:
		if grad == nil {
			return v.runCost.value(at.point, at.unit, nil)
		}
		slopes := make([]float64, len(grad))
		cost := v.runCost.value(at.point, at.unit, slopes)
		floats.Sub(grad, slopes)
		return cost
	default:
		return 0
	}
}

// chain adds the part of the gradient of the look at a step to grad, by the chain rule.
func (v *evaluator) chain(grad []float64, l *look, at site, step float64) {
	for m, p := range v.processes {
		if p == nil {
			continue
		}
		if l.dVariance[m] == 0 && !slices.ContainsFunc(l.dMeans[m], func(w float64) bool { return w != 0 }) {
			continue // another checkpoint counts
		}
		l.partial[m].Gradient(v.dx, l.dMeans[m], l.dVariance[m])
		v.pull(grad, v.dx, at, step)
	}
	for m, k := range v.known {
		if k == nil || l.dKnown[m] == 0 {
			continue
		}
		for j := range grad {
			grad[j] += l.dKnown[m] * l.slopes[m][j]
		}
	}
}
