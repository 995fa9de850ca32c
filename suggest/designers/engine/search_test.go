package engine

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
)

// Where many noisy measurements have been made around a front, what another one is
// worth there is seen in the draws of the front and hardly in its medians. The problem is
// that of Branin and Currin with the noise of Daulton, Balandat, Bakshy (NeurIPS 2021),
// the reference the best point of a grid.
func TestSearchOfUncertainFront(t *testing.T) {
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "x0", Kind: space.Double, Min: 0, Max: 1},
			{Name: "x1", Kind: space.Double, Min: 0, Max: 1},
		}},
		Objectives: []suggest.Objective{
			{Name: "branin", Goal: suggest.Minimize, Reference: 18},
			{Name: "currin", Goal: suggest.Minimize, Reference: 6},
		},
	}
	deviations := []float64{15.19, 0.63}
	branin := func(u, v float64) float64 {
		a := v - 5.1/(4*math.Pi*math.Pi)*u*u + 5/math.Pi*u - 6
		return a*a + 10*(1-1/(8*math.Pi))*math.Cos(u) + 10
	}
	currin := func(a, b float64) float64 {
		return (1 - math.Exp(-1/(2*b))) * (2300*a*a*a + 1900*a*a + 2092*a + 60) / (100*a*a*a + 500*a*a + 4*a + 20)
	}
	const (
		times = 10
		batch = 6
		every = 2
		grid  = 40
	)
	designer := New(Options{InitialPoints: 6}).(designer)
	missed := 0
	for seed := range uint64(6) {
		var h suggest.History
		for round := range times {
			number := int64(len(h.Evaluations))
			suggestions, err := designer.Suggest(t.Context(), p, &h, suggest.Request{Count: batch, Seed: seed, Number: number})
			require.NoError(t, err)
			for i, s := range suggestions {
				rng := rand.New(rand.NewPCG(seed, uint64(number)+uint64(i)))
				values := []float64{branin(15*s.Point[0]-5, 15*s.Point[1]), currin(s.Point[0], s.Point[1])}
				for j := range values {
					values[j] += deviations[j] * rng.NormFloat64()
				}
				h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: s.Point, Values: values, StdErrors: deviations, Runs: 1})
			}
			if (round+1)%every != 0 {
				continue
			}
			model, err := model.Fit(t.Context(), p, &h, model.Options{Seed: seed})
			require.NoError(t, err)
			s, err := newSurface(model, new(common), designer.options, turn{seed: seed, number: number})
			require.NoError(t, err)
			x := newExplorer(s, designer.options, h.Tried(), sample.Stream(seed, number, sample.Search))
			found, ok, err := x.find(t.Context(), sample.Stream(seed, number, sample.Candidates))
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			v, best := x.evaluator(), math.Inf(-1)
			for i := range grid + 1 {
				for k := range grid + 1 {
					best = math.Max(best, x.exact(v, space.Point{float64(i) / grid, float64(k) / grid}))
				}
			}
			if share := math.Exp(found.value - best); share < 0.9 {
				t.Logf("seed %d, %d runs: the search finds %.2f of the best acquisition of a grid", seed, len(h.Evaluations), share)
				missed++
			}
		}
	}
	if missed > 3 { // over many seeds it is 1 of 36
		t.Errorf("the search finds less than 0.9 of the best acquisition of a grid in %d of 30 cases", missed)
	}
}
