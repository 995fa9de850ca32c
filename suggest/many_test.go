package suggest_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/problems"
	"github.com/dpareto/dpareto/suggest/space"
)

// solve returns the hypervolume that a designer reaches on a problem within n
// evaluations, of which only those within the constraints count.
func solve(t *testing.T, d suggest.Designer, p *problems.Problem, n int, seed uint64) float64 {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 5))
	h := study(t, d, &p.Problem, n, seed, func(q space.Point) suggest.Evaluation { return p.Observe(q, rng) })
	var values [][]float64
	for _, e := range h.Evaluations {
		if p.Acceptable(e.Values) {
			values = append(values, e.Values[:len(p.Objectives)])
		}
	}
	return pareto.Hypervolume(values, p.Reference())
}

// With three objectives the region to be improved is divided into boxes, with more it
// is seen along rays.
func TestDefaultWithManyObjectives(t *testing.T) {
	for _, tc := range []struct{ objectives, runs, random int }{{3, 50, 200}, {5, 40, 40}, {6, 40, 80}} {
		p := problems.DTLZ2(tc.objectives+2, tc.objectives)
		ours := solve(t, suggest.NewDefault(suggest.EngineOptions{}), p, tc.runs, 1)
		random := solve(t, suggest.NewRandom(), p, tc.random, 1)
		t.Logf("%d objectives: %.3f after %d runs, %.3f after %d random ones, of %.3f", tc.objectives, ours, tc.runs, random, tc.random, p.MaxHypervolume)
		if ours <= random {
			t.Errorf("%d objectives: hypervolume %g after %d runs, %g after %d random ones", tc.objectives, ours, tc.runs, random, tc.random)
		}
	}
}
