package sample

import (
	"math"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

const (
	// maxRefusals is the number of refused draws in a row after which a designer gives
	// up. Where 1 in 10,000 configurations is allowed, it fails with probability e^-10.
	maxRefusals = 100_000

	// patience is the number of refused draws in a row after which draws are repaired,
	// where that is possible. Up to then accepted draws keep their distribution.
	patience = 64

	// maxRepeats is the number of draws that were tried before after which a designer takes
	// the first untried point instead, in a space without doubles.
	maxRepeats = 100
)

// Allowed returns the first draw that is allowed and not in tried, which may be nil. It
// reports false after too many others.
func Allowed(p *suggest.Problem, tried space.Set, next func() space.Point) (space.Point, bool) {
	for refusals, repeats := 0, 0; refusals < maxRefusals && repeats < maxRepeats; {
		q := next()
		switch {
		case !p.Allows(q):
			refusals++
			if refusals > patience && p.Repair != nil {
				if q = p.Repair(q); q != nil && p.Allows(q) && !tried.Contains(q) {
					return q, true
				}
				repeats++ // it will hardly get better
			}
		case tried.Contains(q):
			repeats++
		default:
			return q, true
		}
	}
	return nil, false
}

// FirstUntried returns the first allowed and untried point of a space without
// doubles.
func FirstUntried(p *suggest.Problem, tried space.Set) (space.Point, bool) {
	if math.IsInf(p.Space.Cardinality(), 1) {
		return nil, false
	}
	refusals := 0
	for q := range p.Space.Points() {
		switch {
		case tried.Contains(q):
		case p.Allows(q):
			return q, true
		case refusals == maxRefusals:
			return nil, false
		default:
			refusals++
		}
	}
	return nil, false
}
