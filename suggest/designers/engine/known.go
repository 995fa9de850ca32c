package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// knownStep is the step of difference quotients of known objectives, in units of
// a parameter's scale. It is long enough for the kinks of a tabulated function
// not to matter.
const knownStep = 1e-3

// relaxed is a known objective made continuous in its integer parameters: over
// the simplex of the Freudenthal triangulation that holds a point, it is the
// linear interpolation of the values at the corners, which are configurations.
// Gradients are with respect to positions on the parameters' scales.
type relaxed struct {
	objective *suggest.Objective
	space     *space.Space
	smooth    []int // Double parameters that matter
	stepped   []int // Integer parameters that matter
}

// relax returns o as a function over s. It finds at the probes which parameters matter.
func relax(o *suggest.Objective, s *space.Space, probes []space.Point) *relaxed {
	r := &relaxed{objective: o, space: s}
	for j := range s.Parameters {
		p := &s.Parameters[j]
		if (p.Kind != space.Double && p.Kind != space.Integer) || p.Count() == 1 {
			continue
		}
		if !slices.ContainsFunc(probes, func(q space.Point) bool { return matters(o, p, q, j) }) {
			continue
		}
		if p.Kind == space.Double {
			r.smooth = append(r.smooth, j)
		} else {
			r.stepped = append(r.stepped, j)
		}
	}
	return r
}

// matters reports whether the objective changes along parameter j from q.
func matters(o *suggest.Objective, p *space.Parameter, q space.Point, j int) bool {
	at := q.Clone()
	base := o.SearchCost(q)
	for _, t := range []float64{0, 0.5, 1} {
		at[j] = p.At(t)
		if o.SearchCost(at) != base {
			return true
		}
	}
	return false
}

// corner is the fractional part of an integer parameter.
type corner struct {
	parameter int
	fraction  float64
	length    float64 // of the step to the next integer, on the scale
}

// value returns the cost at the point with positions t on the scales of the
// numerical parameters and the values of q for all others, and adds its gradient to
// grad unless that is nil. Positions are in [0, 1].
func (r *relaxed) value(q space.Point, t []float64, grad []float64) float64 {
	at := q.Clone()
	var buffer [8]corner
	corners := buffer[:0]
	for _, j := range r.smooth {
		at[j] = r.space.Parameters[j].At(t[j])
	}
	for _, j := range r.stepped {
		p := &r.space.Parameters[j]
		low := p.At(t[j])
		if low > p.Min && (p.Unit(low) > t[j] || low == p.Max) {
			low--
		}
		at[j] = low
		a, b := p.Unit(low), p.Unit(low+1)
		corners = append(corners, corner{j, math.Min(math.Max((t[j]-a)/(b-a), 0), 1), b - a})
	}
	slices.SortStableFunc(corners, func(a, b corner) int { return cmp.Compare(b.fraction, a.fraction) })

	// The first k steps lead to corner k. Its weight is its fraction less the next one.
	value, last := 0.0, 0.0
	for k := range len(corners) + 1 {
		weight := 1.0
		if k > 0 {
			at[corners[k-1].parameter]++
			weight = corners[k-1].fraction
		}
		if k < len(corners) {
			weight -= corners[k].fraction
		}
		if k > 0 && grad == nil && weight == 0 {
			continue
		}
		cost := r.objective.SearchCost(at)
		if weight > 0 {
			value += weight * cost
			if grad != nil {
				r.slopes(at, t, weight, grad)
			}
		}
		if k > 0 && grad != nil {
			if step := cost - last; !math.IsNaN(step) && !math.IsInf(step, 0) {
				grad[corners[k-1].parameter] += step / corners[k-1].length
			}
		}
		last = cost
	}
	return value
}

// slopes adds weight times the slopes along the smooth parameters at a corner to
// grad.
func (r *relaxed) slopes(at space.Point, t []float64, weight float64, grad []float64) {
	for _, j := range r.smooth {
		p := &r.space.Parameters[j]
		up, down := math.Min(t[j]+knownStep, 1), math.Max(t[j]-knownStep, 0)
		saved := at[j]
		at[j] = p.At(up)
		high := r.objective.SearchCost(at)
		at[j] = p.At(down)
		low := r.objective.SearchCost(at)
		at[j] = saved
		if slope := (high - low) / (up - down); !math.IsNaN(slope) && !math.IsInf(slope, 0) {
			grad[j] += weight * slope
		}
	}
}
