package adaptive

import (
	"errors"
	"math"
	"sync"

	"github.com/dpareto/dpareto/privacy"
)

// ApproximateFilter admits releases that are chosen one after another, each
// possibly from the outputs of the earlier ones, (ε_i, δ_i) included, for as long
// as the total stays (ε, δ)-DP: while Σδ_i <= δ − δ' and
//
//	min{Σε_i, √(2·log(1/δ')·Σε_i²) + ½·Σε_i²} <= ε
//
// (Whitehouse, Ramdas, Rogers and Wu, "Fully-adaptive composition in differential privacy",
// 2023; the sum alone is from Rogers, Roth, Ullman and Vadhan, "Privacy odometers and
// filters", 2016). The two may be mixed: if the loss exceeds ε then so does the sum of the
// ε_i, so that the other condition held throughout. The guarantee is the declared one, however
// little of it is spent. An ApproximateFilter is safe for concurrent use.
type ApproximateFilter struct {
	guarantee privacy.Guarantee
	slack     float64 // δ'

	mu                  sync.Mutex // guards what follows
	sum, squares, delta float64    // Σε_i, Σε_i², Σδ_i
	steps               int64
}

// NewApproximateFilter returns a filter whose total is (epsilon, delta)-DP under
// adjacency, 0 <= slack <= delta < 1; slack is δ', and 0 stands for the sum of
// the ε_i alone. The errors are FieldErrors for "epsilon", "delta", "slack" and
// "adjacency".
func NewApproximateFilter(epsilon, delta, slack float64, adjacency privacy.Adjacency) (*ApproximateFilter, error) {
	errs := []error{privacy.CheckPositive("epsilon", epsilon), privacy.CheckAdjacency(adjacency)}
	if !(delta >= 0 && delta < 1) {
		errs = append(errs, privacy.FieldErrorf("delta", "must lie in [0, 1), is %g", delta))
	}
	if !(slack >= 0 && slack <= delta) {
		errs = append(errs, privacy.FieldErrorf("slack", "must lie between 0 and delta, is %g", slack))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &ApproximateFilter{
		slack: slack,
		guarantee: privacy.Guarantee{
			Epsilon: epsilon, Delta: delta, Adjacency: adjacency, Accountant: "approximate_filter",
			Assumptions: []privacy.Assumption{privacy.PremiseAdmission.Assume("every access to the data was admitted by the filter before it happened")},
		},
	}, nil
}

// Spend admits runs >= 1 independent releases, each with the guarantee g, and returns true, or
// returns false and admits none of them if they do not fit. The errors are FieldErrors for
// "epsilon", "delta", "steps" and "adjacency".
func (f *ApproximateFilter) Spend(g privacy.Guarantee, runs int64) (bool, error) {
	var errs []error
	if !(g.Epsilon >= 0) {
		errs = append(errs, privacy.FieldErrorf("epsilon", "must not be negative, is %g", g.Epsilon))
	}
	if !(g.Delta >= 0 && g.Delta < 1) {
		errs = append(errs, privacy.FieldErrorf("delta", "must lie in [0, 1), is %g", g.Delta))
	}
	if runs < 1 {
		errs = append(errs, privacy.FieldErrorf("steps", "must be at least 1, is %d", runs))
	}
	if g.Adjacency != f.guarantee.Adjacency {
		errs = append(errs, privacy.FieldErrorf("adjacency", "is %s, of the filter %s", g.Adjacency, f.guarantee.Adjacency))
	}
	if err := errors.Join(errs...); err != nil {
		return false, err
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	times := float64(runs)
	sum := f.sum + times*g.Epsilon
	squares := f.squares + times*g.Epsilon*g.Epsilon
	delta := f.delta + times*g.Delta
	if !(f.total(sum, squares) <= f.guarantee.Epsilon && delta <= f.guarantee.Delta-f.slack) {
		return false, nil
	}
	f.sum, f.squares, f.delta = sum, squares, delta
	f.steps += runs
	return true, nil
}

// total returns the smaller of the two bounds on ε.
func (f *ApproximateFilter) total(sum, squares float64) float64 {
	if f.slack == 0 {
		return sum
	}
	return math.Min(sum, math.Sqrt(-2*math.Log(f.slack)*squares)+0.5*squares)
}

// Remaining returns the largest ε, at δ_i = 0, of one more release that Spend would admit, and
// the rest of the budget for the δ_i.
func (f *ApproximateFilter) Remaining() (epsilon, delta float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fits := func(e float64) bool { return f.total(f.sum+e, f.squares+e*e) <= f.guarantee.Epsilon }
	// Both bounds grow with ε beyond every budget.
	low, high := 0.0, f.guarantee.Epsilon
	for fits(high) {
		high *= 2
	}
	for {
		middle := low + (high-low)/2
		if !(middle > low && middle < high) {
			return low, math.Max(0, f.guarantee.Delta-f.slack-f.delta)
		}
		if fits(middle) {
			low = middle
		} else {
			high = middle
		}
	}
}

// Spent returns an account of the releases so far, whose ε and δ depend on the choices
// made. The guarantee of a filter is the declared one.
func (f *ApproximateFilter) Spent() privacy.Guarantee {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.guarantee
	g.Steps = f.steps
	g.Epsilon, g.Delta = f.total(f.sum, f.squares), f.delta
	if g.Epsilon < f.sum {
		g.Delta += f.slack
	}
	return g
}

// Guarantee returns the declared guarantee with the number of releases so far.
func (f *ApproximateFilter) Guarantee() privacy.Guarantee {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.guarantee
	g.Steps = f.steps
	return g
}
