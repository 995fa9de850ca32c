package tuning

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpareto/dpareto/privacy/internal/profile"
)

// Precision of attacks. For means up to some 30, twice as many nodes raise ε by less than 1e-3 of it.
const (
	attackNodes  = 32 // values of δ that a profile is known at first
	attackRounds = 2  // of refinement around the best attack, each to a quarter of the distance
	attackParts  = 4  // of an interval on which φ′ is integrated

	attackLargest = 700 // ε of a profile, whose e^ε is a float64
)

// attackTail is the share of δ/E[K] that the largest losses may have.
const attackTail = 0.01

// boundedProfile is a profile known from both sides at some δ = e^{−r²}.
type boundedProfile struct {
	at     func(logDelta, side float64) (epsilon float64, ok bool)
	points []boundedPoint // in rising order of r
	width  float64        // distance of r at first
}

// boundedPoint is a value of δ of a profile, and two ε between which the profile attains it.
type boundedPoint struct{ r, delta, low, high float64 }

// newBoundedProfile takes a profile down to the δ least from at, which gives ε from below for side = −1
// and from above for side = +1.
func newBoundedProfile(least float64, at func(logDelta, side float64) (float64, bool)) *boundedProfile {
	zero, furthest := 0.0, math.Sqrt(-math.Log(least))
	positive := furthest
	for range 12 { // between δ with ε = 0 and others
		r := 0.5 * (zero + positive)
		if epsilon, _ := at(-r*r, -1); epsilon > 0 {
			positive = r
		} else {
			zero = r
		}
	}
	p := &boundedProfile{at: at, width: (furthest - positive) / attackNodes}
	for i := range attackNodes + 1 {
		p.add(positive + float64(i)*p.width)
	}
	return p
}

// add adds a point where the profile is known well enough.
func (p *boundedProfile) add(r float64) {
	i, found := slices.BinarySearchFunc(p.points, r, func(q boundedPoint, r float64) int { return cmp.Compare(q.r, r) })
	if found {
		return
	}
	low, ok := p.at(-r*r, -1)
	if !ok || low <= 0 {
		return
	}
	high, ok := p.at(-r*r, 1)
	if !ok || !(high <= attackLargest) {
		return
	}
	point := boundedPoint{r, math.Exp(-r * r), low * (1 - locationMargin), high * (1 + locationMargin)}
	p.points = slices.Insert(p.points, i, point)
}

// refine adds points around r.
func (p *boundedProfile) refine(r, width float64) {
	for k := -4.0; k <= 4; k++ {
		if at := r + k*width; at > 0 {
			p.add(at)
		}
	}
}

// testPoint is a test of two distributions: a set, possibly random, that has the probabilities p.z and
// q.z under them, or what is harder to tell from rounding complements.
type testPoint struct {
	p, q profile.Split
	r    float64         // where the profile gave it
	from *boundedProfile // nil if it needs no profile
}

// swapped returns the test of the distributions in the other order.
func (t testPoint) swapped() testPoint { return testPoint{t.q, t.p, t.r, t.from} }

// complement returns the test of the complement. Rounding may take from the set what q has, and add what p has.
func (t testPoint) complement() testPoint {
	return testPoint{profile.Split{Z: profile.MostRest(t.p.Z), V: t.p.Z}, profile.Split{Z: profile.LeastRest(t.q.Z), V: t.q.Z}, t.r, t.from}
}

// tests returns tests that exist if the profile of two distributions P and Q lies between the bounds. The
// profile g is convex in x = e^ε, and for every slope v there is a set with Q-probability v and the
// P-probability min g(x) + v·x: a sum of tests u, v with u − v·x <= g(x) for all x.
//
// Let v be the fall of the chord from the high ε of one point to the low ε of the next. g falls at
// most as fast beyond, and before at least as fast as the chord from low to high. In between, g is
// above the chords of the neighbouring pairs of points.
func (p *boundedProfile) tests() []testPoint {
	rise := func(from, to float64) float64 { return math.Exp(from) * math.Expm1(to-from) } // of x
	points := p.points
	var tests []testPoint
	for i := 1; i+2 < len(points); i++ {
		a, b, c, d := points[i-1], points[i], points[i+1], points[i+2]
		if !(a.high < b.low && b.high < c.low && c.high < d.low) {
			continue
		}
		v := (b.delta - c.delta) / rise(b.high, c.low)
		most := (a.delta - b.delta) / rise(a.high, b.low)
		least := (c.delta - d.delta) / rise(c.low, d.high)
		before := (b.delta - c.delta) / rise(b.low, c.high)
		if !(least <= v && v <= most && least < most) {
			continue
		}
		// g >= b.delta − most·(x − xb) and g >= c.delta + least·(xc − x), equal at the crossing. Left of it
		// the second with v·x is below its value there, and right of it the first.
		between := rise(b.low, c.low)
		cross := math.Min(between, math.Max(0, (b.delta-c.delta-least*between)/(most-least))) // beyond xb
		inside := math.Min(b.delta*(1-profile.SplitRounding)-most*cross, c.delta+least*(between-cross)) + v*(math.Exp(b.low)+cross)
		left := b.delta + math.Min(v, before)*math.Exp(b.low)
		u := math.Min(inside, left) * (1 - profile.SplitRounding)
		if u > v && u < 1 {
			tests = append(tests, testPoint{profile.Split{Z: u, V: profile.MostRest(u)}, profile.Split{Z: v, V: profile.LeastRest(v)}, 0.5 * (b.r + c.r), p})
		}
	}
	return tests
}

