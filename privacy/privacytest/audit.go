package privacytest

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mathext"
)

// ErrorProbability is the probability with which a lower bound of ε exceeds ε: the rate of
// false alarms in audits of correct mechanisms.
const ErrorProbability = 1e-6

// Audit is a claim of (ε, δ)-DP and an attack on it.
type Audit struct {
	Epsilon float64 // the claim's ε, > 0
	Delta   float64 // the claim's δ, in [0, 1)
	Runs    int     // runs on each data set, > 0
	// Power is the share of Epsilon that the attack must show, so that an audit that
	// could not fail does; 0 means ½.
	Power float64
	// Event runs the mechanism once, on the first or the second of two neighbouring
	// data sets, and reports whether the output lies in an event. The event should be
	// much more likely on the first.
	Event func(second bool) bool
	// Broken is Event for a mechanism whose ε is far above the claim, such as one
	// with half the noise. The audit must detect it; nil skips that check.
	Broken func(second bool) bool
}

// Check reports an error if the attack shows an ε above the claim, less than Power of the
// claim, or no excess for Broken. Give the mechanism a fixed seed: the result is then always
// the same.
func (a Audit) Check(t testing.TB) {
	t.Helper()
	power := a.Power
	if power == 0 {
		power = 0.5
	}
	lower := EpsilonLower(a.Runs, a.Delta, a.Event)
	t.Logf("claim (%g, %g), audited %g", a.Epsilon, a.Delta, lower)
	if lower > a.Epsilon {
		t.Errorf("epsilon is at least %g, the claim is %g", lower, a.Epsilon)
	}
	if lower < power*a.Epsilon {
		t.Errorf("epsilon is shown to be at least %g only, the claim is %g", lower, a.Epsilon)
	}
	if a.Broken == nil {
		return
	}
	lower = EpsilonLower(a.Runs, a.Delta, a.Broken)
	t.Logf("broken: audited %g", lower)
	if lower <= a.Epsilon {
		t.Errorf("the broken mechanism passes: epsilon is at least %g, the claim is %g", lower, a.Epsilon)
	}
}

// EpsilonLower runs a mechanism runs times on each of two neighbouring data sets and
// returns a lower bound of ε at the given δ, by [LowerBound]. The event is as in
// [Audit].
func EpsilonLower(runs int, delta float64, event func(second bool) bool) float64 {
	var counts [2]int
	for i, second := range []bool{false, true} {
		for range runs {
			if event(second) {
				counts[i]++
			}
		}
	}
	return LowerBound(counts[0], counts[1], runs, delta)
}

// LowerBound returns a value that exceeds ε of a mechanism with probability
// ErrorProbability at most, given how often an event was seen in that many runs on each
// of two neighbouring data sets: log((p − δ)/q), at least 0, with the Clopper-Pearson
// limits p from below on the first and q from above on the second, each of half that
// error (Jagielski, Ullman and Oprea, "Auditing differentially private machine
// learning", 2020). The event must be chosen before the counts are seen.
func LowerBound(first, second, runs int, delta float64) float64 {
	lower, upper := 0.0, 1.0
	if first > 0 {
		lower = betaQuantile(float64(first), float64(runs-first+1), ErrorProbability/2)
	}
	if second < runs {
		upper = betaQuantile(float64(second+1), float64(runs-second), 1-ErrorProbability/2)
	}
	if lower <= delta {
		return 0
	}
	return math.Max(0, math.Log((lower-delta)/upper))
}

// betaQuantile returns the quantile of the beta distribution by bisection: gonum's does not
// converge for some extreme arguments, which would show only as a lack of power.
func betaQuantile(a, b, p float64) float64 {
	lo, hi := 0.0, 1.0
	for {
		mid := lo + (hi-lo)/2
		if mid == lo || mid == hi {
			return mid
		}
		if mathext.RegIncBeta(a, b, mid) < p {
			lo = mid
		} else {
			hi = mid
		}
	}
}
