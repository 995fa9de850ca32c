package bayesopt

import (
	"errors"
	"fmt"
	"math"

	"github.com/dpareto/dpareto/privacy"
)

// Conditional states the meaning of the ε of Algorithms 1 and 2.
const Conditional = "conditional on Assumption 1 (the utilities of all data sets are one draw from a Gaussian process with the stated kernels k1 and k2, over finitely many candidates): " +
	"not differential privacy in the worst case; validation set only"

// Protects says which records the statements of this package protect.
const Protects = "records of the validation set, one of which is replaced"

// Statement is what Algorithm 1 or 2 claims of one release.
type Statement struct {
	// Epsilon and Delta of the release. Two releases of one run have twice these.
	Epsilon, Delta float64
	// Condition is [Conditional], without which the statement does not hold.
	Condition string
	// Protects is [Protects].
	Protects string
	// Assumptions are further sentences that must be true.
	Assumptions []privacy.Assumption
	// NotCovered lists the limits of the statement.
	NotCovered []string
}

// notCovered is what all three algorithms leave out.
func notCovered() []string {
	return []string{
		"records of the training set, which is taken to be public",
		"the candidates that were evaluated and their utilities, which must stay secret",
	}
}

// Noisy is Algorithm 1: Bayesian optimisation by upper confidence bounds over finitely many
// candidates, with observation noise.
type Noisy struct {
	// Candidates is |Λ| >= 1.
	Candidates int64
	// Evaluations is T >= 1.
	Evaluations int64
	// Epsilon, at least 2⁻³⁰, and Delta, in (0, 1), hold for each of the two releases: a
	// candidate, and the best utility.
	Epsilon, Delta float64
	// Noise is σ > 0, the standard deviation of the observation noise.
	Noise float64
	// Correlation is the least k_1 of two data sets that differ in one record, in [0, 1].
	Correlation float64
	// Difference bounds how far one record moves the noise-free utility of any candidate: for
	// an accuracy on m records 1/m, in standard deviations of the prior. It replaces the bound
	// that follows from Correlation if it is smaller. 0 means that no bound is known.
	Difference float64
	// InformationGain is an upper bound on γ_T >= 0, as [BoundInformationGain] returns it.
	InformationGain float64
}

// Validate reports the fields "candidates", "evaluations", "epsilon", "delta", "noise",
// "correlation", "difference" and "information_gain" as privacy.FieldErrors.
func (a Noisy) Validate() error {
	errs := []error{
		checkCount("candidates", a.Candidates), checkCount("evaluations", a.Evaluations),
		checkEpsilon(a.Epsilon), privacy.CheckDelta(a.Delta), privacy.CheckPositive("noise", a.Noise), checkCorrelation(a.Correlation),
	}
	for field, x := range map[string]float64{"difference": a.Difference, "information_gain": a.InformationGain} {
		if !(x >= 0) || math.IsInf(x, 1) {
			errs = append(errs, privacy.FieldErrorf(field, "must be finite and not negative, is %g", x))
		}
	}
	return errors.Join(errs...)
}

// Scales are the quantities of Algorithm 1, in standard deviations of the prior.
type Scales struct {
	// Beta is β of the bound |μ_T − f| <= √β.
	Beta float64
	// ChoiceDistance is c, the bound on |f − f′| for neighbouring data sets.
	ChoiceDistance float64
	// ChoiceSensitivity is 2√β + c, of the posterior means.
	ChoiceSensitivity float64

	// RegretBeta is β_T of the upper confidence bounds.
	RegretBeta float64
	// C1 is 8/log(1 + σ⁻²).
	C1 float64
	// Regret is Ω/T = √(C1·T·β_T·γ_T)/T, the bound on the average regret.
	Regret float64
	// MaximumDistance is c as it enters the sensitivity of the maximum.
	MaximumDistance float64
	// MaximumNoise is q, the bound on the difference by observation noise.
	MaximumNoise float64
	// MaximumSensitivity is Ω/T + c + q, of the largest observation.
	MaximumSensitivity float64
	// LaplaceScale is MaximumSensitivity/ε.
	LaplaceScale float64
}

// Paper returns the quantities as Algorithm 1 has them, without Difference. They do not add up
// to δ: Theorem 1 spends δ/2 + δ/2 + δ/3 and Theorem 3 four times δ/3, and q is the tail of
// one variable instead of the largest of 2T. It returns the errors of Validate.
func (a Noisy) Paper() (Scales, error) {
	if err := a.Validate(); err != nil {
		return Scales{}, err
	}
	a.Difference = 0
	c := a.distance(3)
	q := a.Noise * math.Sqrt(4*math.Log(3/a.Delta))
	return a.scales(a.regretBeta(a.Evaluations+1, a.Delta/2), c, a.regretBeta(a.Evaluations, a.Delta/2), c, q), nil
}

