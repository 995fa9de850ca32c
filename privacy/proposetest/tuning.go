package proposetest

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy"
)

// Tuning is a propose-test search with everything that must be fixed before it looks at the
// data.
type Tuning struct {
	// Parts is k, from 2 to 2²⁰, the number of disjoint parts of the training set. A
	// record's part must not depend on other records: a hash of it decides.
	Parts int
	// Epsilon is ε_0 of one round, at least 2⁻²⁰.
	Epsilon float64
	// Delta is δ′ of the composition of the rounds, in [0, 1); with 0 their ε add up.
	Delta float64
	// Lower is u_0 in [0, 1), the utility from which proposals start.
	Lower float64
	// Granularity is g in (0, 1), the least step of a proposal. (1 − Lower)/Granularity is
	// at most 2³⁰.
	Granularity float64
	// Cap is the largest number of rounds, >= 1; 0 stands for the search's own limit, 2M − 1.
	Cap int64
	// Default is the index of the candidate to answer if no round succeeds.
	Default int
	// Neighbours is the adjacency of training sets; either fits.
	Neighbours privacy.Adjacency
}

// Validate reports the fields "parts", "epsilon", "delta", "lower", "granularity", "cap",
// "default" and "adjacency" as privacy.FieldErrors.
func (t Tuning) Validate() error {
	errs := []error{privacy.CheckPositive("epsilon", t.Epsilon), checkDelta(t.Delta)}
	if t.Epsilon > 0 && t.Epsilon < 0x1p-20 {
		errs = append(errs, privacy.FieldErrorf("epsilon", "must be at least 2⁻²⁰, is %g", t.Epsilon))
	}
	if t.Parts < 2 || t.Parts > 1<<20 {
		errs = append(errs, privacy.FieldErrorf("parts", "must lie between 2 and 2²⁰, is %d", t.Parts))
	}
	if !(t.Lower >= 0 && t.Lower < 1) {
		errs = append(errs, privacy.FieldErrorf("lower", "must lie in [0, 1), is %g", t.Lower))
	}
	switch {
	case !(t.Granularity > 0 && t.Granularity < 1):
		errs = append(errs, privacy.FieldErrorf("granularity", "must lie strictly between 0 and 1, is %g", t.Granularity))
	case (1-t.Lower)/t.Granularity > mostRounds:
		errs = append(errs, privacy.FieldErrorf("granularity", "must be at least 2⁻³⁰ of 1 − lower, is %g", t.Granularity))
	}
	if t.Cap < 0 {
		errs = append(errs, privacy.FieldErrorf("cap", "must not be negative, is %d", t.Cap))
	}
	if t.Default < 0 {
		errs = append(errs, privacy.FieldErrorf("default", "must not be negative, is %d", t.Default))
	}
	if t.Neighbours != privacy.AddRemove && t.Neighbours != privacy.ReplaceOne {
		errs = append(errs, privacy.FieldErrorf("adjacency", "must be %s or %s, is %s", privacy.AddRemove, privacy.ReplaceOne, t.Neighbours))
	}
	return errors.Join(errs...)
}

// Levels returns M = ⌈(1 − u_0)/g⌉, the number of least steps from Lower to 1.
func (t Tuning) Levels() int64 {
	// A quotient that is whole but for its rounding, such as (1 − 0.7)/0.1, is whole.
	return max(1, int64(math.Ceil((1-t.Lower)/t.Granularity*(1-0x1p-50))))
}

// MostRounds returns the number of rounds that no run exceeds: 2M − 1, or Cap where that
// is smaller. The guarantee is for this number.
//
// Every success raises a by at least 1 and every failure halves the step, so that the
// longest runs alternate between the two.
func (t Tuning) MostRounds() int64 {
	most := 2*t.Levels() - 1
	if t.Cap > 0 {
		most = min(most, t.Cap)
	}
	return most
}

