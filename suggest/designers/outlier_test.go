package designers_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// divergent is a study of two parameters in [0, 1] in which some runs report absurd values.
type divergent struct {
	reference float64
	runs      int
	most      float64 // hypervolume that is possible
	objective func(x, y float64) (a, b float64)
}

// parabolas and waves are what faults were found with.
var (
	parabolas = divergent{1.2, 40, 1.25, func(x, y float64) (a, b float64) {
		return x*x + 0.1*y, (x-1)*(x-1) + 0.1*(y-0.5)*(y-0.5)
	}}
	waves = divergent{1, 30, 0.706, func(x, y float64) (a, b float64) {
		return (x-0.3)*(x-0.3) + (y-0.7)*(y-0.7) + 0.05*(1+math.Sin(9*x)), 0.2 + 0.5*(1-x) + 0.2*(y-0.5)*(y-0.5)
	}}
)

// study runs a study in which the run of a number reports other values than it has. It returns the hypervolume of the
// runs that reported their values, and of the front that a model claims.
func (d divergent) study(t *testing.T, name string, infer bool, reported func(run int, v []float64) []float64) (evaluated, claimed float64) {
	t.Helper()
	p := &suggest.Problem{Space: &space.Space{Parameters: []space.Parameter{
		{Name: "x", Kind: space.Double, Min: 0, Max: 1}, {Name: "y", Kind: space.Double, Min: 0, Max: 1},
	}}}
	for _, objective := range []string{"a", "b"} {
		p.Objectives = append(p.Objectives, suggest.Objective{Name: objective, Goal: suggest.Minimize, Reference: d.reference, InferReference: infer})
	}
	designer, ok := designers.ByName(name, designers.Options{})
	if !ok {
		t.Fatalf("no designer %s", name)
	}
	h := new(suggest.History)
	var truth [][]float64
	for run := 1; run <= d.runs; run++ {
		s, err := designer.Suggest(t.Context(), p.Inferred(h), h, suggest.Request{Count: 1, Seed: 1, Number: int64(run)})
		require.NoError(t, err)
		if s[0].FallbackReason != "" {
			t.Errorf("run %d: %s", run, s[0].FallbackReason)
		}
		a, b := d.objective(s[0].Point[0], s[0].Point[1])
		values := reported(run, []float64{a, b})
		if slices.Equal(values, []float64{a, b}) {
			truth = append(truth, values)
		}
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: s[0].Point, Values: values})
	}
	m, err := model.Fit(t.Context(), p.Inferred(h), h, model.Options{Seed: 1, ForReading: true})
	require.NoError(t, err)
	var front [][]float64
	for _, e := range m.Estimates() {
		if e.OnFront {
			front = append(front, []float64{e.Predictions[0].Median, e.Predictions[1].Median})
		}
	}
	reference := []float64{d.reference, d.reference}
	return pareto.Hypervolume(truth, reference), pareto.Hypervolume(front, reference)
}

// all reports every value.
func all(_ int, v []float64) []float64 { return v }

// instead replaces a value of some runs.
func instead(metric int, value float64, runs ...int) func(int, []float64) []float64 {
	return func(run int, v []float64) []float64 {
		v = slices.Clone(v)
		if slices.Contains(runs, run) {
			v[metric] = value
		}
		return v
	}
}

// Absurd values cost a study next to nothing, and its front is no better than possible.
func TestOutliers(t *testing.T) {
	for _, tt := range []struct {
		study  divergent
		metric int
		values []float64
		runs   []int
	}{
		{waves, 0, []float64{3, 10, 30, 100, 1000, 1e30}, []int{4}},
		{parabolas, 0, []float64{1000}, []int{6, 21, 34}},
		{parabolas, 1, []float64{1e6, 1e30}, []int{6, 21, 34}},
		{parabolas, 0, []float64{1e6, -1e30}, []int{1}},
	} {
		for _, infer := range []bool{false, true} {
			want, _ := tt.study.study(t, "default", infer, all)
			for _, value := range tt.values {
				if infer && value == 3 {
					continue // without a reference it may be a part of the front
				}
				t.Run(fmt.Sprintf("%g in runs %v, infer %v", value, tt.runs, infer), func(t *testing.T) {
					evaluated, claimed := tt.study.study(t, "default", infer, instead(tt.metric, value, tt.runs...))
					if !(evaluated > want-0.01) {
						t.Errorf("hypervolume %.4f, want the %.4f of a study without outliers", evaluated, want)
					}
					if !(claimed < tt.study.most) {
						t.Errorf("claimed %.4f, possible %g", claimed, tt.study.most)
					}
				})
			}
		}
	}
}

// All designers with a model bear absurd values.
func TestOutliersOtherDesigners(t *testing.T) {
	for _, name := range []string{"ehvi", "ehvi_exact", "dpareto", "nsga2"} {
		want, _ := waves.study(t, name, false, all)
		evaluated, claimed := waves.study(t, name, false, instead(0, 1e30, 4))
		if !(evaluated > want-0.02) || !(claimed < waves.most) {
			t.Errorf("%s: hypervolume %.4f, %.4f without outliers, claimed %.4f", name, evaluated, want, claimed)
		}
	}
}

// Where many runs of a region diverge, the search leaves it, and a value that grows steeply beyond the reference does no harm.
func TestDivergentRegion(t *testing.T) {
	diverge := func(x, y float64) (a, b float64) {
		a, b = parabolas.objective(x, y)
		if y > 0.5+0.3*x {
			a = 1e30
		}
		return a, b
	}
	climb := func(x, y float64) (a, b float64) {
		a, b = parabolas.objective(x, y)
		return a * math.Exp(40*max(0, y-0.6)), b
	}
	for name, objective := range map[string]func(x, y float64) (a, b float64){"cliff": diverge, "climb": climb} {
		d := parabolas
		d.objective = objective
		if evaluated, claimed := d.study(t, "default", false, all); !(evaluated > 1.235) || !(claimed < d.most) {
			t.Errorf("%s: hypervolume %.4f, claimed %.4f", name, evaluated, claimed)
		}
	}
}
