package earlystop

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// A run of a rate with another that is worse for the error only is futile; one that
// continues the front is not, nor one of which little is known.
func TestIsFutile(t *testing.T) {
	p := simulated.RateTraining()
	p.Space.Parameters = append(p.Space.Parameters, space.Parameter{Name: "w", Kind: space.Double, Max: 1})
	run := func(x, w float64, steps ...float64) (evaluations []suggest.Evaluation) {
		for _, step := range steps {
			q := space.Point{x, step, w}
			evaluations = append(evaluations, suggest.Evaluation{Point: q, Values: []float64{q[0] * q[1], 0.6 - 0.3*x + 0.3*w + 0.1*(1-step/64)}})
		}
		return evaluations
	}
	h := new(suggest.History)
	for i := range 5 {
		for j := range 3 {
			h.Evaluations = append(h.Evaluations, run(float64(i)/4, float64(j)/2, 1, 8, 64)...)
		}
	}
	m, err := model.Fit(t.Context(), p, h, model.Options{})
	require.NoError(t, err)
	for _, tc := range []struct {
		name string
		x, w float64
		want bool
	}{
		{"dominated", 0.4, 0.9, true},
		{"leading", 1, 0, false},
	} {
		q := space.Point{tc.x, 64, tc.w}
		got, err := IsFutile(t.Context(), m, run(tc.x, tc.w, 1, 2, 4, 8), q, 8, p.LastUseful(q))
		if err != nil || got != tc.want {
			t.Errorf("%s: %v, %v", tc.name, got, err)
		}
	}
	ignorant, err := model.Fit(t.Context(), p, &suggest.History{Evaluations: run(0, 0.5, 1, 64)}, model.Options{})
	require.NoError(t, err)
	if got, err := IsFutile(t.Context(), ignorant, nil, space.Point{1, 20, 1}, 1, 20); err != nil || got {
		t.Errorf("with two evaluations: %v, %v", got, err)
	}
	// It makes room for others at every step, and ends with them.
	over := errors.New("over")
	pausing := pause.With(t.Context(), func(context.Context) error { return over })
	if _, err := IsFutile(pausing, m, nil, space.Point{1, 64, 0}, 1, 64); !errors.Is(err, over) {
		t.Errorf("a pause that ends it: %v", err)
	}
	// With nothing left to come there is no hope.
	if got, err := IsFutile(t.Context(), m, nil, space.Point{1, 64, 0}, 64, 64); err != nil || !got {
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

// trueCosts returns the true costs of the states of a history.
func trueCosts(h *suggest.History) (costs [][]float64) {
	for _, e := range h.Evaluations {
		costs = append(costs, []float64{e.Values[0], simulated.EpochTrainingError(e.Point)})
	}
	return costs
}

// Of the random runs that are given up after four epochs, very few would have improved
// the front that the others make, and many of all runs are given up.
func TestFutileRunsAddNothing(t *testing.T) {
	const (
		noticeable = 1e-3 // of the hypervolume
		initial    = 14
		runs       = 34
	)
	p := simulated.EpochTraining()
	reference := []float64{4, 1}
	stopped, asked, wrong := 0, 0, 0
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 41))
		h := &suggest.History{}
		cache := new(model.Cache)
		var given [][][]float64 // up, by run: the true states
		for i := range runs {
			q := p.Space.Sample(rng)
			q[1] = 64
			one := &suggest.History{}
			simulated.TrainEpochs(one, q, int64(i+1), rng)
			if i >= initial {
				m, err := model.Fit(t.Context(), p, h, model.Options{Seed: seed, Cache: cache})
				require.NoError(t, err)
				seen := 0
				for seen < len(one.Evaluations) && one.Evaluations[seen].Point[1] <= 4 {
					seen++
				}
				reached := int64(one.Evaluations[seen-1].Point[1])
				futile, err := IsFutile(t.Context(), m, one.Evaluations[:seen], q, reached, p.LastUseful(q))
				require.NoError(t, err)
				asked++
				if futile {
					stopped++
					given = append(given, trueCosts(&suggest.History{Evaluations: one.Evaluations[seen:]}))
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

// A run with a bad parameter is stopped, one with the best is not, nor is a run
// that began unluckily: the noise that its checkpoints share is no verdict on it.
func TestFutilityWithSharedNoise(t *testing.T) {
	p := simulated.EpochTraining()
	h := &suggest.History{}
	rng := rand.New(rand.NewPCG(4, 41))
	for i := range 24 {
		q := p.Space.Sample(rng)
		q[1] = 64
		simulated.TrainEpochs(h, q, int64(i+1), rng)
	}
	m, err := model.Fit(t.Context(), p, h, model.Options{})
	require.NoError(t, err)
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
		one := &suggest.History{}
		simulated.TrainEpochs(one, tc.q, 99, rand.New(rand.NewPCG(1, 1)))
		run := one.Evaluations[:3]
		for i := range run {
			run[i].Values[1] = simulated.EpochTrainingError(run[i].Point) + tc.luck
		}
		got, err := IsFutile(t.Context(), m, run, tc.q, int64(run[2].Point[1]), p.LastUseful(tc.q))
		if err != nil || got != tc.want {
			t.Errorf("%s: %v, %v", tc.name, got, err)
		}
	}
}

// A run whose constraint is out of reach is futile, however small its error.
func TestFutilityUnderConstraints(t *testing.T) {
	p := simulated.EpochTraining()
	p.Constraints = []suggest.Constraint{{Name: "bias", Lower: 0, Upper: 0.5}}
	bias := func(h *suggest.History) *suggest.History {
		for i := range h.Evaluations {
			e := &h.Evaluations[i]
			e.Values = append(e.Values, 2*e.Point[2])
		}
		return h
	}
	h := &suggest.History{}
	rng := rand.New(rand.NewPCG(5, 41))
	for i := range 16 {
		q := p.Space.Sample(rng)
		q[1] = 64
		simulated.TrainEpochs(h, q, int64(i+1), rng)
	}
	m, err := model.Fit(t.Context(), p, bias(h), model.Options{})
	require.NoError(t, err)
	for w, want := range map[float64]bool{0.2: false, 0.4: true} {
		q := space.Point{0.3, 64, w}
		one := &suggest.History{}
		simulated.TrainEpochs(one, q, 99, rng)
		got, err := IsFutile(t.Context(), m, bias(one).Evaluations[:3], q, 4, p.LastUseful(q))
		if err != nil || got != want {
			t.Errorf("w = %g: %v, %v", w, got, err)
		}
	}
}

// Whether a run is given up does not depend on the direction in which an objective is
// written down.
func TestFutilityHasNoPreferredDirection(t *testing.T) {
	futile, useful := 0, 0
	for seed := range uint64(8) {
		var verdicts [2]bool
		for g, goal := range []suggest.Goal{suggest.Minimize, suggest.Maximize} {
			p := simulated.NoiseTraining(32)
			p.Objectives[1] = suggest.Objective{Name: "risk", Goal: goal, Transform: suggest.Log, Reference: 1, Floor: 1e-9}
			value := func(risk float64) float64 {
				if goal == suggest.Maximize {
					return 1 / risk
				}
				return risk
			}
			rng := rand.New(rand.NewPCG(seed, 2))
			h := &suggest.History{}
			add := func(h *suggest.History, run int64, noise, quality float64, epochs int) {
				for epoch := range epochs {
					q := space.Point{noise, float64(epoch + 1)}
					risk := quality * (0.2 + 0.5/q[1]) * math.Exp(0.01*rng.NormFloat64())
					h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: q, Values: []float64{q[0] * q[1], value(risk)}, Run: run})
				}
			}
			for run := range 8 {
				add(h, int64(run+1), math.Exp(-4.5*rng.Float64()), 1, 32)
			}
			m, err := model.Fit(t.Context(), p, h, model.Options{Seed: 1})
			require.NoError(t, err)
			partial := &suggest.History{}
			add(partial, 99, 0.1+0.8*rng.Float64(), 0.7+0.8*float64(seed%2), 4)
			q := partial.Evaluations[0].Point.Clone()
			q[1] = 32
			if verdicts[g], err = IsFutile(t.Context(), m, partial.Evaluations, q, 4, p.LastUseful(q)); err != nil {
				t.Fatal(err)
			}
		}
		if verdicts[0] != verdicts[1] {
			t.Errorf("seed %d: futile is %v minimised and %v maximised", seed, verdicts[0], verdicts[1])
		}
		if verdicts[0] {
			futile++
		} else {
			useful++
		}
	}
	if futile == 0 || useful == 0 {
		t.Errorf("%d futile runs and %d others: the test shows nothing", futile, useful)
	}
}
