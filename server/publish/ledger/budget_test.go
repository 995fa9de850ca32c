package ledger

import (
	"math"
	"testing"
)

func TestRoundedDown(t *testing.T) {
	for _, tt := range []struct {
		x    float64
		want float64
	}{{0, 0}, {1, 1}, {0.12345678, 0.123456}, {99999.99, 99999.9}, {1.9999999e-9, 1.99999e-9}} {
		if got := roundedDown(tt.x, 6); got > tt.x || math.Abs(got-tt.want) > 1e-12*tt.want {
			t.Errorf("%v is rounded to %v, want %v", tt.x, got, tt.want)
		}
	}
}
