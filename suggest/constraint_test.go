package suggest_test

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/problems"
	"github.com/dpareto/dpareto/suggest/space"
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
			ours := solve(t, suggest.NewDefault(suggest.EngineOptions{}), tc.problem, tc.runs, seed)
			random := solve(t, suggest.NewRandom(), tc.problem, tc.random, seed)
			t.Logf("%s, seed %d: %.4f after %d runs, %.4f after %d random ones, of %.4f", tc.problem.Name, seed, ours, tc.runs, random, tc.random, tc.problem.MaxHypervolume)
			if ours <= random {
				t.Errorf("%s, seed %d: hypervolume %g, random search %g", tc.problem.Name, seed, ours, random)
			}
		}
	}
}

// island is a problem whose objectives are best where the constraint does not hold:
// far from the little island at (0.85, 0.8).
func island() *suggest.Problem {
	return &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "x", Kind: space.Double, Max: 1}, {Name: "y", Kind: space.Double, Max: 1},
		}},
		Objectives: []suggest.Objective{
			{Name: "f1", Goal: suggest.Minimize, Reference: 3}, {Name: "f2", Goal: suggest.Minimize, Reference: 3},
		},
		Constraints: []suggest.Constraint{{Name: "distance", Lower: math.Inf(-1), Upper: 0.05}},
	}
}

func onIsland(q space.Point) suggest.Evaluation {
	distance := math.Hypot(q[0]-0.85, q[1]-0.8)
	return suggest.Evaluation{Point: q, Values: []float64{q[0] + q[1]*q[1], (1 - q[0]) + q[1], distance}, StdErrors: make([]float64, 3)}
}

// While nothing acceptable is known the constraint is what is searched for.
func TestDefaultSeeksFeasibility(t *testing.T) {
	for seed := range uint64(4) {
		p := island()
		h := study(t, suggest.NewDefault(suggest.EngineOptions{}), p, 14, seed, onIsland)
		found := 0
		for _, e := range h.Evaluations {
			if e.Values[2] <= 0.05 {
				found++
			}
		}
		if found < 3 {
			t.Errorf("seed %d: %d acceptable configurations", seed, found)
		}
	}
}

// The reported front consists of acceptable configurations, though others dominate
// them.
func TestEstimatesRespectConstraints(t *testing.T) {
	p := island()
	h := study(t, suggest.NewQuasiRandom(), p, 20, 1, onIsland)
	h.Evaluations = append(h.Evaluations, onIsland(space.Point{0.85, 0.8}), onIsland(space.Point{0.86, 0.82}))
	m, err := suggest.FitModel(t.Context(), p, h, suggest.ModelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, e := range m.Estimates() {
		if !e.OnFront {
			continue
		}
		count++
		if e.Values[2] > 0.05 {
			t.Errorf("%v is on the front with a distance of %g", e.Point, e.Values[2])
		}
	}
	if count == 0 {
		t.Error("no configuration is on the front")
	}
	for i := range h.Evaluations {
		h.Evaluations[i].Values[2]++
	}
	if m, err = suggest.FitModel(t.Context(), p, h, suggest.ModelOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, e := range m.Estimates() {
		if e.OnFront {
			t.Errorf("%v is on the front of a study without an acceptable configuration", e.Point)
		}
	}
}
