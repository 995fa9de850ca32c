package suggest

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// Of 5000 random evaluations the model is made of a part, which must tell enough of
// the neighbourhood of the front to improve it.
func TestDefaultImprovesTheFrontOfManyEvaluations(t *testing.T) {
	p := tradeOff()
	h := noisyHistory(p, 5000, 8, 0)
	for i := range h.Evaluations {
		h.Evaluations[i].StdErrors = []float64{0, 0}
	}
	before := trueHypervolume(h)
	batch, err := NewDefault(EngineOptions{}).Suggest(t.Context(), p, h, Request{Count: 1, Seed: 1, Number: 5001})
	if err != nil {
		t.Fatal(err)
	}
	s := batch[0]
	if s.FallbackReason != "" {
		t.Fatal(s.FallbackReason)
	}
	var costs [][]float64
	for i := range h.Evaluations {
		e := &h.Evaluations[i]
		costs = append(costs, []float64{e.Values[0], tradeOffError(e.Point)})
	}
	reference := []float64{10, 1}
	gain := pareto.NewFront(costs, reference).Improvement([]float64{p.Objectives[0].Known(s.Point), tradeOffError(s.Point)})
	if gain <= 0 {
		t.Fatalf("%v does not improve the hypervolume %g", s.Point, before)
	}
	// Far more than any of a thousand other random configurations would.
	rng := rand.New(rand.NewPCG(9, 9))
	front, best := pareto.NewFront(costs, reference), 0.0
	for range 1000 {
		q := p.Space.Sample(rng)
		best = max(best, front.Improvement([]float64{p.Objectives[0].Known(q), tradeOffError(q)}))
	}
	if gain <= best {
		t.Errorf("improvement %g, the best of 1000 random configurations %g", gain, best)
	}
}

// Searches and fits run in parallel; what they find must not tell how many.
func TestDefaultDoesNotDependOnTheProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	p := tradeOff()
	h := noisyHistory(p, 30, 6, 0.2)
	var results [][]Suggestion
	for _, processors := range []int{1, 4} {
		runtime.GOMAXPROCS(processors)
		forget()
		batch, err := NewDefault(EngineOptions{}).Suggest(t.Context(), p, h, Request{Count: 2, Seed: 5, Number: 31})
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, batch)
	}
	if diff := cmp.Diff(results[0], results[1]); diff != "" {
		t.Errorf("-one processor +four:\n%s", diff)
	}
}

// A model of thousands of evaluations depends on the history alone: neither on what
// was learned on the way nor on what was asked before.
func TestModelOfManyEvaluationsIsReproducible(t *testing.T) {
	p := tradeOff()
	h := noisyHistory(p, 3000, 7, 0.2)
	predict := func() []Prediction {
		m, err := FitModel(t.Context(), p, h, ModelOptions{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return m.Predict(h.Evaluations[17].Point)
	}
	forget()
	cold := predict()
	if warm := predict(); !slices.Equal(cold, warm) {
		t.Errorf("%v cold, %v warm", cold, warm)
	}
}

// After its context ends a suggestion stops within a few steps of whatever it is
// doing, seen by the calls of the known objective that it still makes.
func TestDefaultStopsSoonAfterCancellation(t *testing.T) {
	// One evaluation of the acquisition asks for a known objective several times: for
	// its slopes, at the corners around integers.
	const few = 400
	h := noisyHistory(tradeOff(), 60, 1, 0.1)
	count := func(limit int64) (after int64, total int64, err error) {
		p := tradeOff()
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
		_, err = NewDefault(EngineOptions{}).Suggest(ctx, p, h, Request{Count: 1, Seed: 1, Number: 61})
		return calls.Load() - limit, calls.Load(), err
	}
	_, total, err := count(-1)
	if err != nil {
		t.Fatal(err)
	}
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

// endingContext ends after a number of questions whether it has.
type endingContext struct {
	context.Context
	left atomic.Int64
	late atomic.Int64 // questions after the end
}

func (c *endingContext) Err() error {
	if c.left.Add(-1) >= 0 {
		return nil
	}
	c.late.Add(1)
	return context.Canceled
}

// A fit asks before every evaluation of the posterior, and not many times after the
// end.
func TestFitStopsSoonAfterCancellation(t *testing.T) {
	p := tradeOff()
	h := noisyHistory(p, 60, 1, 0.1)
	for _, steps := range []int64{0, 3, 10, 25} {
		forget()
		ctx := &endingContext{Context: t.Context()}
		ctx.left.Store(steps)
		if _, err := FitModel(ctx, p, h, ModelOptions{Seed: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("after %d steps: error %v, want that of the context", steps, err)
		}
		if late := ctx.late.Load(); late > 20 {
			t.Errorf("after %d steps: %d more", steps, late)
		}
	}
}
