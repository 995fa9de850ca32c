package model

import (
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest"
)

// A run that diverged says that its configuration is bad, but not how bad: one value of 1000 among values around 1 would be
// all that a surrogate sees. So values beyond a fence are squashed, and what is squashed also counts as noise: one such
// value cannot overrule its neighbours, but many together can. Squashing keeps the order of values.
//
// Values beyond the reference may show the way to the front, and a front may have far ends. So a fence is narrow only where the
// values are more probable with it. Else it keeps off what is beyond all measure.
const (
	// suspicious is how many times as far as others an outlier lies from the best value, and absurd the same of one that
	// needs no other evidence, where there is no bound.
	suspicious, absurd = 8, 50

	// beyondMeasure is how far beyond a bound a value is beyond all measure, in units of the distance of the bound, or of
	// the median if that is worse, from the best value.
	beyondMeasure = 20

	// outlierEvidence is the logarithm of how many times as probable values must be with a narrow fence as with a wide one,
	// for each value that is squashed.
	outlierEvidence = 3
)

// fence is the range of values on a surrogate's scale that count as they are.
type fence struct{ low, high edge }

// edge is one end of a fence. Values beyond it are squashed in units of a scale.
type edge struct{ at, scale float64 }

// noFence holds all values.
var noFence = fence{edge{math.Inf(-1), 1}, edge{math.Inf(1), 1}}

// squash returns the value that stands for z, the derivative of that map, and the variance of the noise that it adds.
func (f fence) squash(z float64) (squashed, slope, doubt float64) {
	e, side := f.high, 1.0
	if z < f.low.at {
		e, side = f.low, -1
	}
	u := f.beyond(z)
	if u == 0 {
		return z, 1, 0
	}
	// The repeated logarithm is finite and increases for all numbers: it is 1.2 at a distance of 10 scales, 4.3 at 1e30.
	inner := math.Log1p(u)
	distance := e.scale * math.Log1p(inner)
	return e.at + side*distance, 1 / ((1 + inner) * (1 + u)), distance * distance
}

// beyond returns how far a value lies beyond the fence, in scales, 0 within.
func (f fence) beyond(z float64) float64 {
	u := math.Max((f.low.at-z)/f.low.scale, (z-f.high.at)/f.high.scale)
	return math.Min(math.Max(u, 0), math.MaxFloat64)
}

// flipped returns the fence of negated values.
func (f fence) flipped() fence {
	return fence{edge{-f.high.at, f.high.scale}, edge{-f.low.at, f.low.scale}}
}

// upper returns the upper edge of a fence, given values in ascending order and their bound, NaN if there is none. width is as
// for [suggest.Attached].
func upper(values []float64, bound, width float64, narrow bool) edge {
	best, worst := values[0], values[len(values)-1]
	attached := func(times float64) float64 {
		return math.Max(values[suggest.Attached(values, width, times)-1], best+width)
	}
	at, limit := attached(suspicious), attached(absurd)
	if !math.IsNaN(bound) {
		at = math.Max(at, bound)
		far := math.Max(bound, values[(len(values)-1)/2])
		limit = far + beyondMeasure*(far-best)
		if narrow {
			at = math.Max(bound, values[len(values)/4])
		}
	}
	if !narrow && worst <= limit || at <= best { // or the values have no scale
		return noFence.high
	}
	return edge{at, at - best}
}

// objectiveFence returns the fence of an objective, given all its values. A narrow one stands where the reference is, or
// closer.
func objectiveFence(o *suggest.Objective, values []float64, narrow bool) (f fence) {
	values = slices.Sorted(slices.Values(values))
	bound := math.NaN()
	if !o.InferReference { // an inferred one follows from the values, and moves with each
		bound = OnScale(o, o.Reference)
	}
	if o.Goal == suggest.Maximize {
		values, bound = negated(values), -bound
	}
	median := values[(len(values)-1)/2]
	width := o.Transform.Width(median)
	spread := width
	if !math.IsNaN(bound) {
		spread = math.Max(spread, math.Abs(bound-median))
	}
	f.low.at, f.low.scale = suggest.TooGood(values, spread)
	first, _ := slices.BinarySearch(values, f.low.at)
	f.high = upper(values[first:], bound, width, narrow)
	if o.Goal == suggest.Maximize {
		return f.flipped()
	}
	return f
}

