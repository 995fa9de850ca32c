package suggest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

func trainingSpace() *space.Space {
	return &space.Space{Parameters: []space.Parameter{
		{Name: "epochs", Kind: space.Integer, Min: 1, Max: 64, Design: space.Uniform{}},
		{Name: "lot_size", Kind: space.Integer, Min: 8, Max: 512, Scale: space.Log},
		{Name: "learning_rate", Kind: space.Double, Min: 5e-4, Max: 5e-2, Scale: space.Log},
		{Name: "noise", Kind: space.Double, Min: 0.1, Max: 16, Scale: space.Log},
		{Name: "optimizer", Kind: space.Categorical, Choices: []string{"sgd", "adam"}},
	}}
}

func twoObjectives() []suggest.Objective {
	return []suggest.Objective{
		{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 10},
		{Name: "accuracy", Goal: suggest.Maximize, Transform: suggest.Logit, Reference: 0, SampleSize: 1000},
	}
}

// train is a smooth stand-in for private training: the privacy loss falls with
// noise, the accuracy has its optimum at high noise on a face of the space.
func train(q space.Point) suggest.Evaluation {
	epsilon := 0.5 * math.Sqrt(q[0]*q[1]/32) / q[3]
	effect := math.Log(q[2]/5e-4)/math.Log(100) - 0.1*q[4]
	accuracy := 0.95 - 0.2*(1-effect)*(1-effect) - 0.3*math.Exp(-2*q[0]/64) - 0.2/(1+5*epsilon)
	return suggest.Evaluation{Point: q, Values: []float64{epsilon, accuracy}}
}

func designers() []suggest.Designer {
	return []suggest.Designer{
		suggest.NewRandom(),
		suggest.NewGrid(),
		suggest.NewQuasiRandom(),
		suggest.NewDPareto(suggest.DParetoOptions{InitialPoints: 6, Candidates: 100, Restarts: 4}),
	}
}

// What every designer must do.
func TestDesigners(t *testing.T) {
	p := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives()}
	for _, d := range designers() {
		t.Run(d.Name(), func(t *testing.T) {
			if d.Version() == "" {
				t.Error("no version")
			}
			h := study(t, d, p, 9, 3, train)
			for _, e := range h.Evaluations {
				if err := p.Space.Contains(e.Point); err != nil {
					t.Error(err)
				}
			}
			r := suggest.Request{Count: 3, Seed: 3, Number: 10}
			batch, err := d.Suggest(t.Context(), p, h, r)
			if err != nil {
				t.Fatal(err)
			}
			if len(batch) != r.Count {
				t.Fatalf("%d suggestions, want %d", len(batch), r.Count)
			}
			again, err := d.Suggest(t.Context(), p, h, r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(batch, again); diff != "" {
				t.Errorf("the same request again (-first +second):\n%s", diff)
			}
			for i, want := range batch {
				one, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: 3, Number: 10 + int64(i)})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, one[0]); diff != "" {
					t.Errorf("suggestion %d alone (-batch +alone):\n%s", i, diff)
				}
				h.Pending = append(h.Pending, want.Point)
			}
		})
	}
}

func TestDesignersCancelled(t *testing.T) {
	p := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives()}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, d := range designers() {
		if _, err := d.Suggest(ctx, p, &suggest.History{}, suggest.Request{Count: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want %v", d.Name(), err, context.Canceled)
		}
	}
}

func TestDesignersRefuse(t *testing.T) {
	good := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives()}
	for _, d := range designers() {
		for _, tc := range []struct {
			field   string
			problem *suggest.Problem
			history *suggest.History
			request suggest.Request
		}{
			{"objectives", &suggest.Problem{Space: trainingSpace()}, &suggest.History{}, suggest.Request{}},
			{"pending[0]", good, &suggest.History{Pending: []space.Point{{1}}}, suggest.Request{}},
			{"count", good, &suggest.History{}, suggest.Request{Count: -1}},
		} {
			_, err := d.Suggest(t.Context(), tc.problem, tc.history, tc.request)
			var fields space.FieldErrors
			if !errors.As(err, &fields) || fields[0].Field != tc.field {
				t.Errorf("%s: error %v, want one in %s", d.Name(), err, tc.field)
			}
		}
	}
}

func smallSpace() *space.Space {
	return &space.Space{Parameters: []space.Parameter{
		{Name: "a", Kind: space.Integer, Min: 1, Max: 3},
		{Name: "b", Kind: space.Categorical, Choices: []string{"x", "y"}},
		{Name: "c", Kind: space.Discrete, Values: []float64{0.5, 4}},
	}}
}

