package tuning

import (
	"errors"

	"github.com/dpareto/dpareto/privacy"
)

// BinomialSelection is [RepeatedSelection] for a number K of candidates that is the number of
// successes in Tries independent tries of Probability each. With a Probability of 1 it is the
// best of exactly Tries candidates. Nothing is released when K is 0. Only [Location] accounts it.
type BinomialSelection struct {
	Base        privacy.Mechanism // one step of training and scoring a candidate
	Steps       int64             // runs of Base for each candidate, >= 1
	Tries       int64             // >= 1
	Probability float64           // in (0, 1]
}

// Name returns "binomial_selection".
func (m BinomialSelection) Name() string { return "binomial_selection" }

// Adjacency returns the base's adjacency, or 0 without a base.
func (m BinomialSelection) Adjacency() privacy.Adjacency {
	if m.Base == nil {
		return 0
	}
	return m.Base.Adjacency()
}

// Validate reports the fields "base", the base's own as "base.field", "steps", "tries" and
// "probability".
func (m BinomialSelection) Validate() error {
	errs := checkCandidate(m.Base, m.Steps)
	if m.Tries < 1 {
		errs = append(errs, privacy.FieldErrorf("tries", "must be at least 1, is %d", m.Tries))
	}
	if !(m.Probability > 0 && m.Probability <= 1) {
		errs = append(errs, privacy.FieldErrorf("probability", "must be above 0 and at most 1, is %g", m.Probability))
	}
	return errors.Join(errs...)
}

// Assumptions returns the conditions that the search must meet.
func (m BinomialSelection) Assumptions() []privacy.Assumption {
	return privacy.JoinAssumptions(searchAssumptions(), m.Base.Assumptions())
}

// MeanRuns returns E[K], the expected number of candidates.
func (m BinomialSelection) MeanRuns() float64 { return m.law().mean() }

// Curves returns the bound of [Location] and, where the number of runs is bounded, the bound of
// showing all runs.
func (m BinomialSelection) Curves(upperOnly bool) []privacy.Curve { return curvesOf(m, upperOnly) }

func (m BinomialSelection) candidate() (base privacy.Mechanism, runs int64) { return m.Base, m.Steps }

func (m BinomialSelection) law() runCountDistribution { return binomialCount{m.Tries, m.Probability} }
