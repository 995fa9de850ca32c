package model

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/space"
)

// epochRun is a run of the given length with a measurement after every epoch.
func epochRun(h *suggest.History, id int64, noise float64, epochs int) {
	for t := range epochs {
		q := space.Point{noise, float64(t + 1)}
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{
			Point: q, Values: []float64{q[0] * q[1], 0.2 + 0.1/q[1]}, Run: id,
		})
	}
}

func TestThinKeepsLogSpacedEpochsAndTheLast(t *testing.T) {
	p := simulated.NoiseTraining(64)
	h := &suggest.History{}
	epochRun(h, 1, 0.1, 64)
	epochRun(h, 2, 0.1, 5)
	epochRun(h, 3, 0.1, 1)
	var got []string
	for _, i := range thin(p, h, 6) {
		got = append(got, fmt.Sprintf("%d:%g", h.Evaluations[i].Run, h.Evaluations[i].Point[1]))
	}
	want := []string{"1:1", "1:3", "1:6", "1:13", "1:28", "1:64", "2:1", "2:2", "2:3", "2:4", "2:5", "3:1"}
	if !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	// One each: the ends.
	if got := thin(p, h, 1); !slices.Equal(got, []int{63, 68, 69}) {
		t.Errorf("kept %v, want the last of every run", got)
	}
}

func TestRunsAreToldApart(t *testing.T) {
	h := &suggest.History{Evaluations: []suggest.Evaluation{{Run: 1}, {Run: 1}, {}, {}, {Run: 2}, {Run: 3}, {Run: 3}}}
	want := []span{{0, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 6}}
	if got := runs(h); !slices.Equal(got, want) {
		t.Errorf("runs = %v, want %v", got, want)
	}
}

func TestMilestonesDependOnTheCountAlone(t *testing.T) {
	last, fits := 0, 0
	for n := 1; n <= 2000; n++ {
		at, cold := milestone(n)
		if at > n || at < last || float64(n) > 1.1*float64(at)+1 {
			t.Fatalf("milestone(%d) = %d after %d", n, at, last)
		}
		if n <= refitBelow && at != n || at <= coldBelow && !cold {
			t.Errorf("milestone(%d) = %d, cold %v: few runs are learned from scratch", n, at, cold)
		}
		if at != last {
			fits++
		}
		last = at
	}
	if fits > 140 {
		t.Errorf("%d fits in 2000 runs", fits)
	}
	// A restart goes back to the last doubling only.
	depth := 0
	for at, cold := milestone(2000); !cold; at, cold = milestone(at - 1) {
		depth++
	}
	if depth > 8 {
		t.Errorf("%d warm fits hang together", depth)
	}
}

func TestChooseKeepsTheFrontOfManyRuns(t *testing.T) {
	p := simulated.NoiseTraining(1)
	p.Checkpoint = ""
	h := &suggest.History{}
	const n = 5000
	for i := range n {
		x := float64(i) / n
		e := suggest.Evaluation{Point: space.Point{0.01 + 0.99*x, 1}, Values: []float64{x, 1 - x/2}}
		if i%10 != 0 {
			e.Values[1] = math.Min(e.Values[1]+0.1, 1)
		}
		h.Evaluations = append(h.Evaluations, e)
	}
	f := newFitter(p, h, Options{})
	if len(f.chosen) != modelSize || !slices.IsSorted(f.chosen) || len(slices.Compact(slices.Clone(f.chosen))) != modelSize {
		t.Fatalf("%d evaluations chosen, want %d different ones in order", len(f.chosen), modelSize)
	}
	front := 0
	for _, i := range f.chosen {
		if i%10 == 0 {
			front++
		}
	}
	if front < 500 {
		t.Errorf("%d of the 500 evaluations on the front were chosen", front)
	}
}
