package bayesopt

import (
	"errors"
	"fmt"
	"math"

	"github.com/dpareto/dpareto/privacy"
)

// NoiseFree is Algorithm 2: the best utility of Bayesian optimisation without observation
// noise, by the method of de Freitas, Smola and Zoghi ("Exponential regret bounds for Gaussian
// process bandits with deterministic observations", ICML 2012). It is a calculator only: the
// theorem of de Freitas et al. says that constants A and τ exist, but their values are
// unknown, so that A and τ are assumptions. It uses the regret after two evaluations, the
// fewest that the theorem admits, which does not fall with their number.
type NoiseFree struct {
	// Candidates is |Λ| >= 1.
	Candidates int64
	// Epsilon, at least 2⁻³⁰, and Delta, in (0, 1), of the release.
	Epsilon, Delta float64
	// Correlation is the least k_1 of two data sets that differ in one record, in [0, 1].
	Correlation float64
	// Dimension is the number of hyperparameters, >= 1.
	Dimension int
	// A and Tau are the constants of the regret bound A·e^{−τt/(log t)^{d/4}}, positive.
	A, Tau float64
}

// Validate reports the fields "candidates", "epsilon", "delta", "correlation", "dimension",
// "a" and "tau" as privacy.FieldErrors.
func (a NoiseFree) Validate() error {
	return errors.Join(
		checkCount("candidates", a.Candidates), checkEpsilon(a.Epsilon), privacy.CheckDelta(a.Delta), checkCorrelation(a.Correlation),
		checkCount("dimension", int64(a.Dimension)), privacy.CheckPositive("a", a.A), privacy.CheckPositive("tau", a.Tau))
}

// NoiseFreeScales are the quantities of Algorithm 2, in standard deviations of the prior.
type NoiseFreeScales struct {
	// Regret is A·e^{−2τ/(log 2)^{d/4}}.
	Regret float64
	// Distance is c = 2√((1 − k_1)·log(2|Λ|/δ)).
	Distance float64
	// Sensitivity is Regret + Distance.
	Sensitivity float64
	// LaplaceScale is Sensitivity/ε.
	LaplaceScale float64
}

// Scales returns the quantities of Algorithm 2. It returns the errors of Validate.
func (a NoiseFree) Scales() (NoiseFreeScales, error) {
	if err := a.Validate(); err != nil {
		return NoiseFreeScales{}, err
	}
	s := NoiseFreeScales{
		Regret:   a.A * math.Exp(-2*a.Tau/math.Pow(math.Ln2, float64(a.Dimension)/4)),
		Distance: 2 * math.Sqrt((1-a.Correlation)*math.Log(2*float64(a.Candidates)/a.Delta)),
	}
	s.Sensitivity = s.Regret + s.Distance
	s.LaplaceScale = laplaceScale(s.Sensitivity, a.Epsilon)
	return s, nil
}

// Statement returns what Algorithm 2 claims of its release.
func (a NoiseFree) Statement() Statement {
	return Statement{
		Epsilon: a.Epsilon, Delta: a.Delta, Condition: Conditional, Protects: Protects,
		Assumptions: []privacy.Assumption{
			privacy.PremiseScores.Assume(fmt.Sprintf("k1 is at least %g for every pair of data sets that differ in one record", a.Correlation)),
			privacy.PremiseScores.Assume(fmt.Sprintf("the regret after two evaluations is at most A·exp(−2τ/(log 2)^(d/4)) with A = %g, τ = %g and d = %d: no value of A or τ is known", a.A, a.Tau, a.Dimension)),
		},
		NotCovered: notCovered(),
	}
}
