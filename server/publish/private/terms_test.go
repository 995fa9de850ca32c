package private

import (
	"math"
	"testing"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// A budget is scarce by the share of the trials left for which it does not pay, over all shards.
func TestScarcity(t *testing.T) {
	for _, tt := range []struct {
		next  int64
		spent []float64
		want  float64
	}{
		{1, []float64{0}, 0.75}, // 4 of 16 typical runs
		{1, []float64{0, 0}, 0.5},
		{14, []float64{1}, 0}, // 3 of 3
		{13, []float64{2}, 0.5},
		{17, []float64{0}, 0}, // no trial is left
		{1, []float64{4}, 1},
	} {
		record := &storev1.StudyRecord{
			NextTrialNumber: tt.next,
			Study:           &dparetov1.Study{Spec: &dparetov1.StudySpec{Budget: &dparetov1.Budget{MaxTrials: 16}}},
			PrivateMode:     &storev1.PrivateModeRecord{TrainBudget: 4, TypicalCost: 1, ShardCosts: tt.spent},
		}
		if got := scarcity(record); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("trial %d after %v: %g, want %g", tt.next, tt.spent, got, tt.want)
		}
	}
}
