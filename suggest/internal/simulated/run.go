package simulated

import (
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Run asks d for n configurations, one by one, and evaluates them. It fails the test if the
// designer's model fails.
func Run(t *testing.T, d suggest.Designer, p *suggest.Problem, n int, seed uint64, evaluate func(space.Point) suggest.Evaluation) *suggest.History {
	t.Helper()
	h := &suggest.History{}
	for number := range n {
		s, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: seed, Number: int64(number + 1)})
		if err != nil {
			t.Fatal(err)
		}
		if s[0].FallbackReason != "" {
			t.Errorf("trial %d: %s", number+1, s[0].FallbackReason)
		}
		h.Evaluations = append(h.Evaluations, evaluate(s[0].Point))
	}
	return h
}

// Ask returns the suggestions of a designer, which must succeed.
func Ask(t *testing.T, d suggest.Designer, p *suggest.Problem, h *suggest.History, r suggest.Request) []suggest.Suggestion {
	t.Helper()
	s, err := d.Suggest(t.Context(), p, h, r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