// selectionAttack looks for the best sets S and T. Forward is the profile of (P, Q), and backward of
// (Q, P).
type selectionAttack struct {
	law               runCountDistribution
	delta             float64
	forward, backward *boundedProfile
}

// strongest returns the largest ε found: of all pairs of sets, then of those around the best pair.
func (a selectionAttack) strongest() float64 {
	var best selectionSets
	tests, tops := a.sets()
	for _, t := range tops {
		for _, s := range tests {
			best = a.better(best, t, s)
		}
	}
	width := a.forward.width
	for range attackRounds {
		width /= 4
		for _, set := range []testPoint{best.top, best.next} {
			if set.from != nil {
				set.from.refine(set.r, width)
			}
		}
		tests, tops := a.sets()
		for range 2 { // one set at a time
			for _, s := range tests {
				best = a.better(best, best.top, s)
			}
			for _, t := range tops {
				best = a.better(best, t, best.next)
			}
		}
	}
	return best.epsilon
}

// selectionSets are the sets T and S of an attack, and the ε that they show.
type selectionSets struct {
	epsilon   float64
	top, next testPoint
}

// better returns the better one of two attacks.
func (a selectionAttack) better(best selectionSets, t, s testPoint) selectionSets {
	if epsilon := a.with(t, s); epsilon > best.epsilon {
		return selectionSets{epsilon, t, s}
	}
	return best
}

// sets returns the sets that may be S, and those that may be T.
func (a selectionAttack) sets() (tests, tops []testPoint) {
	tests, tops = a.forward.tests(), []testPoint{{p: profile.Split{Z: 0, V: 1}, q: profile.Split{Z: 0, V: 1}}}
	for _, t := range a.backward.tests() {
		tops = append(tops, t.swapped())
	}
	for _, t := range tests {
		tops = append(tops, t.complement())
	}
	return tests, tops
}

// with returns the ε at δ that the best candidate's being in S shows, where the score ranks the
// outputs in T first, then those in S. It is negative infinity where no score does that.
//
// The three sets exist if their losses fall from S to the rest to T: the corners of what they can
// tell are then the two tests S and not-T, so that all of it is in reach of tests of the pair, and
// a function of its outputs with coins has the distributions of the three (Blackwell).
func (a selectionAttack) with(t, s testPoint) float64 {
	restP, restQ := t.p.V-s.p.Z, t.q.V-s.q.Z
	if restP < 0 || restQ < 0 || s.p.Z*restQ < restP*s.q.Z || restP*t.q.Z < t.p.Z*restQ {
		return math.Inf(-1)
	}
	first := lowerShare(a.law, t.p, s.p.Z) * (1 - countRounding)
	second := upperShare(a.law, t.q, s.q.Z) * (1 + countRounding)
	if !(first > a.delta) {
		return math.Inf(-1)
	}
	return math.Log((first - a.delta) / math.Max(leastShare, second))
}

// leastShare is above the loss of a share by underflow.
const leastShare = 0x1p-1000

// lowerShare bounds φ(z) − φ(z − width) from below, where z is the complement of start: φ′ is convex, so that
// its integral is at least what the midpoint rule gives. The width may be far below the precision of start.
func lowerShare(law runCountDistribution, start profile.Split, width float64) float64 {
	sum := 0.0
	for i := range attackParts {
		value, _ := law.at(start.Further(width*(float64(i)+0.5)/attackParts, 1))
		sum += value
	}
	return sum * width / attackParts
}

// upperShare bounds it from above by the trapezoidal rule.
func upperShare(law runCountDistribution, start profile.Split, width float64) float64 {
	sum := 0.0
	for i := range attackParts + 1 {
		value, _ := law.at(start.Further(width*float64(i)/attackParts, -1))
		if i == 0 || i == attackParts {
			value *= 0.5
		}
		sum += value
	}
	return sum * width / attackParts
}
