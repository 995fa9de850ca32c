package suggest

import (
	"math"

	"github.com/dpareto/dpareto/suggest/space"
)

const (
	// maxRefusals is how many draws in a row may not be allowed until a designer
	// gives up. It fails to find a set of configurations of which a share of 1 in
	// 10,000 is allowed with probability e^-10.
	maxRefusals = 100_000

	// patience is how many draws in a row may not be allowed until those that follow are
	// repaired, where that is possible: up to then the accepted ones keep the law of the
	// draws.
	patience = 64

	// maxRepeats is how many draws of a designer may have been tried before, in
	// a space without doubles, until the first untried point is taken instead.
	maxRepeats = 100
)

// draw returns the first configuration of a sequence of draws that is allowed
// and not in tried, which may be nil. It reports false after too many others.
func (p *Problem) draw(tried pointSet, next func() space.Point) (space.Point, bool) {
	for refusals, repeats := 0, 0; refusals < maxRefusals && repeats < maxRepeats; {
		q := next()
		switch {
		case !p.allowed(q):
			refusals++
			if refusals > patience && p.Repair != nil {
				if q = p.Repair(q); q != nil && p.allowed(q) && !tried.contains(q) {
					return q, true
				}
				repeats++ // it will hardly get better
			}
		case tried.contains(q):
			repeats++
		default:
			return q, true
		}
	}
	return nil, false
}

// firstUntried returns the first allowed and untried point of a space without
// doubles.
func (p *Problem) firstUntried(tried pointSet) (space.Point, bool) {
	if math.IsInf(p.Space.Cardinality(), 1) {
		return nil, false
	}
	refusals := 0
	for q := range points(p.Space) {
		switch {
		case tried.contains(q):
		case p.allowed(q):
			return q, true
		case refusals == maxRefusals:
			return nil, false
		default:
			refusals++
		}
	}
	return nil, false
}