// Scales returns the quantities with the errors of the paper corrected. The sensitivity of the
// posterior means fails with three events of probability δ/3: β is for a single time,
// 2·log(3|Λ|/δ). The sensitivity of the maximum fails with four events of probability δ/4, two
// of which are regrets, and q = 2σ·√(2·log(8T/δ)) is twice the bound on all 2T noise
// variables. It returns the errors of Validate.
func (a Noisy) Scales() (Scales, error) {
	if err := a.Validate(); err != nil {
		return Scales{}, err
	}
	beta := 2 * math.Log(3*float64(a.Candidates)/a.Delta)
	return a.scales(beta, a.distance(3), a.regretBeta(a.Evaluations, a.Delta/4), a.distance(4), a.largestNoise(a.Delta/4)), nil
}

func (a Noisy) scales(beta, choiceDistance, regretBeta, maximumDistance, q float64) Scales {
	s := Scales{
		Beta: beta, ChoiceDistance: choiceDistance, ChoiceSensitivity: 2*math.Sqrt(beta) + choiceDistance,
		RegretBeta: regretBeta, C1: 8 / math.Log1p(1/(a.Noise*a.Noise)),
		MaximumDistance: maximumDistance, MaximumNoise: q,
	}
	t := float64(a.Evaluations)
	s.Regret = math.Sqrt(s.C1 * regretBeta * a.InformationGain / t)
	s.MaximumSensitivity = s.Regret + maximumDistance + q
	s.LaplaceScale = laplaceScale(s.MaximumSensitivity, a.Epsilon)
	return s
}

// regretBeta returns the β_t for which all upper confidence bounds hold at all times, except
// with the given probability: 2·log(|Λ|t²π²/6p) (Srinivas et al., "Gaussian process
// optimization in the bandit setting", 2010, Lemma 5.1).
func (a Noisy) regretBeta(t int64, probability float64) float64 {
	return 2*math.Log(float64(a.Candidates)/(6*probability)) + 4*math.Log(math.Pi*float64(t))
}

// distance returns the bound on |f − f′|, a normal variable of variance 2(1 − k_1) for every
// candidate, that fails with probability δ/parts.
func (a Noisy) distance(parts float64) float64 {
	c := 2 * math.Sqrt((1-a.Correlation)*math.Log(parts*float64(a.Candidates)/a.Delta))
	if a.Difference > 0 {
		c = math.Min(c, a.Difference)
	}
	return c
}

// largestNoise bounds the difference of two of 2T noise variables, except with the given
// probability that one of them exceeds half of it.
func (a Noisy) largestNoise(probability float64) float64 {
	return 2 * a.Noise * math.Sqrt(2*math.Log(2*float64(a.Evaluations)/probability))
}

// MostOdds returns how much more likely the exponential mechanism, with the sensitivity of the
// posterior means, is to choose the best candidate than the worst if the means are spread so
// far: e^{ε·spread/2Δ}. Near 1 the choice is almost uniform.
func (s Scales) MostOdds(epsilon, spread float64) float64 {
	return math.Exp(epsilon * spread / (2 * s.ChoiceSensitivity))
}

// Statement returns what Algorithm 1 claims of each of its two releases.
func (a Noisy) Statement() Statement {
	return Statement{
		Epsilon: a.Epsilon, Delta: a.Delta, Condition: Conditional, Protects: Protects,
		Assumptions: []privacy.Assumption{
			privacy.PremiseScores.Assume(fmt.Sprintf("k1 is at least %g for every pair of data sets that differ in one record", a.Correlation)),
			privacy.PremiseScores.Assume(fmt.Sprintf("observations have independent normal noise of standard deviation %g of the prior's", a.Noise)),
			privacy.PremiseScores.Assume("the stated bound on the information gain holds for k2"),
		},
		NotCovered: notCovered(),
	}
}

// laplaceScale returns the scale for which a release on a grid of at most 2⁻⁴⁰ of it, which
// rounds two values apart by that much, is ε-DP.
func laplaceScale(sensitivity, epsilon float64) float64 { return sensitivity / (epsilon - 0x1p-39) }

func checkCount(field string, n int64) error {
	if n >= 1 {
		return nil
	}
	return privacy.FieldErrorf(field, "must be at least 1, is %d", n)
}

func checkEpsilon(epsilon float64) error {
	if epsilon >= 0x1p-30 && !math.IsInf(epsilon, 1) {
		return nil
	}
	return privacy.FieldErrorf("epsilon", "must be at least 2⁻³⁰ and finite, is %g", epsilon)
}

func checkCorrelation(k float64) error {
	if k >= 0 && k <= 1 {
		return nil
	}
	return privacy.FieldErrorf("correlation", "must lie in [0, 1], is %g", k)
}
