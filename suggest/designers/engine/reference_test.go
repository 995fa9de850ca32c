package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/problems"
)

// withoutReferences returns a problem whose references are inferred.
func withoutReferences(p *suggest.Problem) *suggest.Problem {
	out := *p
	out.Objectives = append([]suggest.Objective(nil), p.Objectives...)
	for j := range out.Objectives {
		o := &out.Objectives[j]
		o.InferReference, o.Reference = true, suggest.UnknownReference(o.Goal, o.Transform)
	}
	return &out
}

// The references of the search are never better than those beyond the observed front, and sometimes
// worse. A problem that gives all keeps them.
func TestWidened(t *testing.T) {
	wider := false
	for _, name := range []string{"zdt2", "branin_currin", "vehicle_safety"} {
		p, _ := problems.ByName(name)
		h := new(suggest.History)
		rng := rand.New(rand.NewPCG(1, 1))
		for n := int64(1); n <= 12; n++ {
			suggestions, err := quasirandom.New().Suggest(t.Context(), &p.Problem, h, suggest.Request{Count: 1, Seed: 1, Number: n})
			require.NoError(t, err)
			h.Evaluations = append(h.Evaluations, p.Observe(suggestions[0].Point, rng))
		}
		observed := withoutReferences(&p.Problem).Inferred(h)
		m, err := model.Fit(t.Context(), observed, h, model.Options{Seed: 1})
		require.NoError(t, err)
		wide := widened(m, 1, 13).Problem().ReferenceCosts()
		for j, reference := range observed.ReferenceCosts() {
			if wide[j] < reference {
				t.Errorf("%s: reference %d is %g, %g beyond the observed front", name, j, wide[j], reference)
			}
			wider = wider || wide[j] > reference
		}
		given, err := model.Fit(t.Context(), &p.Problem, h, model.Options{Seed: 1})
		require.NoError(t, err)
		if widened(given, 1, 13) != given {
			t.Errorf("%s: given references are changed", name)
		}
	}
	if !wider {
		t.Error("references are always those beyond the observed front")
	}
}

// Without references the search still finds the whole front: of ZDT2, whose observed front is a corner
// after the initial design. Within references beyond the observed front alone the search stays there,
// and reaches a hypervolume of 110, where 120.3 is the largest.
func TestSearchWithoutReferences(t *testing.T) {
	p, _ := problems.ByName("zdt2")
	asked := withoutReferences(&p.Problem)
	designer := New(Options{})
	h, rng := new(suggest.History), rand.New(rand.NewPCG(1, 1))
	var costs [][]float64
	for n := int64(1); n <= 40; n++ {
		suggestions, err := designer.Suggest(t.Context(), asked.Inferred(h), h, suggest.Request{Count: 1, Seed: 1, Number: n})
		require.NoError(t, err)
		if suggestions[0].FallbackReason != "" {
			t.Fatal(suggestions[0].FallbackReason)
		}
		e := p.Observe(suggestions[0].Point, rng)
		h.Evaluations, costs = append(h.Evaluations, e), append(costs, e.Values)
	}
	if got := pareto.Hypervolume(costs, p.Reference()); got < 0.99*p.MaxHypervolume {
		t.Errorf("hypervolume %g of %g", got, p.MaxHypervolume)
	}
}
