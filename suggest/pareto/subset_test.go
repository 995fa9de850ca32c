package pareto

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSubset(t *testing.T) {
	reference := []float64{4, 4}
	points := [][]float64{{1, 3}, {2, 2}, {3, 1}, {2, 2}, {3, 3}, {5, 0}, {math.NaN(), 0}}
	// Alone they have 3, 4, 3, 4, 1, 0, 0; beside {2, 2} the first has 1 and the third 1.
	for k, want := range [][]int{{}, {1}, {1, 0}, {1, 0, 2}, {1, 0, 2}} {
		if diff := cmp.Diff(want, Subset(points, reference, k)); diff != "" {
			t.Errorf("%d points (-want +got):\n%s", k, diff)
		}
	}
}

// Against all subsets of the size: at least 1 - 1/e of the best, and everything where the
// size is that of the front.
func TestSubsetRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		m := 2 + rng.IntN(2)
		points := randomPoints(rng, 8, m, 0)
		reference := make([]float64, m)
		for j := range reference {
			reference[j] = 0.9
		}
		volume := func(mask int) float64 {
			var some [][]float64
			for i, p := range points {
				if mask>>i&1 == 1 {
					some = append(some, p)
				}
			}
			return Hypervolume(some, reference)
		}
		const k = 3
		best := 0.0
		for mask := range 1 << len(points) {
			ones := 0
			for i := range points {
				ones += mask >> i & 1
			}
			if ones == k {
				best = math.Max(best, volume(mask))
			}
		}
		mask := 0
		for _, i := range Subset(points, reference, k) {
			mask |= 1 << i
		}
		if got := volume(mask); got < (1-1/math.E)*best || got > best+1e-12 {
			t.Fatalf("%v: hypervolume %v of %b, the best is %v", points, got, mask, best)
		}
		mask = 0
		for _, i := range Subset(points, reference, len(points)) {
			mask |= 1 << i
		}
		if got, want := volume(mask), volume(1<<len(points)-1); math.Abs(got-want) > 1e-12 {
			t.Fatalf("%v: hypervolume %v of the whole front %b, want %v", points, got, mask, want)
		}
	}
}
