package pareto

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSubset(t *testing.T) {
	reference := []float64{10, 1}
	points := [][]float64{{0.1, 0.4}, {0.5, 0.25}, {2, 0.2}, {8, 0.17}, {11, 0.1}, {0.5, 0.25}, {3, 0.9}}
	// Alone the points are worth 5.94, 7.125, 6.4, 1.66. To the second one the others
	// add 0.4·0.6, 8·0.05, 2·0.08; and to the second and third 0.24 and 2·0.03.
	for k, want := range [][]int{nil, {1}, {1, 2}, {1, 2, 0}, {1, 2, 0, 3}, {1, 2, 0, 3}} {
		if got := Subset(points, reference, k); !slices.Equal(got, want) {
			t.Errorf("%d points: %v, want %v", k, got, want)
		}
	}
	if got := Subset(nil, reference, 3); len(got) != 0 {
		t.Errorf("of no points: %v", got)
	}
}

// The greedy subset is within its guarantee of the best one.
func TestSubsetGuarantee(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 0))
	for objectives := 2; objectives <= 3; objectives++ {
		reference := slices.Repeat([]float64{1}, objectives)
		for range 20 {
			points := make([][]float64, 9)
			for i := range points {
				for range objectives {
					points[i] = append(points[i], rng.Float64())
				}
			}
			of := func(indices []int) float64 {
				var subset [][]float64
				for _, i := range indices {
					subset = append(subset, points[i])
				}
				return Hypervolume(subset, reference)
			}
			best := 0.0
			for a := range points {
				for b := range a {
					for c := range b {
						best = max(best, of([]int{a, b, c}))
					}
				}
			}
			if got := of(Subset(points, reference, 3)); got < (1-1/math.E)*best || got > best*(1+1e-12) {
				t.Errorf("hypervolume %v, best %v", got, best)
			}
			if got, all := of(Subset(points, reference, 9)), Hypervolume(points, reference); math.Abs(got-all) > 1e-12 {
				t.Errorf("hypervolume %v of a subset without limit, want %v", got, all)
			}
		}
	}
}

func TestSubsetPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a negative size does not panic")
		}
	}()
	Subset(nil, []float64{1}, -1)
}
