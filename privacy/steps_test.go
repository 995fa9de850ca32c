package privacy

import (
	"math"
	"testing"
)

func TestStepsPerEpoch(t *testing.T) {
	// Halves follow Avent et al.'s code, which rounds half to even.
	for _, tc := range []struct{ n, m, want int64 }{
		{30956, 8, 3870}, {30956, 128, 242}, {60000, 64, 938}, {60000, 192, 312}, {60000, 320, 188},
		{60000, 960, 62}, {60000, 1600, 38}, {10, 10, 1}, {10, 9, 1}, {1, 1, 1}, {1000000000, 1, 1000000000},
	} {
		if got, err := StepsPerEpoch(tc.n, tc.m); err != nil || got != tc.want {
			t.Errorf("StepsPerEpoch(%d, %d) = %d, %v, want %d", tc.n, tc.m, got, err, tc.want)
		}
	}
	if got, err := Steps(30956, 128, 10); err != nil || got != 2420 {
		t.Errorf("Steps = %d, %v", got, err)
	}
	for _, tc := range []struct {
		n, m, epochs int64
		field        string
	}{
		{0, 1, 1, "dataset_size"}, {5, 0, 1, "batch_size"}, {5, 6, 1, "batch_size"},
		{5, 1, -1, "epochs"}, {5, 1, math.MaxInt64, "epochs"},
	} {
		_, err := Steps(tc.n, tc.m, tc.epochs)
		if fe := FieldErrors(err); len(fe) != 1 || fe[0].Field != tc.field {
			t.Errorf("Steps(%d, %d, %d): %v", tc.n, tc.m, tc.epochs, err)
		}
	}
}
