package pld

import (
	"math"
	"testing"
)

// TestAllocationTiers: ε does not fall where a tier of larger tails begins, although its own pair may have less there.
func TestAllocationTiers(t *testing.T) {
	less := 0
	for _, tc := range []struct {
		steps, epochs int64
		sigma         float64
	}{{100, 1, 1}, {1000, 1, 0.7}, {30, 4, 2}, {5, 2, 0.5}, {200, 1, 0.3}} {
		pairs := Allocation(tc.steps, 1, tc.epochs, tc.sigma)
		hull := func(func(float64) float64) Pair { return Pure(1) } // not for one run
		replace := AllocationReplace(tc.steps, 1, tc.epochs, tc.sigma, hull)
		room := math.Log(float64(tc.epochs))
		for tier, tail := range allocationTails[:len(allocationTails)-1] {
			border := tail + room + singleSpill
			for i, pair := range [...]Pair{pairs.Upper[0], pairs.Upper[1], pairs.Lower[0], pairs.Lower[1], replace.Upper[0]} {
				before, ok := pair.Single(border)
				beyond, okBeyond := pair.Single(border * (1 + 1e-9))
				if !ok || !okBeyond || beyond < before*(1-1e-13) {
					t.Errorf("%+v, pair %d: epsilon %.15g at log δ = %g and %.15g (%t, %t) just below", tc, i, before, border, beyond, ok, okBeyond)
				}
				if p, ok := pair.(*allocationPair); ok {
					if own, _ := p.ofTier(tier + 1).Single(border); own < before*(1-1e-9) {
						less++
					}
				}
			}
		}
	}
	if less == 0 {
		t.Error("no tier has less than the one before: the test shows nothing")
	}
}
