package proposetest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// near fails unless got rounds to want: within one half of a unit of its last digit, of
// which there are so many behind the point.
func near(t *testing.T, name string, got, want float64, decimals int) {
	t.Helper()
	if !(math.Abs(got-want) <= 0.5000001*math.Pow10(-decimals)) {
		t.Errorf("%s: %.9g, want %.9g", name, got, want)
	}
}

// Independent computation: the closed forms, the order of least Rényi bound over a fine
// grid, and the optimal composition theorem by summing both binomial distributions.
func TestRules(t *testing.T) {
	for _, test := range []struct {
		epsilon                                        float64
		rounds                                         int64
		basic, advanced, concentrated, filter, optimal float64
		decimals                                       int // of all but basic and optimal
	}{
		{0.1, 7, 0.7, 1.46436, 1.21462, 1.42574, 0.699909, 5},
		{0.1, 13, 1.3, 2.03199, 1.69556, 1.96027, 1.295644, 5},
		{0.1, 21, 2.1, 2.62970, 2.19960, 2.51384, 1.870710, 5},
		{0.1, 199, 19.9, 9.50814, 7.74365, 8.41024, 7.175993, 5},
		{0.1, 1999, 199.9, 44.5257, 32.2109, 33.4970, 30.47911, 4},
		{0.01, 199, 1.99, 0.761523, 0.620035, 0.751474, 0.568846, 6},
		{1.0, 21, 21, 60.1723, 33.2861, 34.5884, 20.99928, 4},
	} {
		for rule, want := range map[Rule]float64{
			Basic: test.basic, Advanced: test.advanced, Concentrated: test.concentrated, Filter: test.filter, Optimal: test.optimal,
		} {
			got, err := rule.Epsilon(test.epsilon, test.rounds, 1e-6)
			require.NoError(t, err)
			decimals := test.decimals
			if rule == Basic || rule == Optimal {
				decimals = min(6, test.decimals+1)
			}
			near(t, rule.String(), got, want, decimals)
		}
		least, rule, err := LeastEpsilon(test.epsilon, test.rounds, 1e-6)
		if err != nil || rule != Optimal {
			t.Errorf("least: %g by %s, %v", least, rule, err)
		}
	}
}

// Independent computation of the caps.
func TestRounds(t *testing.T) {
	for _, test := range []struct {
		epsilon, budget        float64
		optimal, filter, basic int64
	}{
		{0.1, 1, 10, 3, 10},
		{0.05, 1, 26, 13, 20},
		{0.1, 3, 46, 29, 30},
		{0.01, 0.5, 156, 88, 50},
	} {
		for rule, want := range map[Rule]int64{Optimal: test.optimal, Filter: test.filter, Basic: test.basic} {
			got, err := rule.Rounds(test.epsilon, 1e-6, test.budget)
			if err != nil || got != want {
				t.Errorf("ε_0 = %g, budget %g, %s: %d rounds, want %d, %v", test.epsilon, test.budget, rule, got, want, err)
			}
		}
		got, err := Rounds(test.epsilon, 1e-6, test.budget)
		if err != nil || got != max(test.optimal, test.filter, test.basic) {
			t.Errorf("ε_0 = %g, budget %g: %d rounds, %v", test.epsilon, test.budget, got, err)
		}
	}
}

// The least ε rises with the number of rounds, is never above any rule's, and the cap is where
// it crosses the budget.
func TestLeastEpsilonProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		epsilon, delta := math.Exp(-6*rng.Float64()), math.Pow(10, -1-9*rng.Float64())
		if rng.IntN(8) == 0 {
			delta = 0
		}
		rounds := 1 + rng.Int64N(500)
		least, _, err := LeastEpsilon(epsilon, rounds, delta)
		require.NoError(t, err)
		more, _, err := LeastEpsilon(epsilon, rounds+1, delta)
		if err != nil || !(more >= least) {
			t.Errorf("ε_0 = %g, δ = %g: ε of %d rounds is %g, of one more %g, %v", epsilon, delta, rounds, least, more, err)
		}
		for _, r := range Rules() {
			if e, err := r.Epsilon(epsilon, rounds, delta); err != nil || e < least {
				t.Errorf("%s: %g is below the least %g, %v", r, e, least, err)
			}
		}
		budget := least*(1+rng.Float64()) + 1e-3
		most, err := Rounds(epsilon, delta, budget)
		require.NoError(t, err)
		within, _, _ := LeastEpsilon(epsilon, most, delta)
		beyond, _, _ := LeastEpsilon(epsilon, most+1, delta)
		if !(within <= budget && beyond > budget) {
			t.Errorf("ε_0 = %g, δ = %g, budget %g: %d rounds cost %g, one more %g", epsilon, delta, budget, most, within, beyond)
		}
	}
}

func TestRoundsOfNothing(t *testing.T) {
	if got, err := Rounds(2, 0, 1); got != 0 || err != nil {
		t.Errorf("%d, %v: a round of ε 2 within 1", got, err)
	}
	for field, err := range map[string]error{
		"budget":  func() error { _, err := Rounds(1, 0, 0); return err }(),
		"epsilon": func() error { _, err := Basic.Rounds(-1, 0, 1); return err }(),
		"delta":   func() error { _, err := Optimal.Epsilon(1, 1, 1); return err }(),
		"rounds":  func() error { _, err := Filter.Epsilon(1, 0, 0.1); return err }(),
	} {
		if fields := privacy.FieldErrors(err); len(fields) != 1 || fields[0].Field != field {
			t.Errorf("want an error for %s, got %v", field, err)
		}
	}
}
