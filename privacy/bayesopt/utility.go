package bayesopt

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy"
)

// Utility bounds how far a release is from the best that there is, except with a small probability.
// It is in the unit of the algorithm: standard deviations of the prior for Algorithms 1 and 2, the
// score's own for Algorithm 3.
type Utility struct {
	// Bound of the theorem, with the errors of the paper corrected.
	Bound float64
	// Failure is the probability with which Bound does not hold, at most.
	Failure float64
	// Paper is the bound as published.
	Paper float64
}

// checkTail checks a, the tail of all four theorems: the mechanism's own noise exceeds what the
// bound has for it with a probability of e^{−a} at most.
func checkTail(tail float64) error { return privacy.CheckPositive("tail", tail) }

// CandidateUtility bounds f(λ*) − μ_T(λ̃) (Theorem 2): how far the posterior mean of the released
// candidate is below the largest utility, √β + (2Δ/ε)·(log|Λ| + a), except with a probability of
// δ/3 + e^{−a}. It holds after any search. The candidate's own utility may be lower by another √β.
//
// The paper's bound is 2√β_T + q + (2Δ/ε)·(log|Λ| + a). Its proof says that the largest
// posterior mean is at least the last observation, which is false: observations are shrunk. On the
// event that |μ_T − f| <= √β everywhere, the largest mean is at least f(λ*) − √β, which proves the
// smaller bound, and hence the paper's. It returns the errors of Validate, and a
// privacy.FieldError for a "tail" that is not positive.
func (a Noisy) CandidateUtility(tail float64) (Utility, error) {
	paper, corrected, err := a.both(tail)
	if err != nil {
		return Utility{}, err
	}
	drawn := func(s Scales) float64 {
		return 2 * s.ChoiceSensitivity / a.Epsilon * (math.Log(float64(a.Candidates)) + tail)
	}
	return Utility{
		Bound: math.Sqrt(corrected.Beta) + drawn(corrected), Failure: a.Delta/3 + math.Exp(-tail),
		Paper: 2*math.Sqrt(paper.RegretBeta) + paper.MaximumNoise + drawn(paper),
	}, nil
}

// MaximumUtility bounds |ṽ − f(λ*)| (Theorem 4), for a search by upper confidence bounds:
// σ√(2·log(4T/δ)) + Ω/T + a·b with b the scale of the Laplace noise, except with a probability of
// δ/2 + e^{−a}. The paper leaves out the σ of its first term, √(2·log(2T/δ)), so that its bound
// is too small where σ is above 1, and too large below. Errors are as for CandidateUtility.
func (a Noisy) MaximumUtility(tail float64) (Utility, error) {
	paper, corrected, err := a.both(tail)
	if err != nil {
		return Utility{}, err
	}
	t := float64(a.Evaluations)
	return Utility{
		Bound:   a.Noise*math.Sqrt(2*math.Log(4*t/a.Delta)) + corrected.Regret + tail*corrected.LaplaceScale,
		Failure: a.Delta/2 + math.Exp(-tail),
		Paper:   math.Sqrt(2*math.Log(2*t/a.Delta)) + paper.Regret + tail*paper.LaplaceScale,
	}, nil
}

// both returns the quantities of Algorithm 1 as published and corrected.
func (a Noisy) both(tail float64) (paper, corrected Scales, err error) {
	corrected, err = a.Scales()
	if err = errors.Join(err, checkTail(tail)); err != nil {
		return Scales{}, Scales{}, err
	}
	paper, err = a.Paper()
	return paper, corrected, err
}

// Utility bounds |f̃ − f(λ*)| (Theorem 6), Ω + a(Ω + c)/ε with Ω = A·e^{−2τ/(log 2)^{d/4}}, except
// with a probability of e^{−a} where the regret is as A and τ say. The theorem holds as
// published, but says nothing as long as A and τ are unknown. It returns the errors of Validate,
// and a privacy.FieldError for a "tail" that is not positive.
func (a NoiseFree) Utility(tail float64) (Utility, error) {
	s, err := a.Scales()
	if err = errors.Join(err, checkTail(tail)); err != nil {
		return Utility{}, err
	}
	return Utility{
		Bound: s.Regret + tail*s.LaplaceScale, Failure: math.Exp(-tail),
		Paper: s.Regret + tail*s.Sensitivity/a.Epsilon,
	}, nil
}

// Utility bounds |f̃ − f^BO| (Theorem 8), a·Δ/ε, except with a probability of e^{−a}: the tail of
// Laplace noise, and so attained. The paper's Δ lacks a factor of 2, and has no bound by the range
// of the score. It returns the errors of Validate, and a privacy.FieldError for a "tail" that is
// not positive.
func (a Ridge) Utility(tail float64) (Utility, error) {
	if err := errors.Join(a.Validate(), checkTail(tail)); err != nil {
		return Utility{}, err
	}
	failure := math.Exp(-tail)
	return Utility{Bound: tail * a.LaplaceScale(), Failure: failure, Paper: tail * a.Paper() / a.Epsilon}, nil
}
