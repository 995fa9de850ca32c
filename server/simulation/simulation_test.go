package simulation

import (
	"flag"
	"testing"
)

var (
	seed      = flag.Uint64("seed", 1, "seed of the first history")
	histories = flag.Int("histories", 1000, "number of histories")
)

// Many histories, each from a seed of its own.
func TestHistories(t *testing.T) {
	for i := range uint64(*histories) {
		at := *seed + i
		faults, _ := simulate(t, at, true)
		for _, fault := range faults {
			t.Errorf("seed %d: %s", at, fault)
		}
	}
}

// The same seed gives the same history.
func TestReplay(t *testing.T) {
	for seed := range uint64(20) {
		_, first := simulate(t, seed, false)
		_, second := simulate(t, seed, false)
		if first != second {
			t.Fatalf("seed %d gives\n%s\nand\n%s", seed, first, second)
		}
	}
}
