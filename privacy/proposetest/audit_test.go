package proposetest

import (
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// An attacker looks for one outcome of the rounds, on two neighbouring training sets whose
// utilities differ by 1/k in the worst directions: on the second, the candidates that must
// fail reach further, and the one that must pass less far. The broken mechanism has a
// quarter of the noise.
func TestAudit(t *testing.T) {
	for _, test := range []struct {
		name       string
		cap        int64
		candidates int
		passed     []int // what the attacker looks for, round by round
		runs       int
		power      float64
		broken     float64 // factor of ε_0, 0 for none
	}{
		{"the only candidate", 1, 1, []int{0}, 100_000, 0.1, 0},
		{"the last of many", 1, 8, []int{7}, 200_000, 0.6, 2},
		{"two rounds", 2, 4, []int{3, 3}, 200_000, 0.4, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			const parts, base = 4, 0.5
			tune := Tuning{
				Parts: parts, Epsilon: 1, Delta: 1e-6, Lower: 0.25, Granularity: 0.1, Cap: test.cap, Neighbours: privacy.ReplaceOne,
			}
			g, err := tune.Guarantee()
			require.NoError(t, err)
			utilities := [2][]float64{make([]float64, test.candidates), make([]float64, test.candidates)}
			for s := range test.candidates {
				utilities[0][s], utilities[1][s] = base, base+1.0/parts
			}
			utilities[1][test.candidates-1] = base - 1.0/parts
			source := noise.Seeded(7)
			event := func(tune Tuning) func(second bool) bool {
				return func(second bool) bool {
					u := utilities[0]
					if second {
						u = utilities[1]
					}
					result := tune.search(source, u)
					found := len(result.Rounds) >= len(test.passed)
					for i, want := range test.passed {
						found = found && result.Rounds[i].Passed == want
					}
					return found
				}
			}
			audit := privacytest.Audit{Epsilon: g.Epsilon, Delta: g.Delta, Runs: test.runs, Power: test.power, Event: event(tune)}
			if test.broken > 0 {
				broken := tune
				broken.Epsilon *= test.broken
				audit.Broken = event(broken)
			}
			audit.Check(t)
		})
	}
}