// Designers that do not repeat themselves use a finite space up completely,
// then say so.
func TestExhausted(t *testing.T) {
	p := &suggest.Problem{Space: smallSpace(), Objectives: twoObjectives()}
	for _, d := range []suggest.Designer{
		suggest.NewGrid(),
		suggest.NewDPareto(suggest.DParetoOptions{InitialPoints: 4}),
		suggest.NewDPareto(suggest.DParetoOptions{InitialPoints: 100}),
	} {
		h := &suggest.History{Infeasible: []space.Point{{2, 0, 4}}}
		for number := int64(1); len(h.Evaluations) < 6; number++ {
			s, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Number: number})
			if err != nil {
				t.Fatal(err)
			}
			q := s[0].Point
			h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: q, Values: []float64{q[0] + q[1], 1 / (1 + q[0] + q[2])}})
		}
		h.Pending = []space.Point{h.Evaluations[5].Point}
		h.Evaluations = h.Evaluations[:5]
		s, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 10, Number: 7})
		if !errors.Is(err, suggest.ErrExhausted) || len(s) != 5 {
			t.Errorf("%s: %d suggestions and error %v, want 5 and %v", d.Name(), len(s), err, suggest.ErrExhausted)
		}
		seen := map[string]bool{"[2 0 4]": true, fmt.Sprint(h.Pending[0]): true}
		for _, e := range h.Evaluations {
			seen[fmt.Sprint(e.Point)] = true
		}
		for _, v := range s {
			if k := fmt.Sprint(v.Point); seen[k] {
				t.Errorf("%s suggests %s again", d.Name(), k)
			} else {
				seen[k] = true
			}
		}
	}
}

func TestGridOrder(t *testing.T) {
	p := &suggest.Problem{Space: smallSpace(), Objectives: twoObjectives()}
	h := &suggest.History{
		Evaluations: []suggest.Evaluation{{Point: space.Point{1, 0, 4}, Values: []float64{1, 0.5}}},
		Pending:     []space.Point{{1, 1, 0.5}},
	}
	s, err := suggest.NewGrid().Suggest(t.Context(), p, h, suggest.Request{Count: 4, Number: 99})
	if err != nil {
		t.Fatal(err)
	}
	var got []space.Point
	for _, v := range s {
		got = append(got, v.Point)
	}
	want := []space.Point{{1, 0, 0.5}, {1, 1, 4}, {2, 0, 0.5}, {2, 0, 4}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("grid (-want +got):\n%s", diff)
	}
}

// Golden values: designs are part of every study's record and must not change.
func TestGolden(t *testing.T) {
	p := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives()}
	for _, tc := range []struct {
		designer suggest.Designer
		want     []space.Point
	}{
		{suggest.NewRandom(), []space.Point{
			{37, 18, 0.012266788678935256, 1.4327897407219121, 0},
			{7, 452, 0.004641900862491349, 0.4044010733366394, 0},
			{45, 456, 0.002824634120624397, 0.12669227862725607, 1},
		}},
		{suggest.NewQuasiRandom(), []space.Point{
			{8, 195, 0.0010574975555139319, 5.974571305262533, 0},
			{55, 168, 0.0051600261033014775, 1.2384658006179416, 0},
			{25, 407, 0.015201941084745407, 0.11478709795095537, 1},
		}},
	} {
		s, err := tc.designer.Suggest(t.Context(), p, &suggest.History{}, suggest.Request{Count: 3, Seed: 1, Number: 1})
		if err != nil {
			t.Fatal(err)
		}
		var got []space.Point
		for _, v := range s {
			got = append(got, v.Point)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.designer.Name(), diff)
		}
	}
}

// Of b^k consecutive points from 0, every interval of length b^-k holds one,
// whatever the scrambling: the property of the (0,1)-sequence in base b.
func TestQuasiRandomEquidistribution(t *testing.T) {
	unit := &space.Space{}
	for _, name := range []string{"a", "b", "c"} {
		unit.Parameters = append(unit.Parameters, space.Parameter{Name: name, Kind: space.Double, Max: 1})
	}
	p := &suggest.Problem{Space: unit, Objectives: twoObjectives()}
	for j, n := range []int{64, 81, 125} { // bases 2, 3, 5
		for seed := range uint64(5) {
			for _, first := range []int64{0, int64(7 * n)} {
				s, err := suggest.NewQuasiRandom().Suggest(t.Context(), p, &suggest.History{}, suggest.Request{Count: n, Seed: seed, Number: first})
				if err != nil {
					t.Fatal(err)
				}
				counts := make([]int, n)
				for _, v := range s {
					counts[int(v.Point[j]*float64(n))]++
				}
				if slices.Max(counts) != 1 {
					t.Errorf("base of dimension %d, seed %d, from %d: %v points per interval", j, seed, first, counts)
				}
			}
		}
	}
}

