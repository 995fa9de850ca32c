package engine

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/space"
)

const (
	// faceShare is the share of candidates' coordinates that are moved to a bound:
	// optima of training's hyperparameters often lie on the faces of the box, which
	// random points never touch.
	faceShare = 0.1

	// maxCorners is the number of roundings of a relaxed optimum that are compared.
	maxCorners = 16
)

// choices are the configurations among which a suggestion is chosen.
type choices struct {
	*layout
	tried  space.Set
	wanted int // number of candidates, see [Options]
}

// exactLength returns q with the length of its run computed exactly, where the search took
// a stand-in.
func (c choices) exactLength(q space.Point) space.Point {
	if c.checkpoint < 0 || c.problem.Space.Parameters[c.checkpoint].Fixed != nil {
		return q
	}
	parameter := &c.problem.Space.Parameters[c.checkpoint]
	exact := q.Clone()
	if !c.perEpoch {
		exact[c.checkpoint] = parameter.Max
	}
	exact[c.checkpoint] = math.Max(float64(c.problem.LastUseful(exact)), parameter.Min)
	if c.open(exact) {
		return exact
	}
	return q
}

// admit is complete, and repairs a configuration that is not allowed where that is
// possible.
func (c choices) admit(q space.Point) space.Point {
	q = c.complete(q)
	if c.problem.Repair == nil || c.problem.Allows(q) {
		return q
	}
	if repaired := c.problem.Repair(q); repaired != nil {
		return c.complete(repaired)
	}
	return q
}

// open reports whether a configuration may be suggested.
func (c choices) open(q space.Point) bool { return !c.tried.Contains(q) && c.allows(q) }

// allows reports whether a configuration is one of the problem.
func (c choices) allows(q space.Point) bool {
	return c.problem.Space.Contains(q) == nil && c.problem.Allows(q)
}

// isSmall reports whether the space has so few configurations that all are candidates.
func (c choices) isSmall() bool {
	return c.problem.Space.Cardinality() <= float64(c.wanted)
}

// candidates returns different configurations, tried ones among them: quasi-random ones and some
// around the centres, or all if the space has few points.
func (c choices) candidates(centres []space.Point, spread int, rng *rand.Rand) []space.Point {
	s := c.problem.Space
	seen := make(space.Set)
	var list []space.Point
	consider := func(q space.Point) {
		q = c.admit(q)
		if !seen.Contains(q) && c.allows(q) {
			seen.Add(q)
			list = append(list, q)
		}
	}
	if c.isSmall() {
		for q := range s.Points() {
			consider(q)
		}
		return list
	}
	sequence := sample.NewHalton(len(s.Parameters), rng.Uint64())
	u := make([]float64, len(s.Parameters))
	for i := range spread {
		sequence.At(u, uint64(i))
		if i%2 == 1 {
			c.toFaces(u, rng)
		}
		consider(sample.At(s, u))
	}
	if len(centres) > 0 {
		for i := range c.wanted / 2 {
			sd := sample.MinStep * math.Exp(rng.Float64()*math.Log(sample.MaxStep/sample.MinStep))
			consider(sample.Perturb(s, rng, centres[i%len(centres)], sd))
		}
	}
	return list
}

// toFaces moves a random share of positions to the nearer end of their scales.
func (c choices) toFaces(u []float64, rng *rand.Rand) {
	for j := range u {
		if c.problem.Space.Parameters[j].Kind != space.Categorical && rng.Float64() < faceShare {
			u[j] = math.Round(u[j])
		}
	}
}

// roundings returns the configurations around a relaxed point: all combinations of
// the two integers next to each position, or only the nearest if they are too
// many.
func (c choices) roundings(q space.Point, moving []int, x []float64) []space.Point {
	base := q.Clone()
	type choice struct {
		parameter int
		other     float64
	}
	var others []choice
	for i, j := range moving {
		p := &c.problem.Space.Parameters[j]
		base[j] = p.At(x[i])
		if p.Kind != space.Integer {
			continue
		}
		other := base[j] + 1
		if p.Unit(base[j]) > x[i] {
			other = base[j] - 1
		}
		if other >= p.Min && other <= p.Max {
			others = append(others, choice{j, other})
		}
	}
	if 1<<len(others) > maxCorners {
		others = nil
	}
	list := make([]space.Point, 0, 1<<len(others))
	for mask := range 1 << len(others) {
		r := base.Clone()
		for b, o := range others {
			if mask>>b&1 == 1 {
				r[o.parameter] = o.other
			}
		}
		list = append(list, r)
	}
	return list
}

// fillings are the positions at which parameters are tried that a change of category
// brings into existence.
var fillings = []float64{1.0 / 6, 0.5, 5.0 / 6}

// entered returns completions of q, which differs from old in one parameter, with several
// values for the numerical parameters that exist only now.
func (c choices) entered(q, old space.Point) []space.Point {
	var born []int
	s := c.problem.Space
	for j := range s.Parameters {
		if s.Parameters[j].Kind != space.Categorical && s.Active(q, j) && !s.Active(old, j) {
			born = append(born, j)
		}
	}
	list := []space.Point{c.complete(q)}
	if len(born) == 0 {
		return list
	}
	for _, t := range fillings {
		r := q.Clone()
		for _, j := range born {
			r[j] = s.Parameters[j].At(t)
		}
		list = append(list, c.complete(r))
	}
	return list
}

// neighbours returns other values to try: all other categories, or the integers or discretes
// next to v and some farther ones in both directions.
func neighbours(p *space.Parameter, v float64) []float64 {
	switch p.Kind {
	case space.Categorical:
		var others []float64
		for i := range p.Choices {
			if float64(i) != v {
				others = append(others, float64(i))
			}
		}
		return others
	case space.Integer:
		var others []float64
		for _, w := range []float64{v - 1, v + 1, math.Round(0.5 * v), math.Round(0.8 * v), math.Round(1.25 * v), math.Round(2 * v)} {
			if w = math.Min(math.Max(w, p.Min), p.Max); w != v && !slices.Contains(others, w) {
				others = append(others, w)
			}
		}
		return others
	case space.Discrete:
		i, n := slices.Index(p.Values, v), len(p.Values)
		var others []float64
		for _, k := range []int{i - 1, i + 1, i - n/4, i + n/4} {
			if w := p.Values[min(max(k, 0), n-1)]; w != v && !slices.Contains(others, w) {
				others = append(others, w)
			}
		}
		return others
	default:
		return nil
	}
}
