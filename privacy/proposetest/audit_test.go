package proposetest

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/privacy"
)

// An attacker runs the search many times on each of two neighbouring training sets, whose
// utilities differ by 1/k in the worst directions, and counts an event. Clopper-Pearson
// limits of the two probabilities give a lower bound of ε that is wrong with probability
// 1e-6. It must not exceed the guarantee, and comes near enough to tell that the noise is
// not far larger than it has to be.
func TestAudit(t *testing.T) {
	const (
		runs    = 400_000
		mistake = 1e-6
	)
	lower := func(first, second int, delta float64) float64 {
		least := distuv.Beta{Alpha: float64(first), Beta: float64(runs-first) + 1}.Quantile(mistake / 2)
		most := distuv.Beta{Alpha: float64(second) + 1, Beta: float64(runs - second)}.Quantile(1 - mistake/2)
		return math.Log((least - delta) / most)
	}
	for _, test := range []struct {
		name       string
		epsilon    float64
		cap        int64
		candidates int
		// passed is what the attacker looks for, round by round.
		passed []int
		share  float64 // of the guarantee that the attack must find
	}{
		{"one round, one candidate", 1, 1, 1, []int{0}, 0.1},
		{"one round, the last of many", 1, 1, 8, []int{7}, 0.6},
		{"two rounds", 1, 2, 4, []int{3, 3}, 0.4},
	} {
		const parts, lowerUtility, base = 4, 0.25, 0.5
		tune := Tuning{
			Parts: parts, Epsilon: test.epsilon, Delta: 1e-6, Lower: lowerUtility, Granularity: 0.1, Cap: test.cap, Neighbours: privacy.ReplaceOne,
		}
		g, err := tune.Guarantee()
		if err != nil {
			t.Fatal(err)
		}
		// On the second set the candidates that must fail reach further, and the one that
		// must pass less far.
		utilities := [2][]float64{make([]float64, test.candidates), make([]float64, test.candidates)}
		for s := range test.candidates {
			utilities[0][s], utilities[1][s] = base, base+1.0/parts
		}
		last := test.candidates - 1
		utilities[0][last], utilities[1][last] = base, base-1.0/parts
		var counts [2]int
		rng := ordinary{rand.New(rand.NewPCG(7, 8))}
		for second := range counts {
			for range runs {
				result := tune.search(rng, utilities[second])
				found := len(result.Rounds) >= len(test.passed)
				for i, want := range test.passed {
					found = found && result.Rounds[i].Passed == want
				}
				if found {
					counts[second]++
				}
			}
		}
		bound := lower(counts[0], counts[1], g.Delta)
		t.Logf("%s: ε is at least %.3f, guaranteed %.3f (%d and %d of %d)", test.name, bound, g.Epsilon, counts[0], counts[1], runs)
		if !(bound <= g.Epsilon) {
			t.Errorf("%s: ε is at least %g, above the guarantee %g", test.name, bound, g.Epsilon)
		}
		if !(bound >= test.share*g.Epsilon) {
			t.Errorf("%s: the attack finds %g only, of %g", test.name, bound, g.Epsilon)
		}
	}
}
