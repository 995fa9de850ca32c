package engine_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/engine"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// runStudy runs a designer for n runs on the trade-off.
func runStudy(t *testing.T, d suggest.Designer, p *suggest.Problem, n int, seed uint64, sd float64) *suggest.History {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 77))
	h := &suggest.History{}
	for i := range n {
		suggestions, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: seed, Number: int64(i + 1)})
		require.NoError(t, err)
		if err := p.Space.Contains(suggestions[0].Point); err != nil {
			t.Fatalf("suggestion %d: %v", i+1, err)
		}
		if suggestions[0].FallbackReason != "" {
			t.Errorf("suggestion %d: %s", i+1, suggestions[0].FallbackReason)
		}
		simulated.ObserveTradeOff(h, p, suggestions[0].Point, rng, sd)
	}
	return h
}

// Who else models the same history with the same seed and cache, such as early stopping, fits nothing anew.
func TestOthersShareTheFit(t *testing.T) {
	p := simulated.TradeOff()
	h := simulated.TradeOffHistory(p, 30, 1, 0.1)
	cache := new(model.Cache)
	d := engine.New(engine.Options{Cache: cache})
	require.NoError(t, require.ErrOf(d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: 5, Number: 31})))
	var climbs atomic.Int64
	workers := surrogate.Workers{Run: func(fn func()) { climbs.Add(1); fn() }}
	require.NoError(t, require.ErrOf(model.Fit(t.Context(), p, h, model.Options{Seed: 5, Cache: cache, Workers: workers})))
	if n := climbs.Load(); n != 0 {
		t.Errorf("the fit climbs %d times again", n)
	}
}

// A known constraint may take an accountant milliseconds. A request computes it once at each candidate, and then where its
// searches go.
func TestKnownConstraintsAreComputedOnce(t *testing.T) {
	var calls int
	p := simulated.TradeOff()
	p.Constraints = []suggest.Constraint{{Name: "c", Lower: 0.1, Upper: math.Inf(1), Known: func(q space.Point) float64 {
		calls++
		return q[0]
	}}}
	h := simulated.TradeOffHistory(p, 30, 1, 0.1)
	for i := range h.Evaluations {
		h.Evaluations[i].Values = append(h.Evaluations[i].Values, h.Evaluations[i].Point[0])
	}
	d := engine.New(engine.Options{})
	count := func(n int) int {
		calls = 0
		require.NoError(t, require.ErrOf(d.Suggest(t.Context(), p, h, suggest.Request{Count: n, Seed: 5, Number: 31})))
		return calls
	}
	if one, eight := count(1), count(8); one == 0 || eight >= 2*one {
		t.Errorf("computed %d times for eight suggestions, %d times for one", eight, one)
	}
}

func TestDefaultBeatsRandomSearch(t *testing.T) {
	for seed := range uint64(3) {
		p := simulated.TradeOff()
		ours := simulated.TradeOffHypervolume(runStudy(t, engine.New(engine.Options{}), p, 30, seed, 0.1))
		random := simulated.TradeOffHypervolume(runStudy(t, random.New(), p, 200, seed, 0.1))
		if ours <= random {
			t.Errorf("seed %d: hypervolume %g after 30 runs, %g after 200 random ones", seed, ours, random)
		}
	}
}

// The same arguments give the same suggestions, whatever was asked before, and a
// batch is the same as one after the other with the earlier ones pending.
func TestDefaultIsReproducible(t *testing.T) {
	p := simulated.TradeOff()
	h := simulated.TradeOffHistory(p, 30, 6, 0.2)
	d := engine.New(engine.Options{})
	request := suggest.Request{Count: 3, Seed: 5, Number: 31}
	batch, err := d.Suggest(t.Context(), p, h, request)
	require.NoError(t, err)
	again, err := engine.New(engine.Options{}).Suggest(t.Context(), p, h, request)
	require.NoError(t, err)
	if diff := cmp.Diff(batch, again); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
	for i, want := range batch {
		one, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: 5, Number: 31 + int64(i)})
		require.NoError(t, err)
		if diff := cmp.Diff(want, one[0]); diff != "" {
			t.Errorf("suggestion %d alone (-batch +alone):\n%s", i, diff)
		}
		h.Pending = append(h.Pending, want.Point)
	}
}