// Every single point is uniform over the seeds, digits beyond those of its
// number included (chi-squared with 15 degrees of freedom, 1e-6 level: 56.5).
func TestQuasiRandomUniform(t *testing.T) {
	const seeds, bins = 4000, 16
	unit := &space.Space{}
	for j := range 8 {
		unit.Parameters = append(unit.Parameters, space.Parameter{Name: string(rune('a' + j)), Kind: space.Double, Max: 1})
	}
	p := &suggest.Problem{Space: unit, Objectives: twoObjectives()}
	for _, number := range []int64{0, 1, 5} {
		counts := make([][bins]float64, len(unit.Parameters))
		for seed := range uint64(seeds) {
			s, err := suggest.NewQuasiRandom().Suggest(t.Context(), p, &suggest.History{}, suggest.Request{Count: 1, Seed: seed, Number: number})
			if err != nil {
				t.Fatal(err)
			}
			for j, v := range s[0].Point {
				counts[j][int(v*bins)]++
			}
		}
		for j := range counts {
			chi := 0.0
			for _, c := range counts[j] {
				chi += (c - seeds/bins) * (c - seeds/bins) / (seeds / bins)
			}
			if chi > 56.5 {
				t.Errorf("number %d, dimension %d: chi-squared = %g", number, j, chi)
			}
		}
	}
}

// The quasi-random designer follows the design laws.
func TestQuasiRandomLaw(t *testing.T) {
	const n = 1000
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "x", Kind: space.Double, Min: 0, Max: 50, Design: space.ShiftedExponential{Rate: 0.5, Shift: 1}},
		}},
		Objectives: twoObjectives(),
	}
	s, err := suggest.NewQuasiRandom().Suggest(t.Context(), p, &suggest.History{}, suggest.Request{Count: n, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float64, n)
	for i, v := range s {
		values[i] = v.Point[0]
	}
	slices.Sort(values)
	for i, v := range values {
		if f := -math.Expm1(-0.5 * (v - 1)); math.Abs(f-(float64(i)+0.5)/n) > 5.0/n {
			t.Fatalf("the distribution function at the %d-th value %g is %g", i, v, f)
		}
	}
}

func TestProblemValidate(t *testing.T) {
	p := &suggest.Problem{
		Space: &space.Space{},
		Objectives: []suggest.Objective{
			{Name: "a", Goal: suggest.Minimize, Reference: math.Inf(1), SampleSize: 5, Floor: 1},
			{Name: "a", Goal: suggest.Maximize, Transform: suggest.Log},
			{Transform: suggest.Logit, Reference: 2, SampleSize: -1},
			{Name: "d", Goal: suggest.Minimize, Transform: 9, Floor: math.NaN()},
		},
	}
	err := p.Validate()
	var fields space.FieldErrors
	if !errors.As(err, &fields) {
		t.Fatalf("error %v", err)
	}
	var got []string
	for _, f := range fields {
		got = append(got, f.Field)
	}
	want := []string{
		"parameters",
		"objectives[0].reference", "objectives[0].sample_size", "objectives[0].floor",
		"objectives[1].reference", "objectives[1].name",
		"objectives[2].name", "objectives[2].goal", "objectives[2].reference", "objectives[2].sample_size",
		"objectives[3].transform", "objectives[3].floor",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violated fields (-want +got):\n%s", diff)
	}
	p = &suggest.Problem{}
	if err := p.Validate(); err == nil {
		t.Error("the zero problem is accepted")
	}
}

// The point of it all: with 40 evaluations, the true hypervolume of DPareto is
// clearly above that of random search on every seed.
func TestDParetoBeatsRandom(t *testing.T) {
	p := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives()}
	hypervolume := func(h *suggest.History) float64 {
		var costs [][]float64
		for _, e := range h.Evaluations {
			costs = append(costs, []float64{e.Values[0], -e.Values[1]})
		}
		return pareto.Hypervolume(costs, []float64{10, 0})
	}
	for seed := range uint64(3) {
		random := hypervolume(study(t, suggest.NewRandom(), p, 40, seed, train))
		dpareto := hypervolume(study(t, suggest.NewDPareto(suggest.DParetoOptions{InitialPoints: 10}), p, 40, seed, train))
		t.Logf("seed %d: random %.4f, dpareto %.4f", seed, random, dpareto)
		if !(dpareto > random+0.1) {
			t.Errorf("seed %d: hypervolume %g, of random search %g", seed, dpareto, random)
		}
	}
}
