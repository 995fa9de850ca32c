package dpsgd

import (
	"math"
	"slices"
	"testing"
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
	if len(bySurface) < 4 {
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
	all := PublicMean(false)
	if len(all.Points) != meanPoints || all != PublicMean(false) {
		t.Errorf("%d points", len(all.Points))
	}
	sets := PublicDatasets(false)
	if !slices.Contains(sets, "adult") || slices.Contains(sets, "kddcup99") {
		t.Errorf("data sets %q", sets)
	}
	for _, without := range [][]string{sets, sets[1:]} {
		if m := PublicMean(false, without...); m != nil {
			t.Errorf("%d points without %q", len(m.Points), without)
		}
	}
	if m := PublicMean(true); m != nil {
		t.Errorf("%d points of normalised optimizers, which no two data sets have", len(m.Points))
	}
	without := PublicMean(false, "adult")
	if slices.Equal(without.Values, all.Values) {
		t.Error("leaving data out changes nothing")
	}
	for i, v := range without.Values {
		if math.IsNaN(v) || math.Abs(v) > 2 {
			t.Errorf("value %d is %g", i, v)
		}
	}
}
