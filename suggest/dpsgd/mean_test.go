package dpsgd

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/surrogate"
)

// The runs that the program ships are complete, and what a run of DP training can be.
func TestPublicRuns(t *testing.T) {
	bySurface := make(map[string]int)
	for i, r := range PublicRuns() {
		bySurface[r.Surface]++
		positive := []float64{r.Run.LearningRate, r.Run.ClippingNorm, r.Run.Noise, r.Run.LotSize, r.Run.Steps, r.Records}
		if slices.ContainsFunc(positive, func(v float64) bool { return !(v > 0) || math.IsInf(v, 1) }) || !(r.Error >= 0 && r.Error <= 1) {
			t.Errorf("run %d: %+v", i, r)
		}
	}
	if len(bySurface) < 8 {
		t.Errorf("surfaces %v", bySurface)
	}
	for name, n := range bySurface {
		if n < 100 {
			t.Errorf("%d runs of %s", n, name)
		}
	}
}

// A row of the file and the run that was read from it are the same.
func TestRow(t *testing.T) {
	r := PublicRuns()[0]
	if got, want := r.Row(), []string{r.Surface, r.Dataset, "sgd"}; !slices.Equal(got[:3], want) || len(got) != len(Columns) {
		t.Errorf("row %q", got)
	}
	r.Normalized = true
	if got := r.Row()[2]; got != "normalized" {
		t.Errorf("optimizer %q", got)
	}
}

// Points are spread: the first ones are far apart, none occurs twice, and there are no more than different ones.
func TestSpread(t *testing.T) {
	x := [][]float64{{0, 0}, {1, 0}, {0, 0}, {0.1, 9}, {1, 0}, {0.5, 0}}
	if got, want := spread(x, []float64{1, 1e6}, 10), []int{0, 1, 5, 3}; !slices.Equal(got, want) {
		t.Errorf("points %v, want %v", got, want)
	}
	if got := spread(x, []float64{1, 1e6}, 2); len(got) != 2 {
		t.Errorf("%d points of 2", len(got))
	}
}

// Data sets can be left out, and optimizers are apart.
func TestPublicMean(t *testing.T) {
	for _, normalized := range []bool{false, true} {
		all := PublicMean(normalized)
		if len(all.Points) != meanPoints || all != PublicMean(normalized) {
			t.Errorf("%d points", len(all.Points))
		}
		sets := PublicDatasets(normalized)
		if !slices.Contains(sets, "adult") || slices.Contains(sets, "kddcup99") {
			t.Errorf("data sets %q", sets)
		}
		for _, without := range [][]string{sets, sets[1:]} {
			if m := PublicMean(normalized, without...); m != nil {
				t.Errorf("%d points without %q", len(m.Points), without)
			}
		}
		without := PublicMean(normalized, "adult")
		if slices.Equal(without.Values, all.Values) {
			t.Error("leaving data out changes nothing")
		}
		for i, v := range without.Values {
			if math.IsNaN(v) || math.Abs(v) > 2 {
				t.Errorf("value %d is %g", i, v)
			}
		}
	}
	if slices.Equal(PublicMean(false).Values, PublicMean(true).Values) {
		t.Error("both optimizers have the same mean")
	}
}

// What public runs say of a data set that had no part in them is much of the truth.
func TestPublicMeanPredicts(t *testing.T) {
	for _, normalized := range []bool{false, true} {
		for _, left := range PublicDatasets(normalized) {
			m := PublicMean(normalized, left)
			gp, err := surrogate.New(nil, surrogate.Hyperparameters{LengthScales: m.LengthScales, SignalVariance: m.Variance}, surrogate.Observations{X: m.Points, Y: m.Values})
			require.NoError(t, err)
			var predicted, measured []float64
			for _, r := range PublicRuns() {
				if r.Dataset == left && r.Normalized == normalized {
					x := Scale(r.Run.Coordinates(normalized))
					mean, _ := gp.Predict(x[:])
					predicted, measured = append(predicted, mean), append(measured, r.logit())
				}
			}
			if c := stat.Correlation(predicted, measured, nil); c < 0.35 {
				t.Errorf("normalized %t: the correlation with the runs on %s is %.2f", normalized, left, c)
			}
		}
	}
}
