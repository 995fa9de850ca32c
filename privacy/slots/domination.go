package slots

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"sync"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/composition"
	"github.com/dpareto/dpareto/privacy/internal/profile"
	"github.com/dpareto/dpareto/privacy/internal/runs"
	"github.com/dpareto/dpareto/privacy/meter"
)

// Precision of [dominator].
const (
	dominatorNodes  = 128      // values of δ at which the profile of the dominating pair is known
	dominatorTail   = 1.0 / 16 // the least δ, over the slack
	dominatorMargin = 1e-9     // relative, covers rounding errors
	largestEpsilon  = 500      // ε of a profile beyond which nothing is compared
)

// dominatorWork bounds the operations for the profile of an access, and for each order of the data sets
// of a slot (see [meter.Work]), to about 0.5 s. DP-SGD of a hundred steps or more mostly takes 0.1 s. Few
// steps with little noise would take ten seconds.
const dominatorWork = 1 << 25

// dominator tests whether a mechanism is no easier to tell apart than the dominating pair of another
// one, which is a number of steps of a mechanism. It is safe for concurrent use.
//
// The profile of the pair bounds δ(ε) from below. It is a convex function of e^ε, so that the lines
// through two of its points lie below it outside of them, and the chords of the other profile lie
// above that one. Both bounds are linear between some values of e^ε: they are compared at these.
type dominator struct {
	losses *composition.Losses
	part   privacy.Part
	slack  float64
	limit  int64 // of the work for each order of the data sets

	once  sync.Once // guards lower
	lower [][]vertex
}

// vertex is a point of a function of e^ε that is linear between vertices.
type vertex struct{ x, delta float64 }

// access is a part that dominators are asked about. It is for one goroutine.
type access struct {
	part       privacy.Part
	work       meter.Work
	directions []func(logDelta float64) (epsilon float64, err error)
}

// newAccess returns an access of a valid mechanism. Its profile remembers its points, which dominators
// of the same slack share.
func newAccess(part privacy.Part) (*access, error) {
	profiles, err := runs.New(part.Mechanism, part.Count)
	if err != nil {
		return nil, err
	}
	a := &access{part: part, work: meter.Work{Limit: dominatorWork}}
	meter.CountIn(profiles.Curve, &a.work)
	for _, direction := range profiles.Directions {
		known := make(map[float64]float64)
		a.directions = append(a.directions, func(logDelta float64) (float64, error) {
			if epsilon, ok := known[logDelta]; ok {
				return epsilon, nil
			}
			epsilon, err := direction(logDelta)
			if err == nil {
				known[logDelta] = epsilon
			}
			return epsilon, err
		})
	}
	return a, nil
}

// newDominator returns the dominator for a pair. A mechanism without one is an *UnsupportedError.
func newDominator(part privacy.Part, slack float64) (*dominator, error) {
	losses, err := privacy.Losses(part.Mechanism)
	if err != nil {
		return nil, err
	}
	return &dominator{losses: losses, part: part, slack: slack, limit: dominatorWork}, nil
}

// dominates reports whether the profile δ(ε) of an access is at most
//
//	slack + (1 − slack)·δ_pair(ε)
//
// for all ε and both orders of the data sets: with a probability of 1 − slack its output is a
// post-processing of the pair. It may say no where hardly anything is missing,
// and does where the profile of the access takes more than dominatorWork.
func (d *dominator) dominates(a *access) (dominates bool, err error) {
	if isWeaker(a.part, d.part) {
		return true, nil
	}
	d.once.Do(d.bound)
	err = meter.UntilStopped(func() (err error) {
		dominates, err = d.isAbove(a)
		return err
	})
	if _, costly := errors.AsType[*meter.LimitError](err); costly {
		return false, nil
	}
	return dominates, err
}

// bound sets the lower bounds.
func (d *dominator) bound() {
	var known []bracket
	for _, direction := range d.losses.UpperDirections() {
		known = append(known, d.bracketOf(direction))
	}
	for i, b := range known {
		d.lower = append(d.lower, b.lowerBound(known[len(known)-1-i]))
	}
}

// isAbove reports whether the lower bounds are above the profile of an access in both orders of the
// data sets.
func (d *dominator) isAbove(a *access) (bool, error) {
	for i := range max(len(a.directions), len(d.lower)) {
		below, err := d.isBelow(a.directions[min(i, len(a.directions)-1)], d.lower[min(i, len(d.lower)-1)])
		if err != nil || !below {
			return false, err
		}
	}
	return true, nil
}

// isWeaker reports whether some runs are a post-processing of others, or have a smaller profile, by
// their parameters alone. Fewer steps forget some outputs; more noise is added to an output; and a
// smaller sampling probability p < q replaces an output with probability 1 − p/q by one without the
// record. For lots of a fixed size the profile is q·δ(1 + (e^ε − 1)/q) with a convex, falling
// δ >= 0, which rises with q, and δ falls with the noise.
func isWeaker(part, than privacy.Part) bool {
	if reflect.DeepEqual(part.Mechanism, than.Mechanism) {
		return part.Count <= than.Count
	}
	switch m := part.Mechanism.(type) {
	case privacy.FixedSizeGaussian:
		n, ok := than.Mechanism.(privacy.FixedSizeGaussian)
		return ok && m.Rate() <= n.Rate() && m.NoiseMultiplier >= n.NoiseMultiplier && part.Count <= than.Count
	case privacy.PoissonGaussian:
		n, ok := than.Mechanism.(privacy.PoissonGaussian)
		return ok && m.Neighbours == n.Neighbours && m.SamplingProbability <= n.SamplingProbability &&
			m.NoiseMultiplier >= n.NoiseMultiplier && part.Count <= than.Count
	default:
		return false
	}
}

