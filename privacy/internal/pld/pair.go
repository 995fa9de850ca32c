package pld

import (
	"github.com/dpareto/dpareto/privacy/meter"
)

// Pairs are the dominating pairs of a mechanism (Zhu, Dong and Wang, "Optimal accounting of
// differential privacy via characteristic function", 2022). A pair is two distributions, upper and lower,
// that are at least as easy to tell apart as the outputs on any two adjacent data sets. The privacy loss is
// L = log d(upper)/d(lower) under the upper one; losses of composed mechanisms add up, and
//
//	δ(ε) = E[(1 − e^{ε−L})₊].
//
// There is a pair for each direction in which two data sets can differ, for removing and for adding a
// record, or one pair if it serves both.
type Pairs struct {
	Upper []Pair // dominate the mechanism; at least one
	Lower []Pair // some data sets attain them, which bounds ε from below; may be empty
}

// Attained returns dominating pairs that some data sets attain.
func Attained(pairs ...Pair) Pairs { return Pairs{pairs, pairs} }

// Pair is a dominating pair.
type Pair interface {
	// Normal returns the rate of the cumulants rate·c(c+1) of a pair of two normal
	// distributions; ok is false for other pairs.
	Normal() (rate float64, ok bool)
	// cliff returns a tilt from which E[e^{cL}] grows fast, or +Inf.
	cliff() float64
	// Largest returns the largest loss, or +Inf.
	Largest() float64
	// Unsampled returns μ and ε of a mechanism that is no more private: N(0, 1) against
	// N(μ, 1), and randomised response.
	Unsampled() (mu, epsilon float64)
	// Variation returns δ(0), the total variation distance.
	Variation() float64
	// Single returns the least ε >= 0 with δ(ε) <= e^logDelta for one run, where there
	// is a closed form of it.
	Single(logDelta float64) (epsilon float64, ok bool)
	// truncate returns the pair with its largest losses made infinite, which have a probability
	// of at most e^logTail, so that the moment generating function of what remains grows slowly; or the pair
	// and false where that is not needed.
	truncate(logTail float64) (p Pair, ok bool)
	// infinite returns the probability of an infinite loss, which the quadrature and the grids leave out.
	infinite() float64
	// Nodes returns a quadrature for tilts from 0 to tilt. Panels on which the
	// logarithm of e^{tilt·L} times the density exceeds floor span a range of losses
	// of at most panel. ok is false when that would take too many nodes; n holds those so far.
	Nodes(tilt, floor, panel float64) (n *Nodes, ok bool)
	// Discretise rounds losses to a grid. For side = +1 the discrete pair dominates this one, and
	// for side = −1 it is dominated by it. Losses below bottom, which hardly matter, need not be precise.
	// ok is false when that takes too many points.
	Discretise(step, bottom, side float64, w *meter.Work) (g Grid, ok bool)
}

// RarePair is a Pair of which few losses may be large.
type RarePair interface {
	// BeyondOf returns the losses that are infinite in small, a truncated pair, and not in this one.
	BeyondOf(small Pair) Pair
}
