package restrict

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/space"
)

// Condition restricts the configurations of one request. It does not restrict what a model
// learns from.
type Condition struct {
	// Fixed are values of parameters by their index in the space. To fix a parameter with
	// a condition, fix its parent to a value with which it exists.
	Fixed map[int]float64

	// AtMost are upper bounds.
	AtMost []Limit

	// Price is the cost of a run, in a problem whose runs all cost the same: designers divide
	// the value of a configuration by it (see [suggest.Problem.RunCost]). nil changes nothing.
	Price func(space.Point) float64
}

// Limit is an upper bound of a function of configurations that is known exactly, such as
// a privacy loss.
type Limit struct {
	// Objective is the index of the objective that the function is, or -1.
	Objective int

	// Known and Search are as for an [suggest.Objective], but Search rounds where Known
	// does: it decides which configurations are tried.
	Known  func(space.Point) float64
	Search func(space.Point) float64

	// Upper is the largest value that is allowed.
	Upper float64
}

// Cheap returns the function at q as designers see it, +Inf where it has no value.
func (l *Limit) Cheap(q space.Point) float64 {
	f := l.Search
	if f == nil {
		f = l.Known
	}
	return orInfinite(f(q))
}

// Exact returns the function at q, +Inf where it has no value.
func (l *Limit) Exact(q space.Point) float64 { return orInfinite(l.Known(q)) }

// Value is how the function of a limit is evaluated: [*Limit.Exact] or [*Limit.Cheap].
type Value func(*Limit, space.Point) float64

func orInfinite(v float64) float64 {
	if math.IsNaN(v) {
		return math.Inf(1)
	}
	return v
}

// Limits are bounds that must hold together.
type Limits []Limit

// excess returns the sum over the limits of the excess of the value at q over its bound,
// +Inf where one has no value.
func (l Limits) excess(q space.Point, value Value) float64 {
	sum := 0.0
	for i := range l {
		sum += math.Max(0, value(&l[i], q)-l[i].Upper)
	}
	return sum
}

// Hold reports whether every limit holds at q.
func (l Limits) Hold(q space.Point, value Value) bool {
	for i := range l {
		if !(value(&l[i], q) <= l[i].Upper) {
			return false
		}
	}
	return true
}

// repairBisections bounds the halvings of a step of repair: to a relative precision of
// 1e-9 of a parameter's scale.
const repairBisections = 30

// Repair moves q along one parameter's scale to the nearest point at which the limits hold
// and that p allows otherwise. A hash of q chooses the parameter, so that different points are
// repaired in different ways. Where no parameter suffices alone, the one that helps most goes
// to its end, and another is tried. Repair returns nil if it finds no such point.
//
// Privacy losses fall with the noise and rise with the length of the run and the lot
// size, so that one parameter nearly always suffices. Repair does not assume it: it checks
// the limits at the point that it returns.
func (l Limits) Repair(p *suggest.Problem, q space.Point, value Value) space.Point {
	s := p.Space
	good := func(q space.Point) bool { return l.Hold(q, value) && (p.Allowed == nil || p.Allowed(q)) }
	q = s.Canonical(q.Clone())
	if good(q) {
		return q
	}
	first := int(keyHash(q) % uint64(len(q)))
	for range q {
		best, least := space.Point(nil), l.excess(q, value)
		for i := range q {
			j := (first + i) % len(q)
			parameter := &s.Parameters[j]
			if parameter.Count() == 1 || !s.Active(q, j) || s.IsParent(j) {
				continue
			}
			for _, end := range parameter.Ends() {
				at := q.Clone()
				at[j] = end
				if good(at) {
					return Nearest(parameter, q, at, j, good)
				}
				if excess := l.excess(at, value); excess < least {
					best, least = at, excess
				}
			}
		}
		if best == nil {
			return nil
		}
		q = best
	}
	return nil
}

// Nearest returns a good point between bad and best, which is good and differs from bad in
// parameter j alone: the one nearest to bad, as far as bisection finds it.
func Nearest(p *space.Parameter, bad, best space.Point, j int, good func(space.Point) bool) space.Point {
	if p.Kind == space.Categorical {
		return best
	}
	low, high, worst := p.Unit(bad[j]), p.Unit(best[j]), bad[j]
	for range repairBisections {
		mid := low + (high-low)/2
		at := best.Clone()
		at[j] = p.At(mid)
		switch {
		case at[j] == worst: // known already, as of integers next to each other
			low = mid
		case at[j] == best[j]:
			high = mid
		case good(at):
			best, high = at, mid
		default:
			worst, low = at[j], mid
		}
	}
	return best
}

