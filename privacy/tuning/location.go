package tuning

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/composition"
	"github.com/dpareto/dpareto/privacy/internal/profile"
	"github.com/dpareto/dpareto/privacy/internal/runs"
	"github.com/dpareto/dpareto/privacy/meter"
)

// Location is the accountant of repeated selection, [RepeatedSelection], [CappedSelection],
// [PoissonSelection] and [BinomialSelection], from the whole profile δ(ε) of a candidate. It needs no
// Rényi divergence and is nearly tight: for the truncated negative binomial distribution within 2 % of
// what an attack attains on some candidates.
//
// Let φ(z) = E z^K for the number K of candidates, and let the pair (P, Q) dominate a candidate.
// Order its outputs by score, equal scores by coins that belong to the output. Then
//
//	δ(ε) <= ∫ G(e^{ε−ℓ}) dP(ℓ),  G(x) = sup_{0<=u<=1} [φ′(u) − x·φ′(β(u))]₊,
//
// where ℓ = log dP/dQ and β(u) is the least probability under Q of a set that has the
// probability u under P.
//
// Proof. Where an output has mass dp and dp′ on two adjacent data sets, and the outputs up to it
// have u and u′, the best of K has φ′(u)·dp and φ′(u′)·dp′ (outputs with an atom: the mean of φ′
// over what it covers; K = 0 is as likely on both). No test does better against the candidate
// than against the pair, so that u′ >= β(u). Since φ′ does not fall,
// [φ′(u)·dp − e^ε·φ′(u′)·dp′]₊ <= dp·G(e^ε·dp′/dp). G is convex, as the supremum of functions
// [a − bx]₊, so that the sum of these is an f-divergence of the two data sets, and the pair has at
// least as much. ∎
//
// K = 1 gives the candidate's own profile. Nothing is assumed of φ, so that K may also be
// conditioned on being at most a number.
type Location struct {
	// UpperOnly leaves EpsilonLower out, an attack that takes about as long as ε.
	UpperOnly bool
}

// Name returns "location".
func (Location) Name() string { return "location" }

// WithoutLower returns Location with UpperOnly.
func (Location) WithoutLower() privacy.Accountant { return Location{UpperOnly: true} }

// Curve accounts a selection. It takes a tenth of a second for DP-SGD. The errors are m's
// validation error, and an *UnsupportedError for other mechanisms.
func (a Location) Curve(m privacy.Mechanism) (privacy.Curve, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	s, ok := m.(selectionOfRuns)
	if !ok {
		return nil, &privacy.UnsupportedError{Accountant: a.Name(), Mechanism: m.Name(), Reason: "it is not the best of a number of runs"}
	}
	base, times := s.candidate()
	profiles, err := runs.New(base, times)
	if err != nil {
		return nil, err
	}
	return &locationCurve{base: privacy.BaseGuarantee(a, m), profiles: profiles, law: s.law(), upperOnly: a.UpperOnly}, nil
}

// selectionOfRuns is a Mechanism that releases the best of a random number of candidates.
type selectionOfRuns interface {
	privacy.Mechanism
	// candidate returns the mechanism of a candidate, and how often it runs.
	candidate() (base privacy.Mechanism, runs int64)
	// law returns the distribution of the number of candidates.
	law() runCountDistribution
}

// locationCurve is the Curve of Location.
type locationCurve struct {
	base      privacy.Guarantee
	profiles  runs.Profiles
	law       runCountDistribution
	upperOnly bool
}

func (c *locationCurve) CountIn(w *meter.Work) { meter.CountIn(c.profiles.Curve, w) }