// Histories that leave little to a model: nothing, one value, values that are all
// equal, all worse than the reference, or not finite.
func TestDefaultWithPoorHistories(t *testing.T) {
	one := simulated.TradeOffHistory(simulated.TradeOff(), 1, 1, 0)
	equal := simulated.TradeOffHistory(simulated.TradeOff(), 20, 1, 0)
	for i := range equal.Evaluations {
		equal.Evaluations[i].Values[1] = 0.5
	}
	bad := simulated.TradeOffHistory(simulated.TradeOff(), 20, 1, 0)
	for i := range bad.Evaluations {
		bad.Evaluations[i].Values[1] = 1
	}
	infinite := simulated.TradeOffHistory(simulated.TradeOff(), 20, 1, 0)
	for i := range infinite.Evaluations {
		infinite.Evaluations[i].Values[0] = math.Inf(1)
	}
	absent := simulated.TradeOffHistory(simulated.TradeOff(), 20, 1, 0)
	for i := range absent.Evaluations {
		absent.Evaluations[i].Values[1] = math.NaN()
	}
	same := simulated.TradeOffHistory(simulated.TradeOff(), 20, 1, 0)
	for i := range same.Evaluations {
		same.Evaluations[i] = same.Evaluations[0]
	}
	infeasible := simulated.TradeOffHistory(simulated.TradeOff(), 20, 1, 0)
	for i := range infeasible.Evaluations {
		infeasible.Infeasible = append(infeasible.Infeasible, infeasible.Evaluations[i].Point)
	}
	infeasible.Evaluations = nil
	for name, h := range map[string]*suggest.History{
		"nothing": {}, "one": one, "equal": equal, "bad": bad, "infinite": infinite,
		"absent": absent, "same": same, "infeasible": infeasible,
	} {
		for _, d := range []suggest.Designer{engine.New(engine.Options{InitialPoints: 1}), engine.NewEHVI(engine.Options{InitialPoints: 1})} {
			p := simulated.TradeOff()
			got, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 3, Seed: 1, Number: 21})
			if err != nil || len(got) != 3 {
				t.Errorf("%s, %s: %d suggestions, %v", d.Name(), name, len(got), err)
				continue
			}
			for _, s := range got {
				if err := p.Space.Contains(s.Point); err != nil {
					t.Errorf("%s, %s: %v", d.Name(), name, err)
				}
			}
		}
	}
}

// Two points of a space that has no others are suggested once each, then replicated
// or exhausted.
func TestDefaultInATinySpace(t *testing.T) {
	p := simulated.TradeOff()
	for j := range 3 {
		p.Space.Parameters[j] = space.Parameter{Name: p.Space.Parameters[j].Name, Kind: space.Discrete, Values: []float64{1}}
	}
	d := engine.New(engine.Options{InitialPoints: 1})
	got, err := d.Suggest(t.Context(), p, &suggest.History{}, suggest.Request{Count: 2, Seed: 1, Number: 1})
	if err != nil || len(got) != 2 || got[0].Point.Equal(got[1].Point) {
		t.Fatalf("suggestions %v, %v, want both points", got, err)
	}
	h := &suggest.History{Pending: []space.Point{got[0].Point, got[1].Point}}
	if got, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: 1, Number: 3}); len(got) != 0 || !errors.Is(err, suggest.ErrExhausted) {
		t.Errorf("suggestions %v, %v, want none", got, err)
	}
}

