package adaptive

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/internal/profile"
	"github.com/dpareto/dpareto/privacy/internal/runs"
)

// Precision of [ApproximateMu].
const (
	muPrecision = 1e-4 // relative, at which it stops
	muNodes     = 256  // the largest number of values of ε
	// muLeastRoot is the least √log(1/δ) at which ε is looked for. Closer to δ = 1 rounding hides ε.
	muLeastRoot = 1e-5
	muMargin    = 1e-9 // relative, covers rounding errors
	// muLargestEpsilon is the largest ε of the slack for which μ is looked for.
	muLargestEpsilon = 500
)

// ApproximateMu returns a μ so that steps >= 1 runs of m are μ-Gaussian DP but for a probability of
// slack in (0, 1): their profile is
//
//	δ(ε) ≤ slack + (1 − slack)·δ_μ(ε)
//
// for all ε and both orders of the data sets, with δ_μ of Gaussian DP. It is +Inf where ε at slack is
// above 500 or not bounded. The least such μ is at most 1e-4 of it smaller, as far as the profile of
// the most precise accountant is known (see [privacy.Exact] and [privacy.Tightest]). The errors are m's validation
// error, FieldErrors for "mechanism", "steps" and "slack", and the *UnsupportedError of Tightest.
func ApproximateMu(m privacy.Mechanism, steps int64, slack float64) (float64, error) {
	if m == nil {
		return 0, privacy.FieldErrorf("mechanism", "must be set")
	}
	var err error
	if steps < 1 {
		err = privacy.FieldErrorf("steps", "must be at least 1, is %d", steps)
	}
	if !(slack > 0 && slack < 1) {
		err = errors.Join(err, privacy.FieldErrorf("slack", "must be in (0, 1), is %g", slack))
	}
	if err := errors.Join(err, m.Validate()); err != nil {
		return 0, err
	}
	if squared, ok := squaredMu(m); ok {
		return math.Sqrt(float64(steps)*squared) * (1 + muMargin), nil
	}
	profiles, err := runs.New(m, steps)
	if err != nil {
		return 0, err
	}
	mu := 0.0
	for _, direction := range profiles.Directions {
		one, err := approximateMu(direction, slack)
		if err != nil {
			return 0, err
		}
		mu = math.Max(mu, one)
	}
	return mu * (1 + muMargin), nil
}

// squaredMu returns μ² of one run of a valid m, if all parts have a μ of Gaussian DP.
func squaredMu(m privacy.Mechanism) (squared float64, ok bool) {
	for _, p := range privacy.Parts(m) {
		g, ok := p.Mechanism.(privacy.GaussianDPMechanism)
		if !ok {
			return 0, false
		}
		mu := g.GaussianMu()
		squared += float64(p.Count) * mu * mu
	}
	return squared, true
}

// muNode is a point of (δ − slack)/(1 − slack) over ε, at δ = e^{−r²}.
type muNode struct {
	profile.Point

	mu float64 // of Gaussian DP through the point
}

// approximateMu returns the μ of one order of the data sets. Negative ε belong to the other order.
//
// Between two points the profile is below the chord over e^ε. The pair of points whose chord asks
// for the largest μ is split until the points themselves ask for hardly less.
func approximateMu(direction func(logDelta float64) (float64, error), slack float64) (float64, error) {
	at := func(r float64) (muNode, error) {
		epsilon, err := direction(-r * r)
		n := muNode{Point: profile.Point{R: r, Epsilon: epsilon, Delta: math.Max(0, (math.Exp(-r*r)-slack)/(1-slack))}}
		if n.Delta > 0 && epsilon > 0 && epsilon <= muLargestEpsilon {
			n.mu = gaussian.Mu(epsilon, math.Log(n.Delta))
		}
		return n, err
	}
	last, err := at(math.Sqrt(-math.Log(slack)))
	if err != nil {
		return 0, err
	}
	if !(last.Epsilon <= muLargestEpsilon) {
		return math.Inf(1), nil
	}
	if last.Epsilon == 0 {
		return 0, nil
	}
	last.Delta = 0
	nodes := []muNode{{Point: profile.Point{R: 0, Epsilon: 0, Delta: 1}}, last}
	needs := []float64{math.Inf(1)} // of the chords
	for {
		widest := 0
		for i, need := range needs {
			if need > needs[widest] {
				widest = i
			}
		}
		attained := 0.0
		for _, n := range nodes {
			attained = math.Max(attained, n.mu)
		}
		if needs[widest] <= attained*(1+muPrecision) || len(nodes) == muNodes {
			return needs[widest], nil
		}
		a, b := nodes[widest], nodes[widest+1]
		if b.R < 2*muLeastRoot {
			return needs[widest], nil
		}
		mid, err := at(0.5 * (a.R + b.R))
		if err != nil {
			return 0, err
		}
		nodes = slices.Insert(nodes, widest+1, mid)
		needs = slices.Insert(needs, widest, 0)
		needs[widest], needs[widest+1] = muAboveChord(a, mid), muAboveChord(mid, b)
	}
}

// muAboveChord returns the least μ whose profile is above the chord between two points, from above.
func muAboveChord(a, b muNode) float64 {
	if b.Epsilon <= a.Epsilon { // nothing is between them, or ε = 0 only
		return 0
	}
	low := math.Max(a.mu, b.mu)
	if low == 0 {
		low = 1e-9
	}
	high := low
	for !isAboveChord(high, a, b) {
		low, high = high, high*(1+muPrecision/8)+(high-low)*2
		if math.IsInf(high, 1) {
			return high
		}
	}
	for high-low > 0.01*muPrecision*high {
		mid := 0.5 * (low + high)
		if isAboveChord(mid, a, b) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// isAboveChord reports whether the profile of Gaussian DP is nowhere below the chord over e^ε. It is
// convex, with the slope −Φ(−ε/μ − μ/2): it is nearest to the chord where their slopes agree.
func isAboveChord(mu float64, a, b muNode) bool {
	fall := profile.FallBetween(a.Point, b.Point)
	epsilon := -mu * (0.5*mu + distuv.UnitNormal.Quantile(math.Min(1, fall)))
	epsilon = math.Min(math.Max(epsilon, a.Epsilon), b.Epsilon)
	chord := b.Delta + fall*math.Exp(epsilon)*math.Expm1(b.Epsilon-epsilon)
	logDelta, _ := gaussian.Profile(mu, epsilon)
	if epsilon == 0 {
		logDelta = math.Log(math.Erf(mu / (2 * math.Sqrt2)))
	}
	return math.Exp(logDelta) >= chord
}
