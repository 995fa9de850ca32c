package engine

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/suggest"
)

// Thinning keeps the ends of runs.
func TestThin(t *testing.T) {
	var all []suggest.Evaluation
	for run := range int64(50) {
		for i := range 64 {
			all = append(all, suggest.Evaluation{Run: run + 1, Cost: float64(i + 1)})
		}
	}
	if got := thin(all, len(all)); len(got) != len(all) {
		t.Errorf("%d of %d", len(got), len(all))
	}
	got := thin(all, 350)
	for i, e := range got { // 7 of each
		if want := math.Pow(64, float64(i%7+1)/7); i%7 == 6 && e.Cost != 64 || math.Abs(e.Cost-want) > 0.5 || e.Run != int64(i/7)+1 {
			t.Errorf("evaluation %d: run %d, step %g", i, e.Run, e.Cost)
		}
	}
	got = thin(all, 20)
	for _, e := range got {
		if e.Cost != 64 {
			t.Errorf("step %g", e.Cost)
		}
	}
	if len(got) != 20 || got[19].Run != 50 {
		t.Errorf("%d runs, the last %d", len(got), got[len(got)-1].Run)
	}
}
