package designers_test

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers"
	"github.com/dpareto/dpareto/suggest/designers/dpareto"
	"github.com/dpareto/dpareto/suggest/designers/engine"
	"github.com/dpareto/dpareto/suggest/space"
)

// level is a trade-off that a constant point with ε = 0 and an error of 0.5 dominates up to ε = 1.
func level(constants ...[]float64) *suggest.Problem {
	return &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "epsilon", Kind: space.Double, Min: 0.02, Max: 2, Scale: space.Log},
			{Name: "x", Kind: space.Double, Min: 0, Max: 1},
		}},
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 2, Known: func(q space.Point) float64 { return q[0] }},
			{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1},
		},
		Constants: constants,
	}
}

func levelError(q space.Point) float64 {
	return 0.1 + 0.8/(1+q[0]) + 0.1*(q[1]-0.5)*(q[1]-0.5)
}

// below counts how many of some runs, after a design that covers the space, are where the constant point
// surely dominates.
func below(t *testing.T, name string, p *suggest.Problem) (count int) {
	t.Helper()
	d, _ := designers.ByName(name, designers.Options{InitialPoints: 12})
	h := new(suggest.History)
	observe := func(q space.Point) {
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{
			Point: q, Values: []float64{q[0], levelError(q)}, StdErrors: []float64{0, 1e-4}, Runs: 4,
		})
	}
	for i := range 12 {
		observe(space.Point{0.02 * math.Pow(100, float64(i)/11), math.Mod(0.13+0.618*float64(i), 1)})
	}
	for i := range 10 {
		s, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: 4, Number: int64(13 + i)})
		require.NoError(t, err)
		if s[0].FallbackReason != "" {
			t.Fatal(s[0].FallbackReason)
		}
		if math.IsNaN(s[0].Acquisition) || math.IsInf(s[0].Acquisition, 0) {
			t.Errorf("acquisition %g", s[0].Acquisition)
		}
		if s[0].Point[0] < 0.9 {
			count++
		}
		observe(s[0].Point)
	}
	return count
}

// A designer spends no run where the constant point surely dominates, and would without it.
func TestNoRunsWhereAConstantDominates(t *testing.T) {
	for _, name := range []string{engine.Name, engine.NameEHVI, engine.NameEHVIExact, dpareto.Name} {
		t.Run(name, func(t *testing.T) {
			if n := below(t, name, level([]float64{0, 0.5})); n > 0 {
				t.Errorf("%d of 10 runs are where the constant point dominates", n)
			}
			if below(t, name, level()) == 0 {
				t.Error("no run is there without the constant point either: this tests nothing")
			}
		})
	}
}

func TestConstantsAreChecked(t *testing.T) {
	for _, values := range [][]float64{{0}, {0, math.NaN()}, {math.Inf(1), 0}} {
		if level(values).Validate() == nil {
			t.Errorf("constant %v is accepted", values)
		}
	}
	if err := level([]float64{0, 0.5}).Validate(); err != nil {
		t.Error(err)
	}
}
