//go:build long

package analysis_test

import "testing"

// In at least 16 of 20 seeds the intervals of Ishigami's indices cover, each for itself.
func TestIntervalsCover(t *testing.T) {
	for i, n := range ishigami().coverage(t, 0, 20) {
		if n < 16 {
			t.Errorf("index %d is covered in %d of 20 seeds", i, n)
		}
	}
	ishigami().coverage(t, 100, 20) // other seeds, which decided nothing
	sobolG(0, 1, 4.5, 9).coverage(t, 0, 20)
}

// On average over 20 seeds the band of slices covers the function at 16 of 20 places.
func TestBandsOfSlicesCover(t *testing.T) {
	var mean float64
	for seed := range uint64(20) {
		mean += sliceCoverage(t, seed) / 20
	}
	if t.Logf("the band covers at %.3f of the places", mean); mean < 16./20 {
		t.Errorf("the band covers at %g of the places", mean)
	}
}
