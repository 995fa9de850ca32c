package proposetest

import (
	"errors"
	"math"
)

// PaperClaim is what Ding and Wu (2022) would state about a run. It is for comparison
// only: neither number is the ε of a differential privacy guarantee, for the Reasons.
type PaperClaim struct {
	// WorstCase is ε of the theorem, ε_0·Õ(√((u* − u_0)/g)): advanced composition of
	// 2(u* − u_0)/g − 1 rounds.
	WorstCase float64
	// Empirical is ε of the discussion: advanced composition of the rounds that were run.
	Empirical float64
	// Reasons say why these are no guarantees.
	Reasons []string
}

// PaperClaim returns the paper's statement about a run of t with the given utilities. It
// looks at the data: the result must not be released. It returns the errors of Validate.
func (t Tuning) PaperClaim(utilities []float64, r *Result) (PaperClaim, error) {
	if err := t.Validate(); err != nil {
		return PaperClaim{}, err
	}
	best := t.Lower
	for _, u := range utilities {
		best = math.Max(best, u)
	}
	claim := PaperClaim{Reasons: []string{
		"ε depends on the best utility u*, or on the number of rounds that were run: a privacy parameter must not depend on the data",
		"the utility that is reached can exceed u*, by the noise",
		"advanced composition costs a further δ′, which the paper's δ leaves out",
		"validation records are not protected by it",
	}}
	gained := math.Ceil((best - t.Lower) / t.Granularity)
	var err, second error
	claim.WorstCase, err = t.advanced(max(1, 2*int64(gained)-1))
	claim.Empirical, second = t.advanced(int64(len(r.Rounds)))
	return claim, errors.Join(err, second)
}

// advanced returns the cost of rounds by the paper.
func (t Tuning) advanced(rounds int64) (float64, error) {
	if t.Delta == 0 {
		return Basic.Epsilon(t.Epsilon, rounds, 0)
	}
	return Advanced.Epsilon(t.Epsilon, rounds, t.Delta)
}