// Epsilon composes more than one step by adding ε and δ up. EpsilonLower is the ε that an attack
// on data sets that exist shows, see [Location.Attack].
func (c *locationCurve) Epsilon(steps int64, delta float64) (privacy.Guarantee, error) {
	if err := errors.Join(privacy.CheckSteps(steps), privacy.CheckDelta(delta)); err != nil {
		return privacy.Guarantee{}, err
	}
	g := c.base
	g.Delta, g.Steps = delta, steps
	if steps == 0 {
		return g, nil
	}
	each := delta / float64(steps)
	bounds, err := c.bounds(each)
	if err != nil {
		return privacy.Guarantee{}, err
	}
	for _, bound := range bounds {
		g.Epsilon = math.Max(g.Epsilon, bound.epsilon(each))
	}
	g.Epsilon *= float64(steps)
	if c.profiles.Exact != nil && !c.upperOnly { // the first of the steps shows as much
		g = g.WithLower(c.attack(c.profiles.Exact.LowerDirections(), delta))
	}
	if math.IsInf(g.Epsilon, 1) {
		g = g.Warn(privacy.WarnVacuous, "epsilon is infinite: nothing is guaranteed")
	}
	return g, nil
}

// bounds returns the bounds for both orders of the data sets, one if they agree, which are precise
// down to a δ.
func (c *locationCurve) bounds(least float64) ([]*locationBound, error) {
	rate := profile.LeastDelta
	if tail := locationTail * least / c.law.mean(); tail > rate { // not if it is no number
		rate = tail
	}
	forward, backward, err := c.profiles.Down(rate)
	if err != nil {
		return nil, err
	}
	bounds := []*locationBound{newLocationBound(forward, backward, c.law)}
	if len(c.profiles.Directions) > 1 {
		bounds = append(bounds, newLocationBound(backward, forward, c.law))
	}
	return bounds, nil
}

// locationTail is the share of δ that the candidate's losses beyond the known profile may take.
const locationTail = 1e-4

// Attack returns an ε that the selection m has at δ whenever the outputs of its candidates are
// distributed as the dominating pair of the base and the score is the worst one. So no accountant
// that knows the profile of a candidate, and nothing else of it, proves less. The data sets that
// exist may be harder to tell apart than the pair; the EpsilonLower of a [privacy.Guarantee] is the same
// attack on a pair that some of them attain.
//
// The score ranks a set T of outputs of low loss highest, then a set S of outputs of high loss,
// then the rest. With the generating function φ of the number of candidates the best one lies in S
// with the probability φ(1 − P(T)) − φ(1 − P(T) − P(S)), and the same with Q. The result is 0 where
// no attack is known. The errors are m's validation error, an *UnsupportedError for a mechanism that
// is not a selection, and the FieldErrors of δ.
func (a Location) Attack(m privacy.Mechanism, delta float64) (float64, error) {
	curve, err := a.Curve(m)
	if err != nil {
		return 0, err
	}
	if err := privacy.CheckDelta(delta); err != nil {
		return 0, err
	}
	c := curve.(*locationCurve)
	if c.profiles.Exact == nil {
		return 0, nil
	}
	return c.attack(c.profiles.Exact.UpperDirections(), delta), nil
}

// attack returns the ε of the attack on pairs, 0 if it finds none. All pairs must be attained by the
// same data sets, in either order, or by none. The result is finite.
func (c *locationCurve) attack(pairs []composition.Direction, delta float64) float64 {
	if len(pairs) == 0 || delta == 0 {
		return 0
	}
	least := math.Max(profile.LeastDelta, attackTail*delta/math.Max(1, c.law.mean()))
	var profiles []*boundedProfile
	for _, direction := range pairs {
		quick := direction.Quick()
		profiles = append(profiles, newBoundedProfile(least, func(logDelta, side float64) (float64, bool) {
			return quick.Epsilon(float64(c.profiles.Runs), logDelta, side)
		}))
	}
	epsilon := 0.0
	for i, forward := range profiles {
		a := selectionAttack{law: c.law, delta: delta, forward: forward, backward: profiles[len(profiles)-1-i]}
		epsilon = math.Max(epsilon, a.strongest())
	}
	return epsilon * (1 - locationMargin)
}
