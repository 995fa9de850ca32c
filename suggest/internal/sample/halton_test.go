package sample

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestRemainder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for m := uint64(2); m < 100; m++ {
		xs := []uint64{0, 1, m - 1, m, math.MaxUint64, math.MaxUint64 / m * m, math.MaxUint64/m*m - 1}
		for range 1000 {
			xs = append(xs, rng.Uint64())
		}
		for _, x := range xs {
			if got := remainder(x, m); got != x%m {
				t.Fatalf("%d mod %d = %d, want %d", x, m, got, x%m)
			}
		}
	}
}
