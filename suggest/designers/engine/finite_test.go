package engine

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// grid is a problem over few configurations: integers and categories by turns.
func grid(counts ...int) *suggest.Problem {
	s := new(space.Space)
	for j, n := range counts {
		p := space.Parameter{Name: string(rune('a' + j)), Kind: space.Integer, Max: float64(n - 1)}
		if j%2 == 1 {
			p = space.Parameter{Name: p.Name, Kind: space.Categorical}
			for k := range n {
				p.Choices = append(p.Choices, string(rune('a'+k)))
			}
		}
		s.Parameters = append(s.Parameters, p)
	}
	return &suggest.Problem{Space: s, Objectives: []suggest.Objective{
		{Name: "f", Goal: suggest.Minimize, Reference: 3}, {Name: "g", Goal: suggest.Minimize, Reference: 3},
	}}
}

// gridValues returns objectives over a grid, with a random part.
func gridValues(p *suggest.Problem, q space.Point, part float64, rng *rand.Rand) []float64 {
	f, g := part*rng.Float64(), part*rng.Float64()
	for j, v := range q {
		u := v / math.Max(1, p.Space.Parameters[j].Count()-1)
		f += u * u
		g += (1 - u) * (1 - u)
	}
	return []float64{f, g}
}

// Every configuration of a small space is tried before one is tried again, as long as nothing shows that there
// is noise: with smooth objectives and with ones that differ without a pattern.
func TestSmallSpacesAreExhausted(t *testing.T) {
	for _, counts := range [][]int{{12}, {3, 4}, {4, 3}, {6, 2}, {2, 3, 4}, {5, 1, 5}} {
		for seed := range uint64(3) {
			for _, rough := range []float64{0, 0.05, 0.5} {
				p, h, rng := grid(counts...), new(suggest.History), rand.New(rand.NewPCG(seed, 1))
				all := int64(p.Space.Cardinality())
				for number := range all {
					got, err := New(Options{}).Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: seed, Number: number + 1})
					require.NoError(t, err)
					q := got[0].Point
					if h.Tried().Contains(q) {
						t.Errorf("%v, seed %d, roughness %g: suggestion %d of %d repeats %v", counts, seed, rough, number+1, all, q)
						break
					}
					h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: q, Values: gridValues(p, q, rough, rng)})
				}
			}
		}
	}
}

// Where repetitions differ, more of them are worth it in a small space.
func TestRepetitionsInASmallNoisySpace(t *testing.T) {
	again := 0
	for seed := range uint64(8) {
		p, h, rng := grid(4, 3), new(suggest.History), rand.New(rand.NewPCG(seed, 1))
		for q := range p.Space.Points() {
			if q.Equal(space.Point{0, 2}) {
				continue // it is left, and far from the front
			}
			h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: q, Values: gridValues(p, q, 0.5, rng)})
		}
		for i := range 3 {
			q := h.Evaluations[4*i].Point
			h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: q, Values: gridValues(p, q, 0.5, rng)})
		}
		got, err := New(Options{}).Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: seed, Number: 15})
		require.NoError(t, err)
		if got[0].Replicate {
			again++
		}
	}
	if again == 0 {
		t.Error("none of 8 suggestions is a repetition although repetitions differ")
	}
}
