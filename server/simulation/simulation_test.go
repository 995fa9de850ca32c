package simulation

import (
	"flag"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dpareto/dpareto/internal/testsize"
)

var (
	seed = flag.Uint64("seed", 1, "seed of the first history")
	// 300 histories find every fault that make simulate-faults puts into the server.
	histories = flag.Int("histories", testsize.Pick(300, 1000), "number of histories, of consecutive seeds")
	faulty    = flag.Int("faulty", 10, "number of faulty histories to stop at")
	story     = flag.Bool("story", false, "print what happened in the histories")
)

// Many histories, each from a seed of its own.
func TestHistories(t *testing.T) {
	var next, failed atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d histories, from seed %d on, %d of them faulty", min(next.Load(), int64(*histories)), *seed, failed.Load())
	})
	for range runtime.GOMAXPROCS(0) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for i := next.Add(1); i <= int64(*histories) && failed.Load() < int64(*faulty); i = next.Add(1) {
				at := *seed + uint64(i) - 1
				found, told := simulate(t, at, !*story)
				if *story {
					t.Log(told)
				}
				for _, fault := range found {
					t.Errorf("seed %d: %s", at, fault)
				}
				if len(found) > 0 {
					failed.Add(1)
				}
			}
		})
	}
}

// The same seed gives the same history.
func TestReplay(t *testing.T) {
	for at := *seed; at < *seed+uint64(testsize.Pick(5, 20)); at++ {
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
