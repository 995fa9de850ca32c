package suggest_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/space"
)

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

func TestCheckpointUnderCondition(t *testing.T) {
	for name, change := range map[string]func(*space.Space){
		"child":  func(s *space.Space) { s.Parameters[0].Condition = &space.Condition{Parent: 4, Values: []float64{1}} },
		"parent": func(s *space.Space) { s.Parameters[3].Condition = &space.Condition{Parent: 0, Values: []float64{7}} },
	} {
		p := &suggest.Problem{Space: simulated.TrainingSpace(), Objectives: simulated.TrainingObjectives(), Checkpoint: "epochs"}
		require.NoError(t, p.Validate())
		change(p.Space)
		var fields space.FieldErrors
		if err := p.Validate(); !errors.As(err, &fields) || fields[0].Field != "checkpoint" {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A known value that is not finite improves nothing, in either direction.
func TestKnownCost(t *testing.T) {
	for _, v := range []float64{math.Inf(1), math.NaN(), math.Inf(-1)} {
		o := &suggest.Objective{Goal: suggest.Maximize, Known: func(space.Point) float64 { return v }}
		if cost := o.KnownCost(nil); !math.IsInf(cost, 1) {
			t.Errorf("known value %g costs %g, want +Inf", v, cost)
		}
	}
}

func TestSearchCostIsByTheStandIn(t *testing.T) {
	o := &suggest.Objective{Goal: suggest.Minimize, Known: func(space.Point) float64 { return 1 }}
	if got := o.SearchCost(nil); got != 1 {
		t.Errorf("%g without a stand-in, want 1", got)
	}
	o.Search = func(space.Point) float64 { return 7 }
	if got := o.SearchCost(nil); got != 7 {
		t.Errorf("%g, want 7 by the stand-in", got)
	}
	o.Search = func(space.Point) float64 { return math.NaN() }
	if got := o.SearchCost(nil); !math.IsInf(got, 1) {
		t.Errorf("%g for NaN, want +Inf", got)
	}
}
