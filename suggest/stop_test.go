package suggest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/suggest/space"
)

// runProblem is a problem of runs of up to 64 epochs of a rate x in [0, 1]: the privacy
// loss x·epochs is known and must be below 32; the error is measured.
func runProblem() *Problem {
	return &Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "x", Kind: space.Double, Max: 1},
			{Name: "epochs", Kind: space.Integer, Min: 1, Max: 64},
		}},
		Objectives: []Objective{
			{Name: "loss", Goal: Minimize, Reference: 32, Known: func(q space.Point) float64 { return q[0] * q[1] }},
			{Name: "error", Goal: Minimize, Reference: 1},
		},
		Checkpoint: "epochs",
	}
}

// Bisection finds what a scan finds.
func TestLastUseful(t *testing.T) {
	p := runProblem()
	for _, least := range []float64{1, 5} {
		p.Space.Parameters[1].Min = least
		rng := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			// Rates up to 40 leave the reference in the first epoch.
			q := space.Point{math.Exp(6*rng.Float64() - 2), least + float64(rng.IntN(64-int(least)+1))}
			want := int64(0)
			for step := least; step <= q[1]; step++ {
				if q[0]*step < 32 {
					want = int64(step)
				}
			}
			if got := LastUseful(p, q); got != want {
				t.Fatalf("at %v, from %g: %d, want %d", q, least, got, want)
			}
		}
	}
	p.Constraints = []Constraint{{Name: "c", Lower: math.Inf(-1), Upper: 7, Known: func(q space.Point) float64 { return q[1] }}}
	if got := LastUseful(p, space.Point{0.1, 60}); got != 7 {
		t.Errorf("under a constraint: %d", got)
	}
	p.Constraints[0].Lower, p.Constraints[0].Upper = 50, math.Inf(1)
	if got := LastUseful(p, space.Point{0.1, 60}); got != 60 {
		t.Errorf("useful at the end only: %d", got)
	}
}

// A run of a rate with another that is worse for the error only is hopeless; one that
// continues the front is not, nor one of which little is known.
func TestHopeless(t *testing.T) {
	p := runProblem()
	p.Space.Parameters = append(p.Space.Parameters, space.Parameter{Name: "w", Kind: space.Double, Max: 1})
	run := func(x, w float64, steps ...float64) (evaluations []Evaluation) {
		for _, step := range steps {
			q := space.Point{x, step, w}
			evaluations = append(evaluations, Evaluation{Point: q, Values: []float64{q[0] * q[1], 0.6 - 0.3*x + 0.3*w + 0.1*(1-step/64)}})
		}
		return evaluations
	}
	h := new(History)
	for i := range 5 {
		for j := range 3 {
			h.Evaluations = append(h.Evaluations, run(float64(i)/4, float64(j)/2, 1, 8, 64)...)
		}
	}
	m, err := FitModel(t.Context(), p, h, ModelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		x, w float64
		want bool
	}{
		{"dominated", 0.4, 0.9, true},
		{"leading", 1, 0, false},
	} {
		q := space.Point{tc.x, 64, tc.w}
		got, err := m.Hopeless(run(tc.x, tc.w, 1, 2, 4, 8), q, 8, LastUseful(p, q))
		if err != nil || got != tc.want {
			t.Errorf("%s: %v, %v", tc.name, got, err)
		}
	}
	ignorant, err := FitModel(t.Context(), p, &History{Evaluations: run(0, 0.5, 1, 64)}, ModelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ignorant.Hopeless(nil, space.Point{1, 20, 1}, 1, 20); err != nil || got {
		t.Errorf("with two evaluations: %v, %v", got, err)
	}
	// With nothing left to come there is no hope.
	if got, err := m.Hopeless(nil, space.Point{1, 64, 0}, 64, 64); err != nil || !got {
		t.Errorf("at the end: %v, %v", got, err)
	}
}

func TestLogSteps(t *testing.T) {
	for _, tc := range []struct {
		first, last int64
		n           int
		want        []int64
	}{
		{1, 64, 7, []int64{1, 2, 4, 8, 16, 32, 64}},
		{3, 5, 32, []int64{3, 4, 5}},
		{5, 5, 32, []int64{5}},
		{6, 5, 32, nil},
		{1, 0, 6, nil},
	} {
		if got := logSteps(tc.first, tc.last, tc.n); !slices.Equal(got, tc.want) {
			t.Errorf("%d to %d, %d: %v", tc.first, tc.last, tc.n, got)
		}
	}
	for last := int64(1); last < 300; last++ {
		if got := logSteps(1, last, 32); got[0] != 1 || got[len(got)-1] != last {
			t.Errorf("1 to %d: %v", last, got)
		}
	}
}
