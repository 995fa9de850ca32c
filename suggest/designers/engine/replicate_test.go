package engine

import (
	"slices"
	"testing"

	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/space"
)

// A caller that changes a suggested point changes nothing that the history holds.
func TestSuggestedPointsAreCopies(t *testing.T) {
	p := simulated.TradeOff()
	h := simulated.TradeOffHistory(p, 20, 3, 1)
	s := newTestSurface(t, p, h, Options{})
	e := &explorer{surface: s, options: Options{}, tried: h.Tried()}
	list, _ := e.replicable(nil)
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
	e := &explorer{surface: newTestSurface(t, p, h, Options{}), tried: h.Tried()}
	all, _ := e.replicable(nil)
	if len(all) < 2 {
		t.Fatal("too few to replicate")
	}
	left, trials := e.replicable(all[:1])
	if !slices.EqualFunc(left, all[1:], slices.Equal[space.Point]) || len(trials) != len(left) {
		t.Errorf("%v to replicate of %v, of which the first is pending", left, all)
	}
}
