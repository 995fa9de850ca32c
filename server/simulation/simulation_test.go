package simulation

import (
	"flag"
	"strings"
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
	for at := *seed; at < *seed+20; at++ {
		_, first := simulate(t, at, false)
		_, second := simulate(t, at, false)
		was, is := strings.Split(first, "\n"), strings.Split(second, "\n")
		for i := range min(len(was), len(is)) {
			if was[i] != is[i] {
				t.Errorf("seed %d: line %d was\n%s\nand is\n%s\nafter\n%s", at, i+1, was[i], is[i], was[max(0, i-1)])
				break
			}
		}
		if len(was) != len(is) {
			t.Errorf("seed %d: %d lines, and then %d", at, len(was), len(is))
		}
	}
}
