package samplers

import (
	"math"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// TestCompare: on made-up data all samplers train at all ε, noise falls with ε, and shuffling needs most at small ε
// of those that take nothing back.
func TestCompare(t *testing.T) {
	d := All[0]
	d.Settings = map[string]string{"dataset": "adult", "generated": "true", "model": "logistic-regression"}
	d.Rows, d.Epochs, d.Rates = 4000, 2, []float64{0.5}
	runs := 0
	points, err := Compare(t.Context(), d, "", 2, func(done int) {
		if runs++; done != runs {
			t.Errorf("run %d: %d done", runs, done)
		}
	})
	require.NoError(t, err)
	if len(points) != len(all)*len(Epsilons) || d.Runs(2) != int64(runs) {
		t.Fatalf("%d points of %d runs", len(points), runs)
	}
	noise := make(map[string]float64) // at ε = 0.3
	for i, p := range points {
		if !(p.Error > 0 && p.Error < 0.6 && p.Margin >= 0 && p.Noise > 0) {
			t.Errorf("%+v", p)
		}
		if i%len(Epsilons) > 0 && p.Noise >= points[i-1].Noise {
			t.Errorf("%+v has no less noise than %+v", p, points[i-1])
		}
		if p.Epsilon == 0.3 {
			noise[p.Sampler] = p.Noise
		}
	}
	for name, x := range noise {
		if name != "shuffling" && !strings.HasPrefix(name, "DP-MF") && x >= noise["shuffling"] {
			t.Errorf("%s has noise %g, shuffling %g", name, x, noise["shuffling"])
		}
	}
}

// TestSums: of independent noise the sum of n gradients has √n, and every epoch counts; a BLT beats it and a tree, and is
// not far from the best banded matrix.
func TestSums(t *testing.T) {
	rows, err := Sums(t.Context())
	require.NoError(t, err)
	for _, row := range rows {
		independent, best, blt, tree := row[1].(float64), row[3].(float64), row[4].(float64), row[5].(float64)
		if blt < best || blt > 1.25*best || blt > 0.7*tree || blt > 0.6*independent {
			t.Errorf("%v", row)
		}
	}
	if got, want := rows[0][1].(float64), math.Sqrt(4*129/2.0); math.Abs(got-want) > 1e-9 {
		t.Errorf("independent noise of 4 epochs of 32 lots: %g, want %g", got, want)
	}
}
