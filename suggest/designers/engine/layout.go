package engine

import (
	"math"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// layout says where the parameters of a problem are among the surrogates' inputs, and at which
// checkpoints a run is looked at.
type layout struct {
	problem    *suggest.Problem
	columns    []int // first surrogates' input of each parameter, −1 for one that features replace
	dim        int   // number of surrogates' inputs
	checkpoint int   // index of the checkpoint parameter, if runs are valued whole, or -1
	perEpoch   bool  // the cost of a run grows with the checkpoint parameter, which is therefore chosen
}

// newLayout returns the layout of a problem. Runs are valued by their ends alone if finalOnly is set.
func newLayout(p *suggest.Problem, finalOnly bool) layout {
	l := layout{problem: p, columns: p.InputColumns(), dim: p.InputDim(), checkpoint: -1, perEpoch: p.Cost != suggest.CostRuns}
	if !finalOnly {
		l.checkpoint = p.CheckpointIndex()
	}
	return l
}

// site is a place at which a surface is evaluated: a configuration whose numerical
// parameters are relaxed to positions on their scales.
type site struct {
	point space.Point
	unit  []float64 // by parameter; positions of doubles and integers
}

// siteAt returns the site of a configuration.
func (l *layout) siteAt(q space.Point) site {
	t := make([]float64, len(q))
	for j := range q {
		if p := &l.problem.Space.Parameters[j]; p.Kind != space.Categorical {
			t[j] = p.Unit(q[j])
		}
	}
	return site{q, t}
}

// isRelaxed reports whether parameter j is moved along its scale continuously.
func (l *layout) isRelaxed(j int) bool {
	k := l.problem.Space.Parameters[j].Kind
	return (k == space.Double || k == space.Integer) && j != l.checkpoint
}

// steps returns the values of the checkpoint parameter at which a run of q is
// looked at, at most n, or nil if it is looked at only once.
func (l *layout) steps(q space.Point, n int) []float64 {
	if l.checkpoint < 0 {
		return nil
	}
	last := q[l.checkpoint]
	if !l.perEpoch {
		last = l.problem.UsefulLength(q)
	}
	return checkpoints(&l.problem.Space.Parameters[l.checkpoint], last, n)
}

// encode writes the surrogate's input of a site to dst, with the checkpoint
// parameter at step unless that is 0.
func (l *layout) encode(dst []float64, at site, step float64) []float64 {
	if l.problem.Features != nil {
		return l.problem.Inputs(dst, l.relaxedPoint(at, step))
	}
	dst = l.problem.Inputs(dst, at.point)
	for j := range at.point {
		if l.isRelaxed(j) && l.problem.Space.Active(at.point, j) {
			dst[l.columns[j]] = at.unit[j]
		}
	}
	if step != 0 {
		dst[l.columns[l.checkpoint]] = l.problem.Space.Parameters[l.checkpoint].Unit(step)
	}
	return dst
}

// relaxedPoint returns the configuration at a site without rounding, with the checkpoint parameter at
// step unless that is 0.
func (l *layout) relaxedPoint(at site, step float64) space.Point {
	q := at.point.Clone()
	for j := range q {
		if l.isRelaxed(j) && l.problem.Space.Active(at.point, j) {
			q[j], _ = continuous(&l.problem.Space.Parameters[j], at.unit[j])
		}
	}
	if step != 0 {
		q[l.checkpoint] = step
	}
	return q
}

// run is a configuration with the places at which its run is looked at.
type run struct {
	at    site
	steps []float64 // nil for its end alone
	first int       // row of its first look among predictions
}

// looks returns the number of looks.
func (r run) looks() int { return max(1, len(r.steps)) }

// runs returns the runs of configurations, each looked at n times at most, and the
// surrogates' inputs at all their looks.
func (l *layout) runs(list []space.Point, n int) (runs []run, x [][]float64) {
	for _, q := range list {
		r := run{l.siteAt(q), l.steps(q, n), len(x)}
		runs = append(runs, r)
		for k := range r.looks() {
			x = append(x, l.encode(nil, r.at, r.step(k)))
		}
	}
	return runs, x
}

// step returns the value of the checkpoint parameter at look k, or 0 at the end alone.
func (r run) step(k int) float64 {
	if r.steps == nil {
		return 0
	}
	return r.steps[k]
}

// complete fills in what follows from a configuration's other parameters: the inactive
// ones, and the length of a run that is valued whole. A run is as long as it is useful, or
// at most that long where epochs are paid for.
func (l *layout) complete(q space.Point) space.Point {
	q = l.problem.Space.Canonical(q.Clone())
	if c := l.checkpoint; c >= 0 {
		if useful := l.problem.UsefulLength(q); !l.perEpoch || q[c] > useful {
			q[c] = useful
		}
	}
	return q
}

// sameRun reports whether two configurations may be states of one run.
func (l *layout) sameRun(a, b space.Point) bool {
	for j := range a {
		if a[j] != b[j] && j != l.checkpoint {
			return false
		}
	}
	return true
}

// continuous returns the value at position t on the scale of a double or integer parameter,
// without rounding, and its slope.
func continuous(p *space.Parameter, t float64) (value, slope float64) {
	if p.Scale == space.Log {
		rate := math.Log(p.Max / p.Min)
		value = p.Min * math.Exp(t*rate)
		return value, value * rate
	}
	return p.Min + t*(p.Max-p.Min), p.Max - p.Min
}

// checkpoints returns at most n values of the checkpoint parameter, from its
// smallest to last, evenly spaced in the logarithm and increasing.
func checkpoints(p *space.Parameter, last float64, n int) []float64 {
	var values []float64
	for k := range n {
		t := last
		if k < n-1 {
			t = math.Round(p.Min * math.Pow(last/p.Min, float64(k)/float64(n-1)))
		}
		if len(values) == 0 || t > values[len(values)-1] {
			values = append(values, t)
		}
	}
	return values
}