// bracket bounds δ(ε): with the same δ, it passes between low and high.
type bracket struct{ low, high []vertex }

// bracketOf returns points of the profile of a pair, without the smallest values of δ if they all take too
// much work: any of them give a lower bound.
func (d *dominator) bracketOf(of composition.Direction) (b bracket) {
	d.losses.CountIn(&meter.Work{Limit: d.limit})
	_ = meter.UntilStopped(func() error {
		d.addPoints(&b, of)
		return nil
	})
	return b
}

// addPoints adds points to a bracket, in falling order of δ.
func (d *dominator) addPoints(b *bracket, of composition.Direction) {
	furthest := math.Sqrt(-math.Log(dominatorTail * d.slack))
	for i := range dominatorNodes {
		r := furthest * float64(i+1) / dominatorNodes
		from, ok := of.Epsilon(float64(d.part.Count), -r*r, -1)
		to, _ := of.Epsilon(float64(d.part.Count), -r*r, 1)
		x := math.Exp(from * (1 - dominatorMargin))
		if !ok || !(from > 0) || !(to <= largestEpsilon) || len(b.low) > 0 && !(x > b.low[len(b.low)-1].x) {
			continue
		}
		b.low = append(b.low, vertex{x, math.Exp(-r * r)})
		b.high = append(b.high, vertex{math.Exp(to * (1 + dominatorMargin)), math.Exp(-r * r)})
	}
}

// lowerBound returns a lower bound of δ(ε), a convex function of e^ε that falls: the larger one of the
// lines through two points on either side. reversed is the other order of the data sets, which knows
// negative ε: δ(−ε) = 1 − e^{−ε}·(1 − δ_reversed(ε)).
func (b bracket) lowerBound(reversed bracket) []vertex {
	low, high := b.low, b.high
	if len(low) < 2 || len(reversed.high) < 2 {
		return nil
	}
	second := reversed.high[1] // the first may have an ε of hardly more than its error
	before := vertex{1 / second.x, 1 - (1-second.delta)/second.x}
	// The function falls, per unit, left of low[k] at least so much,
	left := func(k int) float64 {
		if k+1 == len(low) {
			return 0
		}
		return (low[k].delta - low[k+1].delta) / (high[k+1].x - low[k].x)
	}
	// and right of it at most so much.
	right := func(k int) float64 {
		if k == 0 {
			return (before.delta - low[0].delta) / (low[0].x - before.x)
		}
		if !(low[k].x > high[k-1].x) {
			return math.Inf(1)
		}
		return (low[k-1].delta - low[k].delta) / (low[k].x - high[k-1].x)
	}
	bound := []vertex{{1, math.Min(1, low[0].delta+left(0)*(low[0].x-1))}, low[0]}
	for k := range len(low) - 1 {
		a, b := low[k], low[k+1]
		width, down, up := b.x-a.x, right(k), left(k+1)
		rest := a.delta - (b.delta + up*width) // between the lines at a
		switch {
		case !(rest > 0): // the line from a to b is below the one through b
		case math.IsInf(down, 1):
			bound = append(bound, vertex{a.x, b.delta + up*width})
		case down > up && rest < (down-up)*width:
			at := rest / (down - up)
			bound = append(bound, vertex{a.x + at, a.delta - down*at})
		default: // the line from a to b is below the one through a
		}
		bound = append(bound, b)
	}
	return bound
}

// isBelow reports whether a profile is below a lower bound of the other one.
func (d *dominator) isBelow(direction func(logDelta float64) (float64, error), bound []vertex) (bool, error) {
	if len(bound) == 0 {
		return false, nil
	}
	allowed := func(delta float64) float64 { return d.slack + (1-d.slack)*(1-dominatorMargin)*delta }
	furthest := math.Sqrt(-math.Log(d.slack))
	for _, share := range []float64{0.9, 0.5, 0.2} { // these tell most that are not below
		r := share * furthest
		epsilon, err := direction(-r * r)
		if err != nil || epsilon > 0 && math.Exp(-r*r) > allowed(heightAt(bound, math.Exp(epsilon))) {
			return false, err
		}
	}
	points, err := profile.Points(direction, d.slack*(1-dominatorMargin), dominatorNodes)
	if err != nil {
		return false, err
	}
	var chords []vertex
	for _, p := range profile.LowerHull(points) {
		if p.Epsilon <= largestEpsilon {
			chords = append(chords, vertex{math.Exp(p.Epsilon), p.Delta})
		}
	}
	last := chords[len(chords)-1]
	if last.delta > d.slack {
		return false, nil
	}
	isAbove := func(v vertex) bool { return v.delta > allowed(heightAt(bound, v.x)) }
	isTooLow := func(v vertex) bool { return v.x < last.x && heightAt(chords, v.x) > allowed(v.delta) }
	return !slices.ContainsFunc(chords, isAbove) && !slices.ContainsFunc(bound, isTooLow), nil
}

// heightAt returns a function that is linear between vertices, the smaller value where it jumps, and 0
// beyond the last one.
func heightAt(vertices []vertex, x float64) float64 {
	k, _ := slices.BinarySearchFunc(vertices, x, func(v vertex, x float64) int {
		if v.x <= x {
			return -1
		}
		return 1
	})
	if k == 0 || k == len(vertices) {
		if n := len(vertices); k == n && x == vertices[n-1].x {
			return vertices[n-1].delta
		}
		return 0
	}
	a, b := vertices[k-1], vertices[k]
	return a.delta + (b.delta-a.delta)*(x-a.x)/(b.x-a.x)
}
