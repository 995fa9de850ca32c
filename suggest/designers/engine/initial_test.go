package engine

import (
	"slices"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/space"
)

// First runs are spread over the features that matter: the nearest two of them are farther apart than
// those of the quasi-random design. Asked for one by one or all at once, they are the same.
func TestFirstRunsAreSpread(t *testing.T) {
	p := simulated.NoiseTraining(64)
	plain := *p
	p.Features = &suggest.Features{
		Count: 2, Evaluate: pathFeatures.Evaluate, Parameters: []int{0, 1}, Replaced: []int{0, 1}, Spread: []int{0, 1},
	}
	n := InitialPoints(p)
	if n != 6 || InitialPoints(&plain) != 6 {
		t.Fatalf("%d first runs, %d without features", n, InitialPoints(&plain))
	}
	least := func(list []suggest.Suggestion) float64 {
		var x [][]float64
		d := 1e9
		for _, s := range list {
			f := spreadFeatures(p, s.Point)
			if len(x) > 0 {
				d = min(d, nearest(x, f))
			}
			x = append(x, f)
		}
		return d
	}
	for seed := range uint64(5) {
		at := suggest.Request{Count: n, Seed: seed, Number: 1}
		d := New(Options{})
		together, err := d.Suggest(t.Context(), p, &suggest.History{}, at)
		require.NoError(t, err)
		quasirandom, err := d.Suggest(t.Context(), &plain, &suggest.History{}, at)
		require.NoError(t, err)
		if a, b := least(together), least(quasirandom); !(a > b) {
			t.Errorf("seed %d: the nearest are %g apart, without features %g", seed, a, b)
		}
		h := &suggest.History{}
		for i := range n {
			one, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: seed, Number: int64(i + 1)})
			require.NoError(t, err)
			if !slices.Equal(one[0].Point, together[i].Point) {
				t.Errorf("seed %d, run %d: %v, among all %v", seed, i, one[0].Point, together[i].Point)
			}
			h.Pending = append(h.Pending, one[0].Point)
		}
	}
}

// The first run of a study is in the middle of the space, unless that is not allowed or was tried. No later run is,
// whatever became of the first.
func TestFirstRunIsInTheMiddle(t *testing.T) {
	p := simulated.TradeOff()
	centre := middle(p.Space)
	first := func(p *suggest.Problem, h *suggest.History, number int64) space.Point {
		got, err := New(Options{}).Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: 3, Number: number})
		require.NoError(t, err)
		return got[0].Point
	}
	if q := first(p, new(suggest.History), 1); !q.Equal(centre) {
		t.Errorf("first run at %v, want %v", q, centre)
	}
	if q := first(p, new(suggest.History), 2); q.Equal(centre) {
		t.Errorf("second run at %v, too, after a first one that left no trace", q)
	}
	if q := first(p, &suggest.History{Infeasible: []space.Point{centre}}, 1); q.Equal(centre) {
		t.Errorf("first run at %v, which is infeasible", q)
	}
	limited := *p
	limited.Allowed = func(q space.Point) bool { return !q.Equal(centre) }
	if q := first(&limited, new(suggest.History), 1); q.Equal(centre) {
		t.Errorf("first run at %v, which is not allowed", q)
	}
}

// Workers that ask before the first measurement get the initial design, also beyond its size.
func TestDesignGoesOnWithoutMeasurements(t *testing.T) {
	p := simulated.TradeOff()
	got, err := New(Options{InitialPoints: 1}).Suggest(t.Context(), p, new(suggest.History), suggest.Request{Count: 4, Seed: 3, Number: 1})
	require.NoError(t, err)
	for i, s := range got {
		if s.FallbackReason != "" {
			t.Errorf("suggestion %d falls back: %s", i, s.FallbackReason)
		}
	}
	if len(got) != 4 {
		t.Errorf("%d suggestions, want 4", len(got))
	}
}
