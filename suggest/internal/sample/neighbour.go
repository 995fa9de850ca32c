package sample

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/suggest/space"
)

// Steps of local searches, in units of a parameter's scale.
const (
	MinStep   = 1e-3
	StartStep = 0.1
	MaxStep   = 0.3
)

// At returns the point at position u of the parameters' scales, categories
// having equal shares.
func At(s *space.Space, u []float64) space.Point {
	q := make(space.Point, len(u))
	for j, t := range u {
		if p := &s.Parameters[j]; p.Kind == space.Categorical {
			q[j] = p.Value(int(math.Min(math.Floor(t*p.Count()), p.Count()-1)))
		} else {
			q[j] = p.At(t)
		}
	}
	return s.Canonical(q)
}

// Perturb returns q with a random subset of its parameters moved by Gaussian
// steps of standard deviation sd on their scales.
func Perturb(s *space.Space, rng *rand.Rand, q space.Point, sd float64) space.Point {
	q = q.Clone()
	always := rng.IntN(len(q)) // one parameter moves for certain
	for j := range q {
		if j == always || rng.IntN(2) == 0 {
			q[j] = Move(&s.Parameters[j], rng, q[j], sd*rng.NormFloat64())
		}
	}
	return s.Canonical(q)
}

// Move returns the value of a parameter a signed step away on its scale. Steps
// end at the bounds, so that the faces of the space are reached exactly.
// Integers and discretes move by at least one value, and categories to another
// at random.
func Move(p *space.Parameter, rng *rand.Rand, v, step float64) float64 {
	n := p.Count()
	if n == 1 {
		return v
	}
	if p.Kind == space.Categorical {
		other := rng.IntN(int(n) - 1)
		if float64(other) >= v {
			other++
		}
		return float64(other)
	}
	moved := p.At(p.Unit(v) + step)
	if moved != v || p.Kind == space.Double {
		return moved
	}
	neighbour := 1.0
	if step < 0 {
		neighbour = -1
	}
	if p.Kind == space.Integer {
		return math.Min(math.Max(v+neighbour, p.Min), p.Max)
	}
	i := slices.Index(p.Values, v) + int(neighbour)
	return p.Values[min(max(i, 0), len(p.Values)-1)]
}
