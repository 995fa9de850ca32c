package restrict_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers"
	"github.com/dpareto/dpareto/suggest/designers/engine"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/restrict"
	"github.com/dpareto/dpareto/suggest/space"
)

// trained is a history of random configurations.
func trained(p *suggest.Problem) *suggest.History {
	h := new(suggest.History)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		h.Evaluations = append(h.Evaluations, simulated.Train(p.Space.Sample(rng)))
	}
	return h
}

// Every designer obeys every condition, rare ones included, and gives the same answer
// twice. The limits hold exactly although the search has a stand-in that is too small.
func TestDesignersObeyConditions(t *testing.T) {
	loss := func(upper float64) []restrict.Limit {
		return []restrict.Limit{{Objective: 0, Known: simulated.Loss, Search: simulated.RoughLoss, Upper: upper}}
	}
	conditions := map[string]restrict.Condition{
		"fixed":          {Fixed: map[int]float64{2: 0.003, 4: 1}},
		"at most":        {AtMost: loss(0.5)},
		"rare":           {AtMost: loss(0.02)},
		"both":           {Fixed: map[int]float64{1: 512, 4: 1}, AtMost: loss(0.3)},
		"fixed length":   {Fixed: map[int]float64{0: 64}, AtMost: loss(0.5)},
		"without search": {AtMost: []restrict.Limit{{Objective: -1, Known: func(q space.Point) float64 { return q[1] }, Upper: 9}}},
	}
	for _, name := range designers.Names() {
		d, _ := designers.ByName(name, designers.Options{InitialPoints: 4})
		for label, c := range conditions {
			for _, checkpoint := range []bool{false, true} {
				p := simulated.KnownTraining(checkpoint)
				h := trained(p)
				r := suggest.Request{Count: 2, Seed: 3, Number: 13}
				list, err := restrict.Within(d, c).Suggest(t.Context(), p, h, r)
				if errors.Is(err, suggest.ErrExhausted) && name == "grid" && label == "without search" {
					err = nil // its levels 8, 64 and 512 hold one configuration at most
				}
				if err != nil || len(list) == 0 {
					t.Errorf("%s, %s, checkpoint %v: %d suggestions, %v", name, label, checkpoint, len(list), err)
					continue
				}
				for _, s := range list {
					if err := p.Space.Contains(s.Point); err != nil || !c.Holds(s.Point) {
						t.Errorf("%s, %s, checkpoint %v: %v has a loss of %v, %v", name, label, checkpoint, s.Point, simulated.Loss(s.Point), err)
					}
				}
				again, err := restrict.Within(d, c).Suggest(t.Context(), p, h, r)
				if diff := cmp.Diff(list, again); err != nil && !errors.Is(err, suggest.ErrExhausted) || diff != "" {
					t.Errorf("%s, %s: %v, (-first +second)\n%s", name, label, err, diff)
				}
			}
		}
	}
}

// Without restrictions a condition changes nothing.
func TestEmptyCondition(t *testing.T) {
	p := simulated.KnownTraining(true)
	h := trained(p)
	for _, name := range designers.Names() {
		d, _ := designers.ByName(name, designers.Options{InitialPoints: 4})
		r := suggest.Request{Count: 1, Seed: 3, Number: 13}
		want, err := d.Suggest(t.Context(), p, h, r)
		require.NoError(t, err)
		got, err := restrict.Within(d, restrict.Condition{}).Suggest(t.Context(), p, h, r)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, (-alone +within)\n%s", name, err, diff)
		}
	}
}

// With a price the engine chooses cheaper configurations, unless the problem has a cost of its own.
func TestPrice(t *testing.T) {
	price := restrict.Condition{Price: func(q space.Point) float64 { return math.Pow(simulated.Loss(q), 4) }}
	d, _ := designers.ByName("default", designers.Options{InitialPoints: 4})
	r := suggest.Request{Count: 1, Seed: 3, Number: 13}
	loss := func(p *suggest.Problem, c restrict.Condition) float64 {
		list, err := restrict.Within(d, c).Suggest(t.Context(), p, trained(p), r)
		require.NoError(t, err)
		return simulated.Loss(list[0].Point)
	}
	p := simulated.KnownTraining(true)
	if free, priced := loss(p, restrict.Condition{}), loss(p, price); !(priced < free/2) {
		t.Errorf("a loss of %g with a price, of %g without", priced, free)
	}
	p.Cost = suggest.CostCheckpoint
	if free, priced := loss(p, restrict.Condition{}), loss(p, price); priced != free {
		t.Errorf("a loss of %g with a second price, of %g without", priced, free)
	}
}

// A condition that holds nowhere is exhausted, not an endless search.
func TestImpossibleCondition(t *testing.T) {
	p := simulated.KnownTraining(false)
	c := restrict.Condition{AtMost: []restrict.Limit{{Objective: 0, Known: simulated.Loss, Search: simulated.RoughLoss, Upper: 1e-6}}}
	for _, name := range designers.Names() {
		d, _ := designers.ByName(name, designers.Options{InitialPoints: 4})
		if list, err := restrict.Within(d, c).Suggest(t.Context(), p, trained(p), suggest.Request{Count: 1}); !errors.Is(err, suggest.ErrExhausted) || len(list) > 0 {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
}

// The default engine looks for the best within the limit: after a few conditioned runs it
// knows a better configuration there than as many random ones under the same limit show.
func TestConditionedSuggestionsImproveWithinTheLimit(t *testing.T) {
	const limit, runs = 0.1, 12
	p := simulated.KnownTraining(false)
	p.Objectives[1].NoiseFree = true // it is a function here, not a fraction of records that differ
	c := restrict.Condition{AtMost: []restrict.Limit{{Objective: 0, Known: simulated.Loss, Search: simulated.RoughLoss, Upper: limit}}}
	best := func(d suggest.Designer, seed uint64) float64 {
		h := trained(p)
		top := 0.0
		for i := range runs {
			list, err := restrict.Within(d, c).Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: seed, Number: 13 + int64(i)})
			require.NoError(t, err)
			e := simulated.Train(list[0].Point)
			top = max(top, e.Values[1])
			h.Evaluations = append(h.Evaluations, e)
		}
		return top
	}
	for seed := range uint64(6) {
		engine, random := best(engine.New(engine.Options{}), seed), best(random.New(), seed)
		t.Logf("accuracy at a loss of %g: %.4f, random %.4f", limit, engine, random)
		if !(engine > random) {
			t.Errorf("seed %d: accuracy %.4f, random %.4f", seed, engine, random)
		}
	}
}
