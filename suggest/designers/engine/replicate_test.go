package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/space"
)

// A caller that changes a suggested point changes nothing that the history holds.
func TestSuggestedPointsAreCopies(t *testing.T) {
	p := simulated.TradeOff()
	h := simulated.TradeOffHistory(p, 20, 3, 1)
	s := newTestSurface(t, p, h, Options{})
	e := newExplorer(s, Options{}, h.Tried(), nil)
	list, _ := newComparison(e).replicable(nil)
	if len(list) == 0 {
		t.Fatal("nothing to replicate")
	}
	before := h.Tried()
	for _, q := range list {
		for j := range q {
			q[j] = -1
		}
	}
	for i := range h.Evaluations {
		if !before.Contains(h.Evaluations[i].Point) {
			t.Errorf("evaluation %d moved to %v", i, h.Evaluations[i].Point)
		}
	}
}

// A configuration that is being tried is not tried again at the same time.
func TestPendingIsNotRepeated(t *testing.T) {
	p := simulated.TradeOff()
	h := simulated.TradeOffHistory(p, 20, 3, 1)
	e := newExplorer(newTestSurface(t, p, h, Options{}), Options{}, h.Tried(), nil)
	all, _ := newComparison(e).replicable(nil)
	if len(all) < 2 {
		t.Fatal("too few to replicate")
	}
	left, trials := newComparison(e).replicable(all[:1])
	if !slices.EqualFunc(left, all[1:], slices.Equal[space.Point]) || len(trials) != len(left) {
		t.Errorf("%v to replicate of %v, of which the first is pending", left, all)
	}
}

// Where a metric is said to have no noise, no configuration is tried again, although its values come
// without standard errors and look noisy. Where it has none, and nothing is said, that is soon seen.
func TestNoRepetitionWithoutNoise(t *testing.T) {
	repetitions := func(noiseFree bool, sd float64) (n int) {
		p := simulated.Curve()
		p.Objectives[1].NoiseFree = noiseFree
		for seed := range uint64(3) {
			h := simulated.NoisyCurve(20, 1, sd, seed)
			rng := rand.New(rand.NewPCG(seed, 2))
			for number := int64(21); number < 29; number++ {
				suggestions, err := New(Options{}).Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: seed, Number: number})
				require.NoError(t, err)
				if suggestions[0].Replicate {
					n++
				}
				q := suggestions[0].Point
				epsilon, value := simulated.CurveValues(q[0])
				h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: q, Values: []float64{epsilon, value + sd*rng.NormFloat64()}})
			}
		}
		return n
	}
	if n := repetitions(true, 0.03); n > 0 {
		t.Errorf("%d of 24 suggestions are repetitions where the metric is said to have no noise", n)
	}
	if n := repetitions(false, 0); n > 0 {
		t.Errorf("%d of 24 suggestions are repetitions of exact values", n)
	}
	if n := repetitions(false, 0.03); n == 0 {
		t.Error("no suggestion is a repetition with noise")
	}
}

// A function that is too rough for the surrogate looks like noise, until a repetition gives the same.
func TestRepetitionsOfARoughFunction(t *testing.T) {
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{{Name: "x", Kind: space.Double, Max: 1}}},
		Objectives: []suggest.Objective{
			{Name: "x", Goal: suggest.Minimize, Reference: 1, Known: func(q space.Point) float64 { return q[0] }},
			{Name: "rough", Goal: suggest.Minimize, Reference: 2},
		},
	}
	h := new(suggest.History)
	run := func(x float64) {
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: space.Point{x}, Values: []float64{x, 1 - x + 0.2*math.Sin(1e4*x)}})
	}
	for i := range 30 {
		run((float64(i) + 0.5) / 30)
	}
	n := 0
	for number := int64(31); number < 51; number++ {
		suggestions, err := New(Options{}).Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: 1, Number: number})
		require.NoError(t, err)
		if suggestions[0].Replicate {
			n++
		}
		run(suggestions[0].Point[0])
	}
	if n != 1 {
		t.Errorf("%d of 20 suggestions are repetitions, want 1", n)
	}
}
