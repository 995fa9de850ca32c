package engine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/engine"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/problems"
	"github.com/dpareto/dpareto/suggest/space"
)

// solve returns the hypervolume that a designer reaches on a problem within n
// evaluations, of which only those within the constraints count.
func solve(t *testing.T, d suggest.Designer, p *problems.Problem, n int, seed uint64) float64 {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 5))
	h := simulated.Run(t, d, &p.Problem, n, seed, func(q space.Point) suggest.Evaluation { return p.Observe(q, rng) })
	var values [][]float64
	for _, e := range h.Evaluations {
		if p.Acceptable(e.Values) {
			values = append(values, e.Values[:len(p.Objectives)])
		}
	}
	return pareto.Hypervolume(values, p.Reference())
}

// With three objectives the region to be improved is divided into boxes, with more it
// is seen along rays. Other dimensions, and six with as many candidates as by default,
// are in the long tests.
func TestDefaultWithManyObjectives(t *testing.T) {
	beatsRandom(t, engine.Options{}, 3, 45, 150, 1)
	beatsRandom(t, engine.Options{Candidates: 128, Restarts: 4}, 6, 38, 38, 1)
}

// beatsRandom compares the default with random search on DTLZ2.
func beatsRandom(t *testing.T, o engine.Options, objectives, runs, randomRuns int, seed uint64) {
	t.Helper()
	p := problems.DTLZ2(objectives+2, objectives)
	ours := solve(t, engine.New(o), p, runs, seed)
	random := solve(t, random.New(), p, randomRuns, seed)
	t.Logf("%d objectives, seed %d: %.3f after %d runs, %.3f after %d random ones, of %.3f", objectives, seed, ours, runs, random, randomRuns, p.MaxHypervolume)
	if ours <= random {
		t.Errorf("%d objectives, seed %d: hypervolume %g after %d runs, %g after %d random ones", objectives, seed, ours, runs, random, randomRuns)
	}
}