// constraintFence is objectiveFence for a constraint. What lies far within a bound says no more than what lies far beyond the
// other.
func constraintFence(c *suggest.Constraint, metric *suggest.Objective, values []float64, narrow bool) fence {
	values = slices.Sorted(slices.Values(values))
	width := metric.Transform.Width(values[(len(values)-1)/2])
	side := func(values []float64, sign, bound float64) edge {
		limit := math.NaN()
		if !math.IsInf(bound, 0) {
			limit = sign * OnScale(metric, bound)
		}
		return upper(values[len(values)/4:], limit, width, narrow) // the first may be outliers of the other side
	}
	low := side(negated(values), -1, c.Lower)
	return fence{edge{-low.at, low.scale}, side(values, 1, c.Upper)}
}

// negated returns the negated values in reverse order.
func negated(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[len(out)-1-i] = -v
	}
	return out
}

// fenceOf returns the fence of metric j of a problem, given all its values.
func fenceOf(p *suggest.Problem, j int, metric *suggest.Objective, values []float64, narrow bool) fence {
	n := len(p.Objectives)
	switch {
	case len(values) == 0:
		return noFence
	case j < n:
		return objectiveFence(metric, values, narrow)
	default:
		return constraintFence(&p.Constraints[j-n], metric, values, narrow)
	}
}

// enclose squashes the observations of metric j beyond its fence.
func (f *fitter) enclose(d *observations, j int, narrow bool) {
	d.fence, d.narrow = noFence, narrow
	if !d.deterministic { // else values are exact
		d.fence = fenceOf(f.problem, j, &f.metrics[j], d.y, narrow)
	}
	for i, z := range d.y {
		y, slope, doubt := d.fence.squash(z)
		if doubt == 0 {
			continue
		}
		if d.doubt == nil {
			d.doubt = make([]float64, len(d.y))
		}
		d.y[i], d.doubt[i] = y, doubt
		d.variance[i] *= slope * slope
		d.floor[i] *= slope * slope
		d.logSlope += math.Log(slope)
	}
}

// fenceWith returns the fence of metric j once further evaluations are known.
func (m *Model) fenceWith(j int, more []suggest.Evaluation) fence {
	values := slices.Clone(m.observed[j].Values)
	for i := range more {
		if v := more[i].Values[j]; !math.IsNaN(v) {
			values = append(values, OnScale(&m.metrics[j], v))
		}
	}
	f, further := m.fences[j], fenceOf(m.problem, j, &m.metrics[j], values, false)
	if math.IsInf(f.low.at, 0) {
		f.low = further.low
	}
	if math.IsInf(f.high.at, 0) {
		f.high = further.high
	}
	return f
}

// squashed returns the number of observations beyond the fence.
func (d *observations) squashed() (n int) {
	for _, doubt := range d.doubt {
		if doubt > 0 {
			n++
		}
	}
	return n
}

// IsOutlier reports whether the model takes a measured value of metric j, in its own unit, to say no more than that it is bad,
// or too good to be true, because it lies far beyond the others and the reference.
func (m *Model) IsOutlier(j int, v float64) bool {
	z, _ := latent(&m.metrics[j], v, 0, 1)
	return m.fences[j].beyond(z) > suspicious-1
}

// Counts reports whether a configuration that the model was made of can be on a front: its values are finite, and it
// has no metric in which all its runs are outliers.
func (m *Model) Counts(c *suggest.Configuration) bool {
	return c.Finite() && !m.outlying[c.Evaluations[0]]
}

// outliers returns the configurations, by their first evaluations, with a metric in which all runs are outliers.
func (m *Model) outliers(h *suggest.History) map[int]bool {
	found := make(map[int]bool)
	for _, c := range m.configurations {
		for j := range m.metrics {
			if !slices.ContainsFunc(c.Evaluations, func(k int) bool { return !m.IsOutlier(j, h.Evaluations[k].Values[j]) }) {
				found[c.Evaluations[0]] = true
			}
		}
	}
	return found
}
