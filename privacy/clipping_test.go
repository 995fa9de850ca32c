package privacy

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

// A raw count, of ones for gradients within the norm, has the sensitivity 1, as the centred one has if a record is
// replaced.
func TestJointNoiseVectors(t *testing.T) {
	adjacencies := map[string]Adjacency{"0.5": AddRemove, "1.0": ReplaceOne}
	tb := privacytest.SharedVectors(t, "adaptive_clipping_public.csv")
	for _, row := range tb.Rows {
		gradients, count := tb.Float(row, "z_delta"), tb.Float(row, "sigma_b")
		adjacency, ok := adjacencies[tb.Text(row, "sens_b")]
		if !ok {
			t.Fatalf("%v: sensitivity", row)
		}
		if math.IsInf(gradients, 1) {
			// The count alone has more than all of the budget.
			if got, err := JointNoise(1e9, count, adjacency); err != nil || got > tb.Float(row, "z")*(1+1e-9) {
				t.Errorf("%v: %v, %v", row, got, err)
			}
			continue
		}
		got, err := JointNoise(gradients, count, adjacency)
		tb.Compare("z", got, tb.Float(row, "z"))
		if want := tb.Float(row, "z"); err != nil || got > want*(1+1e-14) || privacytest.RelErr(got, want) > 1e-13 {
			t.Errorf("%v: %.17g, %v", row, got, err)
		}
	}
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := JointNoise(1, bad, AddRemove); len(FieldErrors(err)) != 1 {
			t.Errorf("count noise %g: %v", bad, err)
		}
	}
}
