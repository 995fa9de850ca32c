package suggest

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest/space"
)

// Condition restricts the configurations of one request. What the model learns from is
// not restricted: it knows the whole study.
type Condition struct {
	// Fixed are values of parameters by their index in the space. A parameter with a
	// condition exists only where its parent has one of its values: that must be fixed,
	// too.
	Fixed map[int]float64

	// AtMost are upper bounds.
	AtMost []Limit
}

// Limit is an upper bound of a function of configurations that is known exactly, such as
// a privacy loss.
type Limit struct {
	// Objective is the index of the objective that the function is, or -1.
	Objective int

	// Known and Search are as for an [Objective], but Search rounds what Known does: it
	// decides which configurations are tried.
	Known  func(space.Point) float64
	Search func(space.Point) float64

	// Upper is the largest value that is allowed.
	Upper float64
}

// cheap returns the function at q as designers see it, +Inf where it has no value.
func (l *Limit) cheap(q space.Point) float64 {
	f := l.Search
	if f == nil {
		f = l.Known
	}
	return orInfinite(f(q))
}

// exact returns the function at q, +Inf where it has no value.
func (l *Limit) exact(q space.Point) float64 { return orInfinite(l.Known(q)) }

func orInfinite(v float64) float64 {
	if math.IsNaN(v) {
		return math.Inf(1)
	}
	return v
}

// limits are bounds that must hold together.
type limits []Limit

// excess returns by how much the limits are exceeded at q: the sum over the limits of
// the part of the value above its bound, 0 where all hold. +Inf where one has no value.
func (l limits) excess(q space.Point, value func(*Limit, space.Point) float64) float64 {
	sum := 0.0
	for i := range l {
		sum += math.Max(0, value(&l[i], q)-l[i].Upper)
	}
	return sum
}

// hold reports whether every limit holds at q.
func (l limits) hold(q space.Point, value func(*Limit, space.Point) float64) bool {
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

// repair returns the configuration nearest to q along one parameter's scale at which the
// limits hold and that p allows otherwise; which parameter is up to q, so that different
// points are repaired in different ways. Where no parameter suffices alone, the one that
// helps most goes to its end, and another is tried. It returns nil where none is found.
//
// Privacy losses fall with the noise and rise with the length of the run and the lot
// size, so that one parameter nearly always suffices. No such thing is assumed: the limits
// are known to hold at what is returned.
func (l limits) repair(p *Problem, q space.Point, value func(*Limit, space.Point) float64) space.Point {
	s := p.Space
	good := func(q space.Point) bool { return l.hold(q, value) && (p.Allowed == nil || p.Allowed(q)) }
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
			for _, end := range ends(parameter) {
				at := q.Clone()
				at[j] = end
				if good(at) {
					return l.nearest(parameter, q, at, j, good)
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

// ends returns the values of a parameter between which all others lie.
func ends(p *space.Parameter) []float64 {
	switch p.Kind {
	case space.Categorical:
		values := make([]float64, len(p.Choices))
		for i := range values {
			values[i] = float64(i)
		}
		return values
	default:
		return []float64{p.At(0), p.At(1)}
	}
}

// nearest returns the point between bad and good, which differ in parameter j, that is
// nearest to bad and good, as far as bisection finds it.
func (limits) nearest(p *space.Parameter, bad, best space.Point, j int, good func(space.Point) bool) space.Point {
	if p.Kind == space.Categorical {
		return best
	}
	low, high := p.Unit(bad[j]), p.Unit(best[j])
	for range repairBisections {
		mid := low + (high-low)/2
		at := best.Clone()
		at[j] = p.At(mid)
		if good(at) {
			best, high = at, mid
		} else {
			low = mid
		}
	}
	return best
}

// keyHash returns a hash of a point.
func keyHash(q space.Point) uint64 {
	h := uint64(len(q))
	for _, v := range q {
		h = mix(h ^ math.Float64bits(v+0))
	}
	return h
}

// conditioned returns p for the configurations that meet c, by the cheap forms of its
// limits. An objective with a limit gets it for its reference: nothing beyond it is worth
// anything.
func (p *Problem) conditioned(c Condition) *Problem {
	out := *p
	out.Space = &space.Space{Parameters: slices.Clone(p.Space.Parameters)}
	for j, v := range c.Fixed {
		out.Space.Parameters[j].Fixed = &v
	}
	if len(c.AtMost) == 0 {
		return &out
	}
	bounds := limits(c.AtMost)
	out.Allowed = func(q space.Point) bool {
		return (p.Allowed == nil || p.Allowed(q)) && bounds.hold(q, (*Limit).cheap)
	}
	unbounded := out
	unbounded.Allowed = p.Allowed
	out.Repair = func(q space.Point) space.Point { return bounds.repair(&unbounded, q, (*Limit).cheap) }
	out.Objectives = slices.Clone(p.Objectives)
	for _, l := range bounds {
		if l.Objective < 0 || out.Objectives[l.Objective].Goal != Minimize {
			continue
		}
		o := &out.Objectives[l.Objective]
		// Points count that are strictly better than the reference: one at the bound, too.
		if reference := math.Nextafter(l.Upper, math.Inf(1)); reference < o.Reference && (o.Transform == Identity || reference > 0) {
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
	return limits(c.AtMost).hold(q, (*Limit).exact)
}

// Within returns a designer that makes the suggestions of d that meet a condition, with
// the name and version of d. Fixed parameters are no dimensions of its search, and limits
// are met exactly: a configuration that only a stand-in lets pass is moved to where the
// limit holds, along one parameter. Where no configuration is found it returns
// [ErrExhausted].
//
// A condition that names a parameter or objective that p does not have makes it panic.
func Within(d Designer, c Condition) Designer { return within{d, c} }

type within struct {
	Designer
	condition Condition
}

// Around returns d under the condition of w.
func (w within) Around(d Designer) Designer { return Within(d, w.condition) }

func (w within) Suggest(ctx context.Context, p *Problem, h *History, r Request) ([]Suggestion, error) {
	if err := validate(p, h, r); err != nil {
		return nil, err
	}
	conditioned := p.conditioned(w.condition)
	exact := *conditioned
	exact.Allowed = p.Allowed
	bounds := limits(w.condition.AtMost)
	tried := h.tried()
	rest := *h
	rest.Pending = slices.Clone(h.Pending)
	out := make([]Suggestion, 0, r.Count)
	for i := range r.Count {
		one := Request{Count: 1, Seed: r.Seed, Number: r.Number + int64(i)}
		s, err := w.one(ctx, conditioned, &rest, one)
		if err != nil {
			return out, err
		}
		if !bounds.hold(s.Point, (*Limit).exact) {
			q := bounds.repair(&exact, s.Point, (*Limit).exact)
			if q == nil || tried.contains(q) {
				return out, ErrExhausted
			}
			s.Point, s.Predictions, s.Replicate = q, nil, false
		}
		tried.add(s.Point)
		rest.Pending = append(rest.Pending, s.Point)
		out = append(out, s)
	}
	return out, nil
}

// one returns one suggestion. A designer that repairs nothing, as a grid does not, may
// find none where others do: that is for it to say.
func (w within) one(ctx context.Context, p *Problem, h *History, r Request) (Suggestion, error) {
	suggestions, err := w.Designer.Suggest(ctx, p, h, r)
	if len(suggestions) == 1 && (err == nil || errors.Is(err, ErrExhausted)) {
		return suggestions[0], nil
	}
	if err == nil {
		err = ErrExhausted
	}
	return Suggestion{}, err
}
