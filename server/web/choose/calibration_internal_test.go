package choose

import "testing"

// A verdict needs enough trials. What chance may explain is no fault, and too low a share is no calibration.
func TestNewCalibration(t *testing.T) {
	for _, test := range []struct {
		coverage float64
		trials   int
		want     string
	}{
		{1, 9, "Calibration not known yet"}, {0.5, 9, "Calibration not known yet"},
		{1, 10, "Calibrated"}, {0.86, 25, "Calibrated"}, {0.79, 25, "Calibration not known yet"}, {0.77, 25, "Too sure"},
		{0.89, 1000, "Calibrated"}, {0.87, 1000, "Too sure"},
	} {
		if got := newCalibration(test.coverage, test.trials); got.Verdict != test.want {
			t.Errorf("%v of %d trials: %s, want %s", test.coverage, test.trials, got.Verdict, test.want)
		}
	}
}
