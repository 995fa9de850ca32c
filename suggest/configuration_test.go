package suggest_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Pooling evaluations of one point gives the mean and standard error of all
// their runs together.
func TestPool(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	q := space.Point{1}
	h := &suggest.History{}
	var all []float64
	for _, runs := range []int{4, 1, 7, 1} {
		sample := make([]float64, runs)
		for i := range sample {
			sample[i] = rng.NormFloat64()
		}
		all = append(all, sample...)
		mean, sd := stat.MeanStdDev(sample, nil)
		h.Evaluations = append(h.Evaluations,
			suggest.Evaluation{Point: q, Values: []float64{mean}, StdErrors: []float64{sd / math.Sqrt(float64(runs))}, Runs: runs},
			suggest.Evaluation{Point: space.Point{float64(runs)*10 + float64(len(all))}, Values: []float64{0}, StdErrors: []float64{0.1}})
	}
	pooled := h.Configurations()
	if len(pooled) != 5 {
		t.Fatalf("%d configurations, want 5", len(pooled))
	}
	c := pooled[0]
	mean, sd := stat.MeanStdDev(all, nil)
	if c.Runs != 13 || len(c.Evaluations) != 4 {
		t.Errorf("%d runs of %d evaluations, want 13 of 4", c.Runs, len(c.Evaluations))
	}
	if want := sd / math.Sqrt(13); math.Abs(c.Values[0]-mean) > 1e-12 || math.Abs(c.StdErrors[0]-want) > 1e-12 {
		t.Errorf("pooled %g ± %g, want %g ± %g", c.Values[0], c.StdErrors[0], mean, want)
	}
	for i, c := range pooled[1:] { // each of one evaluation, between those that are pooled
		if at := 2*i + 1; !slices.Equal(c.Evaluations, []int{at}) || !slices.Equal(c.Point, h.Evaluations[at].Point) {
			t.Errorf("configuration %d at %v has evaluations %v", i+1, c.Point, c.Evaluations)
		}
	}
}

// A pooled mean is unknown where one of the standard errors is.
func TestPoolUnknown(t *testing.T) {
	h := &suggest.History{Evaluations: []suggest.Evaluation{
		{Point: space.Point{1}, Values: []float64{1}, Runs: 3},
		{Point: space.Point{1}, Values: []float64{2}},
	}}
	c := h.Configurations()[0]
	if c.Values[0] != 1.25 || !math.IsNaN(c.StdErrors[0]) {
		t.Errorf("pooled %g ± %g, want 1.25 ± NaN", c.Values[0], c.StdErrors[0])
	}
}
