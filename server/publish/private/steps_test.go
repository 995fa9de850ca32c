package private

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Scored steps begin with 1 and end with the length of the run, are as many as asked for where the run is
// long enough, and are nowhere further from the logarithmic scale than distinct integers must be.
func TestScoredSteps(t *testing.T) {
	for _, tc := range []struct {
		last, n int64
		want    []int64
	}{
		{1, 10, []int64{1}},
		{4, 10, []int64{1, 2, 3, 4}},
		{10, 10, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{20, 10, []int64{1, 2, 3, 4, 5, 6, 7, 10, 14, 20}},
		{1000, 4, []int64{1, 10, 100, 1000}},
		{50, 1, []int64{50}},
		{50, 2, []int64{1, 50}},
	} {
		if diff := cmp.Diff(tc.want, scoredSteps(tc.last, tc.n)); diff != "" {
			t.Errorf("%d of %d steps (-want +got):\n%s", tc.n, tc.last, diff)
		}
	}
	for last := int64(1); last <= 300; last++ {
		for n := int64(1); n <= 40; n++ {
			steps := scoredSteps(last, n)
			if int64(len(steps)) != min(n, last) || steps[len(steps)-1] != last || n > 1 && steps[0] != 1 {
				t.Fatalf("%d of %d steps: %v", n, last, steps)
			}
			for i := 1; i < len(steps); i++ {
				ideal := math.Pow(float64(last), float64(i)/float64(len(steps)-1))
				if steps[i] <= steps[i-1] || float64(steps[i]) < ideal-0.5-1e-9 || float64(steps[i]) > ideal+0.5+1e-9 && steps[i] != steps[i-1]+1 {
					t.Fatalf("%d of %d steps: %v", n, last, steps)
				}
			}
		}
	}
	if steps := scoredSteps(1<<53, 1000); steps[999] != 1<<53 || steps[998] >= 1<<53 {
		t.Errorf("the longest run ends with steps %v", steps[998:])
	}
}
