package engine_test

import (
	"testing"

	"github.com/dpareto/dpareto/suggest/designers/engine"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/problems"
)

// Under measured constraints the default finds better fronts than many more random
// configurations.
func TestDefaultUnderConstraints(t *testing.T) {
	for _, tc := range []struct {
		problem      *problems.Problem
		runs, random int
	}{
		{problems.ConstrainedBraninCurrin(), 25, 150},
		{problems.C2DTLZ2(4, 2), 30, 300},
	} {
		for seed := range uint64(2) {
			ours := solve(t, engine.New(engine.Options{}), tc.problem, tc.runs, seed)
			random := solve(t, random.New(), tc.problem, tc.random, seed)
			t.Logf("%s, seed %d: %.4f after %d runs, %.4f after %d random ones, of %.4f", tc.problem.Name, seed, ours, tc.runs, random, tc.random, tc.problem.MaxHypervolume)
			if ours <= random {
				t.Errorf("%s, seed %d: hypervolume %g, random search %g", tc.problem.Name, seed, ours, random)
			}
		}
	}
}

// While nothing acceptable is known the constraint is what is searched for.
func TestDefaultSeeksFeasibility(t *testing.T) {
	found := 0
	for seed := range uint64(4) {
		p := simulated.Island()
		h := simulated.Run(t, engine.New(engine.Options{}), p, 14, seed, simulated.OnIsland)
		for _, e := range h.Evaluations {
			if e.Values[2] <= 0.05 {
				found++
			}
		}
	}
	if found < 12 {
		t.Errorf("%d acceptable configurations in four studies of 14 runs", found)
	}
}