// Sensitivity returns 1/k: how far one training record moves the utility of a candidate.
func (t Tuning) Sensitivity() float64 { return 1 / float64(t.Parts) }

// Plan returns t with the largest cap whose guarantee stays within a budget of ε > 0, for δ =
// Delta. It returns the errors of Validate, and privacy.FieldErrors for a "budget" that is not
// positive or too small for one round.
func (t Tuning) Plan(budget float64) (Tuning, error) {
	t.Cap = 0
	if err := t.Validate(); err != nil {
		return t, err
	}
	most, err := Rounds(t.Epsilon, t.Delta, budget)
	if err != nil {
		return t, err
	}
	if most == 0 {
		return t, privacy.FieldErrorf("budget", "%g does not pay for a round of epsilon %g", budget, t.Epsilon)
	}
	t.Cap = min(most, t.MostRounds())
	return t, nil
}

// Guarantee returns the guarantee of the search for the records of the training set: the
// least ε of all rules of composition for MostRounds rounds. It covers the selected candidate
// and the outcome of every round. It returns the errors of Validate.
func (t Tuning) Guarantee() (privacy.Guarantee, error) {
	if err := t.Validate(); err != nil {
		return privacy.Guarantee{}, err
	}
	return t.guarantee(t.Epsilon, t.Neighbours, []privacy.Assumption{
		privacy.PremiseScores.Assume("every utility is the mean over the parts of values in [0, 1] that each depend on the records of one part alone, and a record's part does not depend on other records"),
		privacy.PremiseFixedInAdvance.Assume("candidates, their order, the default and all parameters are fixed without looking at the data"),
		privacy.PremiseSecrecy.Assume("utilities, models and running times of the search stay secret"),
	})
}

// ValidationGuarantee returns the guarantee of the same noise for the records of the
// validation set, which the paper does not account: one of n records moves every utility by at
// most 1/n, so that every round is (ε_0·k/n)-DP for it. The adjacency is replace-one. It
// returns the errors of Validate, and a privacy.FieldError for "records" < 1.
func (t Tuning) ValidationGuarantee(n int64) (privacy.Guarantee, error) {
	err := t.Validate()
	if n < 1 {
		err = errors.Join(err, privacy.FieldErrorf("records", "must be at least 1, is %d", n))
	}
	if err != nil {
		return privacy.Guarantee{}, err
	}
	epsilon := t.Epsilon*(1/float64(n)+float64(t.Parts)*0x1p-52)/t.width() + 0x1p-37 // with rounding, see width
	return t.guarantee(epsilon, privacy.ReplaceOne, []privacy.Assumption{
		privacy.PremiseScores.Assume("utilities are accuracies on all validation records, or other means of values in [0, 1], one for each record"),
		privacy.PremiseDisjoint.Assume("no model was trained with validation records"),
		privacy.PremiseSecrecy.Assume("utilities, models and running times of the search stay secret"),
	})
}

func (t Tuning) guarantee(epsilon float64, adjacency privacy.Adjacency, assumptions []privacy.Assumption) (privacy.Guarantee, error) {
	rounds := t.MostRounds()
	total, rule, err := LeastEpsilon(epsilon, rounds, t.Delta)
	if err != nil {
		return privacy.Guarantee{}, err
	}
	g := privacy.Guarantee{
		Epsilon: total, Delta: t.Delta, Adjacency: adjacency, Accountant: rule.String() + "_composition",
		Steps: rounds, Assumptions: privacy.JoinAssumptions(assumptions),
	}
	if rule == Basic {
		g.Delta = 0
	}
	return g, nil
}

// Protects says which records the guarantee of a search protects.
const Protects = "records of the training set, for the choice of the candidate alone"

// NotCovered returns the limits of the guarantee of a search.
func NotCovered() []string {
	return []string{
		"records of the validation set: see their own guarantee",
		"the model that is trained with the selected candidate: its (ε, δ) is added to the search's",
		"the models of the search, unless each was trained privately: they must be deleted unseen",
	}
}
