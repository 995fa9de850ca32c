package spec

import (
	"math"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func TestCloseTo(t *testing.T) {
	inf := math.Inf(1)
	for _, test := range []struct {
		x, y, tolerance float64
		want            bool
	}{
		{1, 1, 0, true},
		{1, 1 + 1e-7, 1e-6, true},
		{1, 1 + 1e-5, 1e-6, false},
		{0, 1e-300, 1e-6, false},
		{inf, inf, 1e-6, true},
		{1, inf, 1e-6, false},
		{-inf, inf, 1, false},
	} {
		if got := closeTo(test.x, test.y, test.tolerance); got != test.want {
			t.Errorf("closeTo(%g, %g, %g) = %v", test.x, test.y, test.tolerance, got)
		}
	}
}

// Mean, standard error and range of runs, against their definitions.
func TestSummarize(t *testing.T) {
	value := &dparetov1.MetricValue{Runs: []float64{1, 2, 4, 9}}
	summarize(value)
	// Σ(x−4)² = 9+4+0+25 = 38; s² = 38/3; the standard error is √(38/3/4).
	if value.GetValue() != 4 || value.GetMin() != 1 || value.GetMax() != 9 || math.Abs(value.GetStandardError()-math.Sqrt(38.0/12)) > 1e-15 {
		t.Errorf("summary %v", value)
	}
	single := &dparetov1.MetricValue{Runs: []float64{0.25}}
	summarize(single)
	if single.GetValue() != 0.25 || single.StandardError != nil {
		t.Errorf("summary of one run %v", single)
	}
}
