package tuning

import (
	"errors"

	"github.com/dpareto/dpareto/privacy"
)

// CappedSelection is [RepeatedSelection] for a number K of candidates given that it is at most
// MostRuns: K is drawn again until it is. Counting a larger K as MostRuns is another
// distribution, which costs more. Only [Location] accounts it.
type CappedSelection struct {
	Base     privacy.Mechanism // one step of training and scoring a candidate
	Steps    int64             // runs of Base for each candidate, >= 1
	Eta      float64           // as of RepeatedSelection
	Gamma    float64           // as of RepeatedSelection, before the condition
	MostRuns int64             // in [1, MaxMostRuns]
}

// MaxMostRuns is the largest MostRuns of a [CappedSelection].
const MaxMostRuns = 1 << 14

// Name returns "capped_selection".
func (m CappedSelection) Name() string { return "capped_selection" }

// Adjacency returns the base's adjacency, or 0 without a base.
func (m CappedSelection) Adjacency() privacy.Adjacency {
	if m.Base == nil {
		return 0
	}
	return m.Base.Adjacency()
}

// Validate reports the fields "base", the base's own as "base.field", "steps", "eta", "gamma" and
// "most_runs".
func (m CappedSelection) Validate() error {
	errs := append(checkCandidate(m.Base, m.Steps), checkEta(m.Eta), checkGamma(m.Gamma))
	if m.MostRuns < 1 || m.MostRuns > MaxMostRuns {
		errs = append(errs, privacy.FieldErrorf("most_runs", "must be in [1, %d], is %d", MaxMostRuns, m.MostRuns))
	}
	return errors.Join(errs...)
}

// Assumptions returns the conditions that the search must meet.
func (m CappedSelection) Assumptions() []privacy.Assumption {
	return privacy.JoinAssumptions(searchAssumptions(), m.Base.Assumptions())
}

// MeanRuns returns E[K | K <= MostRuns].
func (m CappedSelection) MeanRuns() float64 { return m.law().mean() }

// Curves returns the bound of [Location] and, where the number of runs is bounded, the bound of
// showing all runs.
func (m CappedSelection) Curves(upperOnly bool) []privacy.Curve { return curvesOf(m, upperOnly) }

func (m CappedSelection) candidate() (base privacy.Mechanism, runs int64) { return m.Base, m.Steps }

func (m CappedSelection) law() runCountDistribution {
	return newCappedNegativeBinomial(negativeBinomial{m.Eta, m.Gamma}, m.MostRuns)
}
