package private

import (
	"slices"
	"testing"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
)

// Planned measurements are as many as planned, evenly spaced in the logarithm of the step; a worker that
// reports at other steps gets the first ones after.
func TestPlannedCheckpoints(t *testing.T) {
	for _, tt := range []struct {
		last, planned, every int64
		want                 []int64
	}{
		{64, 0, 1, nil},
		{64, 1, 1, []int64{8}},
		{64, 2, 1, []int64{4, 16}},
		{64, 5, 1, []int64{2, 4, 8, 16, 32}},
		{6, 3, 1, []int64{2, 3, 4}},
		{6, 5, 1, []int64{1, 2, 3, 4, 5}},
		{6, 50, 1, []int64{1, 2, 3, 4, 5}},
		{64, 2, 10, []int64{10, 20}},
		{64, 5, 20, []int64{20, 40}},
	} {
		paid := &storev1.PrivateTrialRecord{Checkpoints: tt.planned}
		var got []int64
		for step := tt.every; step < tt.last; step += tt.every {
			if isPlanned(step, tt.last, paid) {
				got = append(got, step)
				paid.LastCheckpoint = step
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%d of %d steps, reported every %d: %v, want %v", tt.planned, tt.last, tt.every, got, tt.want)
		}
		if len(got) > 0 && isPlanned(got[0], tt.last, paid) {
			t.Errorf("step %d is planned twice", got[0])
		}
	}
}
