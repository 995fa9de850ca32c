package suggest_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// modelSpace holds a choice of models with parameters of their own.
func modelSpace() *space.Space {
	return &space.Space{Parameters: []space.Parameter{
		{Name: "depth", Kind: space.Integer, Min: 1, Max: 9, Condition: &space.Condition{Parent: 1, Values: []float64{1}}},
		{Name: "model", Kind: space.Categorical, Choices: []string{"linear", "forest", "network"}},
		{Name: "rate", Kind: space.Double, Min: 1e-3, Max: 1, Scale: space.Log, Condition: &space.Condition{Parent: 1, Values: []float64{0, 2}}},
		{Name: "noise", Kind: space.Double, Min: 0.1, Max: 10, Scale: space.Log},
	}}
}

// evaluateModel depends on what exists only.
func evaluateModel(q space.Point) suggest.Evaluation {
	loss := 0.2
	if q[1] == 1 {
		loss += 0.02 * math.Abs(q[0]-4)
	} else {
		loss += 0.05 * math.Abs(math.Log(q[2]/0.1))
	}
	return suggest.Evaluation{Point: q, Values: []float64{1 / q[3], 1 - loss - 0.02*q[3]}}
}

// Every designer suggests canonical, allowed points, one by one as in a batch, and
// all kinds of them.
func TestConditionsAndConstraints(t *testing.T) {
	p := &suggest.Problem{Space: modelSpace(), Objectives: twoObjectives(), Allowed: func(q space.Point) bool {
		if q[1] == 1 {
			return q[0] >= 4
		}
		return q[2]*q[3] < 0.05
	}}
	for _, d := range designers() {
		t.Run(d.Name(), func(t *testing.T) {
			h := study(t, d, p, 12, 5, evaluateModel)
			models := make(map[float64]int)
			different := make(map[string]bool)
			for _, e := range h.Evaluations {
				if err := p.Space.Contains(e.Point); err != nil {
					t.Error(err)
				}
				if !p.Allowed(e.Point) {
					t.Errorf("%v is not allowed", e.Point)
				}
				models[e.Point[1]]++
				different[fmt.Sprint(e.Point)] = true
			}
			if len(models) < 2 || len(different) < len(h.Evaluations) && d.Name() != "random" {
				t.Errorf("models %v and %d different configurations", models, len(different))
			}
			h.Evaluations = h.Evaluations[:8]
			r := suggest.Request{Count: 3, Seed: 6, Number: 11}
			batch := ask(t, d, p, h, r)
			for i, want := range batch {
				r := suggest.Request{Count: 1, Seed: 6, Number: 11 + int64(i)}
				if diff := cmp.Diff(want, ask(t, d, p, h, r)[0]); diff != "" {
					t.Errorf("suggestion %d alone (-batch +alone):\n%s", i, diff)
				}
				h.Pending = append(h.Pending, want.Point)
			}
		})
	}
}

// A grid holds a configuration once, however many inactive values it has.
func TestGridOfConditionalSpace(t *testing.T) {
	p := &suggest.Problem{Space: modelSpace(), Objectives: twoObjectives()}
	var got []space.Point
	s, err := suggest.NewGrid().Suggest(t.Context(), p, &suggest.History{}, suggest.Request{Count: 100})
	if !errors.Is(err, suggest.ErrExhausted) {
		t.Fatal(err)
	}
	for _, v := range s {
		if math.Abs(v.Point[3]-1) < 1e-9 {
			got = append(got, v.Point)
		}
	}
	want := []space.Point{{1, 0, 1e-3, 1}, {1, 0, 0.0316227766016838, 1}, {1, 0, 1, 1}, {1, 1, 1e-3, 1}, {5, 1, 1e-3, 1}, {9, 1, 1e-3, 1}}
	if len(s) != 27 || len(got) != 9 {
		t.Fatalf("%d configurations, %d of them with the middle noise; want 27 and 9", len(s), len(got))
	}
	for i, q := range want {
		for j := range q {
			if math.Abs(got[i][j]-q[j]) > 1e-12 {
				t.Errorf("configuration %d is %v, want %v", i, got[i], q)
			}
		}
	}
}

// Where an allowed point is hard to find it is found, and where there is none the
// designers say so.
func TestRarelyAllowed(t *testing.T) {
	line := &space.Space{Parameters: []space.Parameter{{Name: "x", Kind: space.Double, Min: 0, Max: 1}}}
	for _, d := range designers() {
		p := &suggest.Problem{Space: line, Objectives: twoObjectives(), Allowed: func(q space.Point) bool { return q[0] > 0.4 && q[0] < 0.401 }}
		if d.Name() == "grid" {
			p.Allowed = func(q space.Point) bool { return q[0] == 0.5 }
		}
		s := ask(t, d, p, &suggest.History{}, suggest.Request{Count: 1, Seed: 1, Number: 1})
		if !p.Allowed(s[0].Point) {
			t.Errorf("%s: %v is not allowed", d.Name(), s[0].Point)
		}
		p.Allowed = func(space.Point) bool { return false }
		none, err := d.Suggest(t.Context(), p, &suggest.History{}, suggest.Request{Count: 1})
		if !errors.Is(err, suggest.ErrExhausted) || len(none) != 0 {
			t.Errorf("%s: %v and error %v, want none and %v", d.Name(), none, err, suggest.ErrExhausted)
		}
	}
}

// The model looks for allowed candidates where its first ones are not.
func TestDParetoUnderTightConstraint(t *testing.T) {
	p := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives(), Allowed: func(q space.Point) bool {
		return q[0]*q[1] >= 1000 && q[0]*q[1] <= 1010
	}}
	d := suggest.NewDPareto(suggest.DParetoOptions{InitialPoints: 6, Candidates: 100, Restarts: 4})
	h := study(t, d, p, 12, 3, train)
	for _, e := range h.Evaluations {
		if !p.Allowed(e.Point) {
			t.Errorf("%v is not allowed", e.Point)
		}
	}
}

// Constraints leave the draws of a quasi-random design that are allowed as they are.
func TestQuasiRandomSkips(t *testing.T) {
	free := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives()}
	bound := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives(), Allowed: func(q space.Point) bool { return q[3] > 1 }}
	d := suggest.NewQuasiRandom()
	r := suggest.Request{Count: 50, Seed: 2, Number: 1}
	before, after := ask(t, d, free, &suggest.History{}, r), ask(t, d, bound, &suggest.History{}, r)
	kept := 0
	for i := range before {
		if bound.Allowed(before[i].Point) {
			kept++
			if diff := cmp.Diff(before[i], after[i]); diff != "" {
				t.Errorf("suggestion %d (-free +bound):\n%s", i, diff)
			}
		}
		if !bound.Allowed(after[i].Point) {
			t.Errorf("%v is not allowed", after[i].Point)
		}
	}
	if kept < 20 || kept > 40 {
		t.Errorf("%d of 50 points allowed", kept)
	}
}

func TestCheckpointUnderCondition(t *testing.T) {
	for name, change := range map[string]func(*space.Space){
		"child":  func(s *space.Space) { s.Parameters[0].Condition = &space.Condition{Parent: 4, Values: []float64{1}} },
		"parent": func(s *space.Space) { s.Parameters[3].Condition = &space.Condition{Parent: 0, Values: []float64{7}} },
	} {
		p := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives(), Checkpoint: "epochs"}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		change(p.Space)
		var fields space.FieldErrors
		if err := p.Validate(); !errors.As(err, &fields) || fields[0].Field != "checkpoint" {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
