package suggest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// trueCosts returns the true costs of the states of a history.
func trueCosts(h *History) (costs [][]float64) {
	for _, e := range h.Evaluations {
		costs = append(costs, []float64{e.Values[0], trainingError(e.Point)})
	}
	return costs
}

// Of the random runs that are given up after four epochs, very few would have improved
// the front that the others make, and many of all runs are given up.
func TestHopelessIsRight(t *testing.T) {
	const (
		noticeable = 1e-3 // of the hypervolume
		initial    = 14
		runs       = 34
	)
	p := trainingProblem()
	reference := []float64{4, 1}
	stopped, asked, wrong := 0, 0, 0
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 41))
		h := &History{}
		var given [][][]float64 // up, by run: the true states
		for i := range runs {
			q := p.Space.Sample(rng)
			q[1] = 64
			one := &History{}
			train(one, q, int64(i+1), rng)
			if i >= initial {
				m, err := FitModel(t.Context(), p, h, ModelOptions{Seed: seed})
				if err != nil {
					t.Fatal(err)
				}
				seen := 0
				for seen < len(one.Evaluations) && one.Evaluations[seen].Point[1] <= 4 {
					seen++
				}
				reached := int64(one.Evaluations[seen-1].Point[1])
				hopeless, err := m.Hopeless(one.Evaluations[:seen], q, reached, LastUseful(p, q))
				if err != nil {
					t.Fatal(err)
				}
				asked++
				if hopeless {
					stopped++
					given = append(given, trueCosts(&History{Evaluations: one.Evaluations[seen:]}))
					one.Evaluations = one.Evaluations[:seen]
				}
			}
			h.Evaluations = append(h.Evaluations, one.Evaluations...)
		}
		front := trueCosts(h)
		hypervolume := pareto.Hypervolume(front, reference)
		for _, states := range given {
			if pareto.Hypervolume(append(slices.Clip(front), states...), reference) > hypervolume*(1+noticeable) {
				wrong++
			}
		}
	}
	t.Logf("%d of %d runs given up, %d of them wrongly", stopped, asked, wrong)
	if stopped < asked/3 {
		t.Errorf("%d of %d runs were given up", stopped, asked)
	}
	if float64(wrong) >= 0.05*float64(stopped) {
		t.Errorf("%d of %d runs were given up wrongly", wrong, stopped)
	}
}

// A run with a bad parameter is told to stop, one with the best is not, nor is a run
// that began unluckily: the noise that its checkpoints share is no verdict on it.
func TestHopelessWithSharedNoise(t *testing.T) {
	p := trainingProblem()
	h := &History{}
	rng := rand.New(rand.NewPCG(4, 41))
	for i := range 24 {
		q := p.Space.Sample(rng)
		q[1] = 64
		train(h, q, int64(i+1), rng)
	}
	m, err := FitModel(t.Context(), p, h, ModelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		q    space.Point
		luck float64
		want bool
	}{
		{"bad", space.Point{0.3, 64, 0.95}, 0, true},
		{"bad and lucky", space.Point{0.3, 64, 0.95}, -0.02, true},
		{"best", space.Point{0.3, 64, 0.3}, 0, false},
		{"best and unlucky", space.Point{0.3, 64, 0.3}, 0.01, false},
	} {
		one := &History{}
		train(one, tc.q, 99, rand.New(rand.NewPCG(1, 1)))
		run := one.Evaluations[:3]
		for i := range run {
			run[i].Values[1] = trainingError(run[i].Point) + tc.luck
		}
		got, err := m.Hopeless(run, tc.q, int64(run[2].Point[1]), LastUseful(p, tc.q))
		if err != nil || got != tc.want {
			t.Errorf("%s: %v, %v", tc.name, got, err)
		}
	}
}

// A run whose constraint is out of reach is hopeless, however small its error.
func TestHopelessUnderConstraints(t *testing.T) {
	p := trainingProblem()
	p.Constraints = []Constraint{{Name: "bias", Lower: 0, Upper: 0.5}}
	bias := func(h *History) *History {
		for i := range h.Evaluations {
			e := &h.Evaluations[i]
			e.Values = append(e.Values, 2*e.Point[2])
		}
		return h
	}
	h := &History{}
	rng := rand.New(rand.NewPCG(5, 41))
	for i := range 16 {
		q := p.Space.Sample(rng)
		q[1] = 64
		train(h, q, int64(i+1), rng)
	}
	m, err := FitModel(t.Context(), p, bias(h), ModelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for w, want := range map[float64]bool{0.2: false, 0.4: true} {
		q := space.Point{0.3, 64, w}
		one := &History{}
		train(one, q, 99, rng)
		got, err := m.Hopeless(bias(one).Evaluations[:3], q, 4, LastUseful(p, q))
		if err != nil || got != want {
			t.Errorf("w = %g: %v, %v", w, got, err)
		}
	}
}
