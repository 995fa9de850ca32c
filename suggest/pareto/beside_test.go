package pareto_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/suggest/pareto"
)

// NonDominatedBeside is its definition, point by point, on coarse grids with ties and NaNs.
func TestNonDominatedBeside(t *testing.T) {
	rng := rand.New(rand.NewPCG(22, 3))
	for range 300 {
		dim := 1 + rng.IntN(4)
		draw := func(n int) [][]float64 {
			points := make([][]float64, n)
			for i := range points {
				for range dim {
					points[i] = append(points[i], float64(rng.IntN(5)))
				}
			}
			return points
		}
		points, fixed := draw(rng.IntN(12)), draw(rng.IntN(3))
		if len(points) > 0 {
			points[0][0] = math.NaN()
		}
		want := []int{}
		for i, p := range points {
			beats := func(q []float64) bool { return pareto.Dominates(q, p) }
			if !slices.ContainsFunc(p, math.IsNaN) && !slices.ContainsFunc(points, beats) && !slices.ContainsFunc(fixed, beats) &&
				!slices.ContainsFunc(fixed, func(q []float64) bool { return slices.Equal(q, p) }) {
				want = append(want, i)
			}
		}
		got := append([]int{}, pareto.NonDominatedBeside(points, fixed)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("points %v beside %v (-want +got):\n%s", points, fixed, diff)
		}
	}
}
