package engine

import (
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/space"
)

// Every combination of categories is among the starts, also if its value is low.
func TestStartsCoverCategories(t *testing.T) {
	p := &suggest.Problem{Space: &space.Space{Parameters: []space.Parameter{
		{Name: "kind", Kind: space.Categorical, Choices: []string{"a", "b", "c"}},
		{Name: "x", Kind: space.Double, Max: 1},
	}}}
	e := newExplorer(&surface{layout: layout{problem: p}}, Options{Restarts: 4}, nil, sample.Stream(1, 1, 1))
	var list []candidate
	for i := range 100 {
		c := candidate{point: space.Point{0, float64(i) / 100}, value: -float64(i)}
		if i == 70 || i == 80 {
			c.point[0] = float64(i/10 - 6)
		}
		list = append(list, c)
	}
	count := [3]int{}
	for _, c := range e.starts(e.covering(list, 20)) {
		count[int(c.point[0])]++
	}
	if count != [3]int{4, 1, 1} {
		t.Errorf("%v starts by category, want 4, 1, 1", count)
	}
}

// A branch is entered with several values of its parameters.
func TestEntered(t *testing.T) {
	condition := &space.Condition{Parent: 0, Values: []float64{1}}
	p := &suggest.Problem{Space: &space.Space{Parameters: []space.Parameter{
		{Name: "kind", Kind: space.Categorical, Choices: []string{"a", "b"}},
		{Name: "rate", Kind: space.Double, Max: 6, Condition: condition},
		{Name: "size", Kind: space.Discrete, Values: []float64{1, 2, 3}, Condition: condition},
	}}}
	e := newExplorer(&surface{layout: layout{problem: p, checkpoint: -1}}, Options{}, nil, nil)
	want := []space.Point{{1, 0, 1}, {1, 1, 1}, {1, 3, 2}, {1, 5, 3}}
	got := e.choices.entered(space.Point{1, 0, 1}, space.Point{0, 0, 1})
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if !got[i].Equal(want[i]) {
			t.Errorf("%v, want %v", got[i], want[i])
		}
	}
	if got := e.choices.entered(space.Point{0, 0, 1}, space.Point{1, 3, 2}); len(got) != 1 || !got[0].Equal(space.Point{0, 0, 1}) {
		t.Errorf("%v on leaving the branch", got)
	}
}