// keyHash returns a hash of a point.
func keyHash(q space.Point) uint64 {
	h := uint64(len(q))
	for _, v := range q {
		h = sample.Mix(h ^ math.Float64bits(v+0))
	}
	return h
}

// Restrict returns p for the configurations that meet c, by the cheap forms of its
// limits. A limited objective uses its limit as reference: nothing beyond it has value.
func (c *Condition) Restrict(p *suggest.Problem) *suggest.Problem {
	out := *p
	out.Space = &space.Space{Parameters: slices.Clone(p.Space.Parameters)}
	for j, v := range c.Fixed {
		out.Space.Parameters[j].Fixed = &v
	}
	if c.Price != nil && p.Cost == suggest.CostRuns {
		out.Cost, out.RunCost = suggest.CostKnown, c.Price
	}
	if len(c.AtMost) == 0 {
		return &out
	}
	bounds := Limits(c.AtMost)
	out.Allowed = func(q space.Point) bool {
		return (p.Allowed == nil || p.Allowed(q)) && bounds.Hold(q, (*Limit).Cheap)
	}
	unbounded := out
	unbounded.Allowed = p.Allowed
	out.Repair = func(q space.Point) space.Point { return bounds.Repair(&unbounded, q, (*Limit).Cheap) }
	out.Objectives = slices.Clone(p.Objectives)
	for _, l := range bounds {
		if l.Objective < 0 || out.Objectives[l.Objective].Goal != suggest.Minimize {
			continue
		}
		o := &out.Objectives[l.Objective]
		// Only points strictly better than the reference count, and a point at the bound must.
		if reference := math.Nextafter(l.Upper, math.Inf(1)); reference < o.Reference && (o.Transform == suggest.Identity || reference > 0) {
			o.Reference = reference
		}
	}
	return &out
}

// Holds reports whether a configuration meets c exactly.
func (c *Condition) Holds(q space.Point) bool {
	for j, v := range c.Fixed {
		if q[j] != v {
			return false
		}
	}
	return Limits(c.AtMost).Hold(q, (*Limit).Exact)
}

// Within returns d under a condition, with the name and version of d. Fixed parameters are
// no dimensions of the search. Limits hold exactly: where only the stand-in of a limit holds,
// the configuration is moved along one parameter. Suggest returns [suggest.ErrExhausted] if it
// finds no configuration, and panics if the condition names a parameter or objective that the
// problem does not have.
func Within(d suggest.Designer, c Condition) suggest.Designer { return within{d, c} }

type within struct {
	suggest.Designer
	condition Condition
}

// Around returns d under the condition of w.
func (w within) Around(d suggest.Designer) suggest.Designer { return Within(d, w.condition) }

func (w within) Suggest(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
	if err := suggest.Validate(p, h, r); err != nil {
		return nil, err
	}
	conditioned := w.condition.Restrict(p)
	exact := *conditioned
	exact.Allowed = p.Allowed
	bounds := Limits(w.condition.AtMost)
	tried := h.Tried()
	rest := *h
	rest.Pending = slices.Clone(h.Pending)
	out := make([]suggest.Suggestion, 0, r.Count)
	for i := range r.Count {
		one := suggest.Request{Count: 1, Seed: r.Seed, Number: r.Number + int64(i)}
		s, err := w.one(ctx, conditioned, &rest, one)
		if err != nil {
			return out, err
		}
		if !bounds.Hold(s.Point, (*Limit).Exact) {
			q := bounds.Repair(&exact, s.Point, (*Limit).Exact)
			if q == nil || tried.Contains(q) {
				return out, suggest.ErrExhausted
			}
			s.Point, s.Predictions, s.Replicate = q, nil, false
		}
		tried.Add(s.Point)
		rest.Pending = append(rest.Pending, s.Point)
		out = append(out, s)
	}
	return out, nil
}

// one returns one suggestion. A designer without repair, such as a grid, may find none
// where others do.
func (w within) one(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) (suggest.Suggestion, error) {
	suggestions, err := w.Designer.Suggest(ctx, p, h, r)
	if len(suggestions) == 1 && (err == nil || errors.Is(err, suggest.ErrExhausted)) {
		return suggestions[0], nil
	}
	if err == nil {
		err = suggest.ErrExhausted
	}
	return suggest.Suggestion{}, err
}
