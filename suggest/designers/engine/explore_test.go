package engine

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
)

// stagnant is a history of a line whose front is x, 1 - x: many trials at the left half's front,
// then some that add nothing.
func stagnant(t *testing.T, useless int, last ...float64) (*suggest.Problem, *suggest.History) {
	t.Helper()
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "x", Kind: space.Double, Min: 0, Max: 1}, {Name: "y", Kind: space.Double, Min: 0, Max: 1},
		}},
		Objectives: []suggest.Objective{
			{Name: "f1", Goal: suggest.Minimize, Reference: 2}, {Name: "f2", Goal: suggest.Minimize, Reference: 2},
		},
	}
	h := new(suggest.History)
	add := func(x, y float64) {
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{
			Point: space.Point{x, y}, Values: []float64{x + y, 1 - x + y}, StdErrors: []float64{0, 0},
		})
	}
	for i := range 6 {
		add(float64(i)/5, 0)
	}
	for i := range useless {
		add(float64(i)/10+0.05, 0.5)
	}
	for _, x := range last {
		add(x, -1) // better than everything
	}
	for i := range h.Evaluations {
		h.Evaluations[i].Point[1] = math.Max(h.Evaluations[i].Point[1], 0)
	}
	return p, h
}

// The search explores in every eighth suggestion, where the last eight trials added next to
// nothing.
func TestExplores(t *testing.T) {
	for name, tc := range map[string]struct {
		useless int
		last    []float64
		number  int64
		want    bool
	}{
		"stagnant":            {8, nil, 16, true},
		"another suggestion":  {8, nil, 15, false},
		"recent progress":     {7, nil, 16, false}, // the end of the front
		"all within the last": {2, nil, 8, false},
		"new best":            {8, []float64{0.5}, 16, false},
	} {
		p, h := stagnant(t, tc.useless, tc.last...)
		s := newTestSurface(t, p, h, Options{})
		if got := s.explores(h, tc.number); got != tc.want {
			t.Errorf("%s: explores is %t", name, got)
		}
	}
}

func TestLastTrials(t *testing.T) {
	h := &suggest.History{Evaluations: []suggest.Evaluation{{Run: 1}, {Run: 1}, {}, {}, {Run: 2}, {Run: 3}, {Run: 3}}}
	for n, want := range []int{7, 5, 4, 3, 2, 0, 0} {
		if got := lastTrials(h, n); got != want {
			t.Errorf("the last %d trials begin at %d, want %d", n, got, want)
		}
	}
}

// To explore is to maximise the expected improvement by outcomes of a larger standard deviation.
// It leads to where less is known.
func TestBoldness(t *testing.T) {
	study := exactStudy(0)
	h := study.history(40)
	m, err := model.Fit(t.Context(), study.problem, h, model.Options{})
	require.NoError(t, err)
	o := New(Options{}).(designer).options
	var deviations [2]float64
	for i, boldness := range []float64{1, optimism} {
		for number := range int64(4) {
			s, err := newSurface(m, new(common), o, turn{seed: 1, number: number})
			require.NoError(t, err)
			s.boldness = boldness
			e := newExplorer(s, o, h.Tried(), sample.Stream(1, number, sample.Search))
			c, ok, err := e.find(t.Context(), sample.Stream(1, number, sample.Candidates))
			if err != nil || !ok {
				t.Fatalf("%t, %v", ok, err)
			}
			var distributions []acquisition.Distribution
			for _, l := range m.Distributions(nil, nil, c.point) {
				deviations[i] += l.StdDev
				l.StdDev *= boldness
				distributions = append(distributions, l)
			}
			if want := acquisition.LogEHVI(s.fronts[0].front, distributions, nil); math.Abs(c.value-want) > 1e-6*math.Abs(want) {
				t.Errorf("boldness %g: value %g, want %g", boldness, c.value, want)
			}
		}
	}
	if deviations[1] < 1.1*deviations[0] {
		t.Errorf("sum of standard deviations %g where the search explores, otherwise %g", deviations[1], deviations[0])
	}
}
