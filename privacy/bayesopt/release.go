package bayesopt

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/selection"
)

// ReleaseCandidate draws the candidate that Algorithm 1 publishes, by the exponential
// mechanism over the posterior means with the corrected sensitivity, and returns the claim for
// it. It returns the errors of Validate, and privacy.FieldErrors for "means" that are not
// finite or not one per candidate.
func (a Noisy) ReleaseCandidate(source *noise.Source, means []float64) (int, Statement, error) {
	s, err := a.Scales()
	if int64(len(means)) != a.Candidates {
		err = errors.Join(err, privacy.FieldErrorf("means", "are %d, of %d candidates", len(means), a.Candidates))
	}
	for i, mean := range means {
		if math.IsNaN(mean) || math.IsInf(mean, 0) {
			err = errors.Join(err, privacy.FieldErrorf("means", "must be finite, number %d is %g", i, mean))
		}
	}
	if err != nil {
		return 0, Statement{}, err
	}
	chosen, err := selection.Exponential(source, means, s.ChoiceSensitivity, a.Epsilon)
	return chosen, a.Statement(), err
}

// ReleaseMaximum returns the largest observation plus Laplace noise of the corrected scale,
// the other release of Algorithm 1, with the claim for it. It returns the errors of Validate,
// and a privacy.FieldError for "best" that is not finite or above 2³⁰⁰ in magnitude.
func (a Noisy) ReleaseMaximum(source *noise.Source, best float64) (float64, Statement, error) {
	s, err := a.Scales()
	if err = errors.Join(err, checkBest(best)); err != nil {
		return 0, Statement{}, err
	}
	return source.Laplace(best, s.LaplaceScale), a.Statement(), nil
}

func checkBest(best float64) error {
	if math.Abs(best) <= 0x1p300 {
		return nil
	}
	return privacy.FieldErrorf("best", "must be finite and at most 2³⁰⁰ in magnitude, is %g", best)
}
