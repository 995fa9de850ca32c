package suggest_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// inferring returns a problem of two measured objectives without references.
func inferring(change func(*suggest.Problem)) *suggest.Problem {
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{{Name: "x", Kind: space.Double, Max: 100}}},
		Objectives: []suggest.Objective{
			{Name: "a", Goal: suggest.Minimize, InferReference: true},
			{Name: "b", Goal: suggest.Minimize, InferReference: true},
		},
	}
	if change != nil {
		change(p)
	}
	return p
}

// results returns a history of single runs with the given values.
func results(values ...[]float64) *suggest.History {
	h := new(suggest.History)
	for i, v := range values {
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: space.Point{float64(i)}, Values: v})
	}
	return h
}

// By hand: the worst value of the front and a tenth of its range beyond.
func TestInferredReference(t *testing.T) {
	maximized := func(p *suggest.Problem) { p.Objectives[1].Goal = suggest.Maximize }
	for name, tc := range map[string]struct {
		change func(*suggest.Problem)
		h      *suggest.History
		want   []float64
	}{
		"front":     {nil, results([]float64{1, 30}, []float64{2, 20}, []float64{4, 10}, []float64{9, 31}), []float64{4.3, 32}},
		"maximised": {maximized, results([]float64{1, 10}, []float64{2, 20}, []float64{4, 30}), []float64{4.3, 8}},
		"accuracy": {func(p *suggest.Problem) {
			maximized(p)
			p.Objectives[1].Transform = suggest.Logit
		}, results([]float64{1, 0.05}, []float64{2, 0.95}), []float64{2.1, 0}}, // −0.04 is no fraction
		"error":     {func(p *suggest.Problem) { p.Objectives[0].Transform = suggest.Logit }, results([]float64{0.99, 1}, []float64{0.5, 2}), []float64{1, 2.1}},
		"one":       {nil, results([]float64{2, -5}), []float64{2.2, -4.5}},
		"zero":      {nil, results([]float64{0, 1}), []float64{0.1, 1.1}},
		"no range":  {nil, results([]float64{2, 5}, []float64{7, 6}), []float64{2.5, 5.1}}, // 2 and 5 are best; 7 and 6 worst
		"prior":     {nil, &suggest.History{Prior: results([]float64{1, 4}, []float64{3, 2}).Evaluations}, []float64{3.2, 4.2}},
		"constants": {func(p *suggest.Problem) { p.Constants = [][]float64{{0, 10}} }, results([]float64{1, 5}, []float64{2, 4}), []float64{2.2, 10.6}},
		"given":     {func(p *suggest.Problem) { p.Objectives[0].InferReference, p.Objectives[0].Reference = false, 3 }, results([]float64{1, 30}, []float64{2, 20}, []float64{4, 10}), []float64{3, 31}},
		"all beyond what is given": {func(p *suggest.Problem) {
			p.Objectives[0].InferReference, p.Objectives[0].Reference = false, 0.5
		}, results([]float64{1, 30}, []float64{4, 10}), []float64{0.5, 32}},
		"infeasible": {func(p *suggest.Problem) {
			p.Constraints = []suggest.Constraint{{Name: "c", Lower: math.Inf(-1), Upper: 1}}
		}, results([]float64{1, 30, 0}, []float64{2, 20, 0}, []float64{4, 10, 2}), []float64{2.1, 31}},
		"not finite": {nil, results([]float64{1, 30}, []float64{2, 20}, []float64{math.Inf(1), 1}), []float64{2.1, 31}},
	} {
		p := inferring(tc.change)
		inferred := p.Inferred(tc.h)
		for j, want := range tc.want {
			if got := inferred.Objectives[j].Reference; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: reference %d is %g, want %g", name, j, got, want)
			}
		}
		if err := inferred.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without results a reference is the worst value, and a problem that gives all is itself.
func TestReferenceWithoutResults(t *testing.T) {
	for _, goal := range []suggest.Goal{suggest.Minimize, suggest.Maximize} {
		for _, transform := range []suggest.Transform{suggest.Identity, suggest.Log, suggest.Logit} {
			p := inferring(func(p *suggest.Problem) {
				p.Objectives[0].Goal, p.Objectives[0].Transform = goal, transform
				p.Objectives[0].Reference = suggest.UnknownReference(goal, transform)
			})
			if err := p.Inferred(new(suggest.History)).Validate(); err != nil {
				t.Errorf("%v, %v: %v", goal, transform, err)
			}
		}
	}
	p := inferring(func(p *suggest.Problem) {
		p.Objectives[0].InferReference, p.Objectives[1].InferReference = false, false
	})
	if p.Inferred(results([]float64{1, 2})) != p {
		t.Error("a problem with references is copied")
	}
}

// The floor of logarithms follows the reference, as that of a given one does.
func TestInferredFloor(t *testing.T) {
	p := inferring(func(p *suggest.Problem) { p.Objectives[0].Transform = suggest.Log }).Inferred(results([]float64{20, 1}, []float64{10, 2}))
	if o := p.Objectives[0]; o.Reference != 21 || o.Floor != 21*suggest.DefaultFloor {
		t.Errorf("reference %g and floor %g", o.Reference, o.Floor)
	}
}

// Every point of the observed front is better than the reference, and nothing that the
// front dominates moves it while the front has a range, where there are no outliers.
func TestInferredReferenceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Float64Range(100, 500)
		values := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []float64 {
			return []float64{value.Draw(t, "a"), value.Draw(t, "b")}
		}), 1, 20).Draw(t, "values")
		p := inferring(nil)
		reference := p.Inferred(results(values...)).ReferenceCosts()
		dominates := func(a, b []float64) bool { return a[0] <= b[0] && a[1] <= b[1] && !slices.Equal(a, b) }
		var front [][]float64
		for _, v := range values {
			if !slices.ContainsFunc(values, func(o []float64) bool { return dominates(o, v) }) {
				front = append(front, v)
			}
		}
		for _, v := range front {
			if !(v[0] < reference[0] && v[1] < reference[1]) {
				t.Fatalf("%v is on the front, the reference is %v", v, reference)
			}
		}
		if slices.ContainsFunc(front, func(v []float64) bool { return v[0] != front[0][0] && v[1] != front[0][1] }) {
			if alone := p.Inferred(results(front...)).ReferenceCosts(); !slices.Equal(alone, reference) {
				t.Fatalf("reference %v of the front alone, %v of all", alone, reference)
			}
		}
	})
}
