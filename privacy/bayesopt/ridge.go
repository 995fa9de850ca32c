package bayesopt

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
)

// Ridge is Algorithm 3: the best validation score of a linear model over the strength λ of
// its ridge penalty, found by any method. It is pure ε-DP in the worst case. The model
//
//	w_λ = argmin (1/n) Σ ℓ(w, x_i, y_i) + λ/2·‖w‖²
//
// must be the exact minimiser for a convex loss ℓ that is 1-Lipschitz in w (‖x‖ <= 1 for
// the logistic and the hinge loss), and the score the mean over the validation records of a
// g that is Lipschitz in w, has a range of known length, and is the same for all records at
// w = 0.
type Ridge struct {
	// Records is m >= 1, the number of validation records.
	Records int64
	// Epsilon of the release, at least 2⁻³⁰.
	Epsilon float64
	// Range is g* > 0, the length of the range of g: 1 for values in [0, 1].
	Range float64
	// Lipschitz is L > 0, the Lipschitz constant of g in w.
	Lipschitz float64
	// Least and Most bound λ, 0 < Least <= Most.
	Least, Most float64
}

// Validate reports the fields "records", "epsilon", "range", "lipschitz", "least" and
// "most" as privacy.FieldErrors.
func (a Ridge) Validate() error {
	err := errors.Join(checkCount("records", a.Records), checkEpsilon(a.Epsilon), privacy.CheckPositive("range", a.Range),
		privacy.CheckPositive("lipschitz", a.Lipschitz), privacy.CheckPositive("least", a.Least), privacy.CheckPositive("most", a.Most))
	if a.Least > a.Most {
		err = errors.Join(err, privacy.FieldErrorf("most", "must be at least %g, is %g", a.Least, a.Most))
	}
	return err
}

// ModelDistance returns the bound |λ − λ′|/λλ′ on the distance of two models (Theorem 7).
func ModelDistance(lambda, other float64) float64 {
	return math.Abs(1/lambda - 1/other)
}

// Paper returns the sensitivity as Algorithm 3 has it,
// min{g*/m, L/(m·λ_min)} + L(1/λ_min − 1/λ_max). Two records of the range of a Lipschitz
// function differ by up to 2L/λ_min, not L/λ_min; and it may exceed g*.
func (a Ridge) Paper() float64 { return a.record(1) + a.path() }

// Uncapped returns the sensitivity with the first term corrected,
// min{g*/m, 2L/(m·λ_min)} + L(1/λ_min − 1/λ_max).
func (a Ridge) Uncapped() float64 { return a.record(2) + a.path() }

// Sensitivity returns the sensitivity of the release: Uncapped, or the range if that is
// smaller.
func (a Ridge) Sensitivity() float64 { return math.Min(a.Range, a.Uncapped()) }

// Vacuous reports whether the analysis says no more about the best score than that it lies
// in its range.
func (a Ridge) Vacuous() bool { return a.Uncapped() >= a.Range }

// LaplaceScale returns Sensitivity/ε.
func (a Ridge) LaplaceScale() float64 { return laplaceScale(a.Sensitivity(), a.Epsilon) }

// record returns how far one record moves the score of one model, ‖w_λ‖ <= 1/λ.
func (a Ridge) record(factor float64) float64 {
	return math.Min(a.Range, factor*a.Lipschitz/a.Least) / float64(a.Records)
}

// path returns how far the score varies with λ.
func (a Ridge) path() float64 { return a.Lipschitz * ModelDistance(a.Least, a.Most) }

// Guarantee returns what Algorithm 3 guarantees, for [Protects]. It returns the errors of
// Validate.
func (a Ridge) Guarantee() (privacy.Guarantee, error) {
	if err := a.Validate(); err != nil {
		return privacy.Guarantee{}, err
	}
	return privacy.Guarantee{
		Epsilon: a.Epsilon, Adjacency: privacy.ReplaceOne, Accountant: "laplace", Steps: 1,
		Assumptions: []privacy.Assumption{
			privacy.PremiseFixedInAdvance.Assume("bounds of the penalty, range and Lipschitz constant are fixed without looking at the validation set"),
			privacy.PremiseTheorem.Assume("models are exact minimisers for a convex training loss that is 1-Lipschitz in the weights, with a ridge penalty as the only hyperparameter"),
			privacy.PremiseScores.Assume("the score is a mean over the validation records of a function of the stated range and Lipschitz constant that does not depend on the record at w = 0"),
		},
	}, nil
}

// NotCovered returns the limits of the guarantee of Algorithm 3.
func (a Ridge) NotCovered() []string {
	return append(notCovered(), "the penalty that was best, which is not released: that would be another release")
}

// Release returns the best score plus Laplace noise. Every release costs ε again. It returns
// the errors of Validate, and a privacy.FieldError for "best" that is not finite or above 2³⁰⁰
// in magnitude.
func (a Ridge) Release(source *noise.Source, best float64) (float64, privacy.Guarantee, error) {
	g, err := a.Guarantee()
	if err = errors.Join(err, checkBest(best)); err != nil {
		return 0, privacy.Guarantee{}, err
	}
	return source.Laplace(best, a.LaplaceScale()), g, nil
}
