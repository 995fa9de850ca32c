package proposetest

import (
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/dpareto/dpareto/privacy"
)

// Rule is a theorem about the composition of rounds that are each ε_0-DP. All are valid for
// rounds that are chosen from the outcomes of earlier ones, up to a number fixed in advance.
type Rule int

const (
	// Basic is T·ε_0, with δ = 0.
	Basic Rule = iota + 1
	// Advanced is ε_0·√(2T·log(1/δ)) + T·ε_0·(e^{ε_0} − 1) (Dwork, Rothblum and Vadhan,
	// "Boosting and differential privacy", 2010).
	Advanced
	// Filter is ε_0·√(2T·log(1/δ)) + ½·T·ε_0² (Whitehouse, Ramdas, Rogers and Wu,
	// "Fully-adaptive composition in differential privacy", 2023), which would hold for
	// rounds of different ε as well.
	Filter
	// Concentrated takes every round as ½·ε_0²-zCDP (Bun and Steinke, "Concentrated
	// differential privacy", 2016), with the conversion of Canonne, Kamath and Steinke
	// ("The discrete Gaussian for differential privacy", 2020).
	Concentrated
	// Optimal is the best bound for any ε_0-DP rounds (Kairouz, Oh and Viswanath, "The
	// composition theorem for differential privacy", 2015).
	Optimal
)

// Rules returns all rules, the loosest kind first.
func Rules() []Rule { return []Rule{Basic, Advanced, Filter, Concentrated, Optimal} }

// String returns "basic", "advanced", "filter", "concentrated" or "optimal", and
// "Rule(n)" for any other value.
func (r Rule) String() string {
	switch r {
	case Basic:
		return "basic"
	case Advanced:
		return "advanced"
	case Filter:
		return "filter"
	case Concentrated:
		return "concentrated"
	case Optimal:
		return "optimal"
	default:
		return fmt.Sprintf("Rule(%d)", int(r))
	}
}

// Epsilon returns ε of the given number of rounds >= 1, each epsilon-DP with epsilon > 0,
// for a delta in [0, 1). With delta = 0 only Basic is finite. The errors are
// privacy.FieldErrors for "epsilon", "rounds" and "delta". It panics for an unknown rule.
func (r Rule) Epsilon(epsilon float64, rounds int64, delta float64) (float64, error) {
	err := errors.Join(privacy.CheckPositive("epsilon", epsilon), checkDelta(delta))
	if rounds < 1 {
		err = errors.Join(err, privacy.FieldErrorf("rounds", "must be at least 1, is %d", rounds))
	}
	if err != nil {
		return 0, err
	}
	if r != Basic && delta == 0 {
		return math.Inf(1), nil
	}
	t := float64(rounds)
	switch r {
	case Basic:
		return t * epsilon, nil
	case Advanced:
		return privacy.ComposeAdvanced(epsilon, 0, rounds, delta)
	case Filter:
		return epsilon*math.Sqrt(-2*t*math.Log(delta)) + 0.5*t*epsilon*epsilon, nil
	case Concentrated:
		// Any adjacency will do.
		m := privacy.ZeroConcentrated{Rho: 0.5 * epsilon * epsilon, Neighbours: privacy.ReplaceOne}
		g, err := privacy.Epsilon(privacy.RDP{}, m, rounds, delta)
		return g.Epsilon, err
	case Optimal:
		return privacy.ComposeOptimal(epsilon, 0, rounds, delta)
	default:
		panic("proposetest: unknown rule of composition")
	}
}

// LeastEpsilon returns the least ε of all rules, and the rule. It returns the errors of
// [Rule.Epsilon].
func LeastEpsilon(epsilon float64, rounds int64, delta float64) (float64, Rule, error) {
	least, by := math.Inf(1), Basic
	for _, r := range Rules() {
		e, err := r.Epsilon(epsilon, rounds, delta)
		if err != nil {
			return 0, 0, err
		}
		if e < least {
			least, by = e, r
		}
	}
	return least, by, nil
}

// mostRounds bounds the search for a cap.
const mostRounds = 1 << 30

// Rounds returns the largest number of rounds whose ε by the rule is at most budget > 0;
// 0 where a single one exceeds it, and at most 2³⁰. The errors are privacy.FieldErrors
// for "epsilon", "delta" and "budget".
func (r Rule) Rounds(epsilon, delta, budget float64) (int64, error) {
	return rounds(budget, func(t int64) (float64, error) { return r.Epsilon(epsilon, t, delta) })
}

// Rounds returns the largest number of rounds whose least ε, by all rules, is at most
// budget > 0, as [Rule.Rounds] does for one.
func Rounds(epsilon, delta, budget float64) (int64, error) {
	return rounds(budget, func(t int64) (float64, error) {
		e, _, err := LeastEpsilon(epsilon, t, delta)
		return e, err
	})
}

// rounds inverts a cost that does not fall with the number of rounds.
func rounds(budget float64, cost func(int64) (float64, error)) (int64, error) {
	if err := privacy.CheckPositive("budget", budget); err != nil {
		return 0, err
	}
	if _, err := cost(1); err != nil {
		return 0, err
	}
	exceeds := func(t int64) bool {
		epsilon, err := cost(t)
		return err != nil || epsilon > budget
	}
	hi := int64(1) // large numbers take long
	for hi < mostRounds && !exceeds(hi) {
		hi *= 2
	}
	return int64(sort.Search(int(hi), func(i int) bool { return exceeds(int64(i) + 1) })), nil
}

func checkDelta(delta float64) error {
	if delta >= 0 && delta < 1 {
		return nil
	}
	return privacy.FieldErrorf("delta", "must lie in [0, 1), is %g", delta)
}