func TestDefaultIsCancelled(t *testing.T) {
	p := simulated.TradeOff()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := engine.New(engine.Options{}).Suggest(ctx, p, simulated.TradeOffHistory(p, 30, 1, 0.1), suggest.Request{Count: 1, Number: 31}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

// Configurations are tried again where noise is learned, and never where it is known.
func TestNoReplicateWithKnownNoise(t *testing.T) {
	const sd = 1
	again := map[bool]int{}
	for seed := range uint64(8) {
		for _, known := range []bool{false, true} {
			p := simulated.TradeOff()
			p.Space.Parameters[2] = space.Parameter{Name: "lot", Kind: space.Discrete, Values: []float64{16}}
			p.Space.Parameters[3] = space.Parameter{Name: "kind", Kind: space.Discrete, Values: []float64{1}}
			h := simulated.TradeOffHistory(p, 60, seed, sd)
			for i := range h.Evaluations {
				if e := &h.Evaluations[i]; known {
					slope := e.Values[1] * (1 - e.Values[1]) // the noise is on the logit scale
					e.StdErrors = []float64{0, sd * slope}
				}
			}
			got, err := engine.New(engine.Options{}).Suggest(t.Context(), p, h, suggest.Request{Count: 4, Seed: seed, Number: 61})
			require.NoError(t, err)
			for _, s := range got {
				if s.Replicate {
					again[known]++
				}
			}
		}
	}
	if again[false] == 0 || again[true] != 0 {
		t.Errorf("%d replicates with learned noise and %d with known noise", again[false], again[true])
	}
}

// Of 5000 random evaluations the model is made of a part, which must tell enough of
// the neighbourhood of the front to improve it.
func TestDefaultImprovesTheFrontOfManyEvaluations(t *testing.T) {
	p := simulated.TradeOff()
	h := simulated.TradeOffHistory(p, 5000, 8, 0)
	for i := range h.Evaluations {
		h.Evaluations[i].StdErrors = []float64{0, 0}
	}
	before := simulated.TradeOffHypervolume(h)
	batch, err := engine.New(engine.Options{}).Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: 1, Number: 5001})
	require.NoError(t, err)
	s := batch[0]
	if s.FallbackReason != "" {
		t.Fatal(s.FallbackReason)
	}
	var costs [][]float64
	for i := range h.Evaluations {
		e := &h.Evaluations[i]
		costs = append(costs, []float64{e.Values[0], simulated.TradeOffError(e.Point)})
	}
	reference := []float64{10, 1}
	gain := pareto.NewFront(costs, reference).Improvement([]float64{p.Objectives[0].Known(s.Point), simulated.TradeOffError(s.Point)})
	if gain <= 0 {
		t.Fatalf("%v does not improve the hypervolume %g", s.Point, before)
	}
	// Far more than any of a thousand other random configurations would.
	rng := rand.New(rand.NewPCG(9, 9))
	front, best := pareto.NewFront(costs, reference), 0.0
	for range 1000 {
		q := p.Space.Sample(rng)
		best = max(best, front.Improvement([]float64{p.Objectives[0].Known(q), simulated.TradeOffError(q)}))
	}
	if gain <= best {
		t.Errorf("improvement %g, the best of 1000 random configurations %g", gain, best)
	}
}

// Searches and fits run in parallel; what they find must not tell how many.
func TestDefaultDoesNotDependOnTheProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	p := simulated.TradeOff()
	h := simulated.TradeOffHistory(p, 30, 6, 0.2)
	var results [][]suggest.Suggestion
	for _, processors := range []int{1, 4} {
		runtime.GOMAXPROCS(processors)
		batch, err := engine.New(engine.Options{}).Suggest(t.Context(), p, h, suggest.Request{Count: 2, Seed: 5, Number: 31})
		require.NoError(t, err)
		results = append(results, batch)
	}
	if diff := cmp.Diff(results[0], results[1]); diff != "" {
		t.Errorf("-one processor +four:\n%s", diff)
	}
}

// After its context ends a suggestion stops within a few steps of whatever it is
// doing, seen by the calls of the known objective that it still makes.
func TestDefaultStopsSoonAfterCancellation(t *testing.T) {
	// One evaluation of the acquisition asks for a known objective several times: for
	// its slopes, at the corners around integers.
	const few = 400
	h := simulated.TradeOffHistory(simulated.TradeOff(), 60, 1, 0.1)
	count := func(limit int64) (after int64, total int64, err error) {
		p := simulated.TradeOff()
		known := p.Objectives[0].Known
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var calls atomic.Int64
		p.Objectives[0].Known = func(q space.Point) float64 {
			if calls.Add(1) == limit {
				cancel()
			}
			return known(q)
		}
		_, err = engine.New(engine.Options{}).Suggest(ctx, p, h, suggest.Request{Count: 1, Seed: 1, Number: 61})
		return calls.Load() - limit, calls.Load(), err
	}
	_, total, err := count(-1)
	require.NoError(t, err)
	if total < 3*few {
		t.Fatalf("%d calls altogether, too few to tell", total)
	}
	for _, share := range []int64{1, 3, 5, 7, 9} {
		after, _, err := count(max(1, total*share/10))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled after %d tenths: error %v", share, err)
		}
		if after > few {
			t.Errorf("cancelled after %d tenths: %d more calls", share, after)
		}
	}
}
