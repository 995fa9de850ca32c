package query_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/query"
	"github.com/dpareto/dpareto/suggest/space"
)

var unbounded = math.NaN()

// fitted is a model of many runs of knownTraining without noise.
func fitted(t *testing.T) (*suggest.Problem, *model.Model) {
	t.Helper()
	p := simulated.KnownTraining(false)
	h := new(suggest.History)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 120 {
		e := simulated.Train(p.Space.Sample(rng))
		e.StdErrors = []float64{0, 0}
		h.Evaluations = append(h.Evaluations, e)
	}
	m, err := model.Fit(t.Context(), p, h, model.Options{})
	require.NoError(t, err)
	return p, m
}

// bruteForce returns the best that 400,000 random configurations have, where the loss is
// put to a bound by the noise: value is what is made large, NaN where a configuration does
// not count.
func bruteForce(p *suggest.Problem, value func(q space.Point) float64) float64 {
	rng := rand.New(rand.NewPCG(3, 4))
	best := math.Inf(-1)
	for range 400_000 {
		if v := value(p.Space.Sample(rng)); v > best {
			best = v
		}
	}
	return best
}

// atLoss is q with the noise that gives it the loss, if that is in range.
func atLoss(q space.Point, loss float64) (space.Point, bool) {
	q = q.Clone()
	q[3] *= simulated.Loss(q) / loss
	return q, q[3] >= 0.1 && q[3] <= 16
}

// The best accuracy at a bound of the loss, and the loss at a bound of the accuracy, are
// those of an exhaustive search of the true functions, and the loss is at its bound to the
// last digit although the search has a stand-in for it.
func TestQuery(t *testing.T) {
	p, m := fitted(t)
	for _, bound := range []float64{0.1, 0.5, 2} {
		q := query.Query{Optimize: 1, Bounds: []float64{bound, unbounded}, Confidence: 0.5}
		a, ok, err := q.Search(t.Context(), m)
		if err != nil || !ok || !a.Met() {
			t.Fatalf("loss of at most %g: %v, %v, %v", bound, a, ok, err)
		}
		best := bruteForce(p, func(q space.Point) float64 {
			if at, ok := atLoss(q, bound); ok {
				return simulated.Train(at).Values[1]
			}
			return math.NaN()
		})
		got := simulated.Train(a.Point).Values
		t.Logf("loss of at most %g: %.8g with accuracy %.4f (expected %.4f), best %.4f", bound, got[0], got[1], a.Reached[1], best)
		if got[0] > bound || got[0] < bound*(1-1e-6) {
			t.Errorf("loss %g, bound %g", got[0], bound)
		}
		if got[1] < best-0.01 {
			t.Errorf("accuracy %.4f, best %.4f", got[1], best)
		}
		if measured, ok := q.Measured(m); !ok || !q.Better(m.Problem(), &a, &measured) {
			t.Errorf("a configuration that was measured is as good: %v", measured)
		}
		again, _, err := q.Search(t.Context(), m)
		if diff := cmp.Diff(a, again); err != nil || diff != "" {
			t.Errorf("again: %v, (-first +second)\n%s", err, diff)
		}
	}
	for _, bound := range []float64{0.6, 0.75} {
		q := query.Query{Optimize: 0, Bounds: []float64{unbounded, bound}, Confidence: 0.5}
		a, ok, err := q.Search(t.Context(), m)
		if err != nil || !ok || !a.Met() {
			t.Fatalf("accuracy of at least %g: %v, %v, %v", bound, a, ok, err)
		}
		least := -bruteForce(p, func(q space.Point) float64 {
			if e := simulated.Train(q); e.Values[1] >= bound {
				return -e.Values[0]
			}
			return math.NaN()
		})
		got := simulated.Train(a.Point).Values
		t.Logf("accuracy of at least %g: %.4f with loss %.4f, least of random ones %.4f", bound, got[1], got[0], least)
		if got[1] < bound-0.02 || a.Reached[1] < bound || a.Reached[0] != got[0] {
			t.Errorf("accuracy %.4f, expected %.4f, loss %g", got[1], a.Reached[1], a.Reached[0])
		}
		if got[0] > 1.05*least {
			t.Errorf("loss %.4f, random search has %.4f", got[0], least)
		}
	}
}

// What cannot be reached comes with what can.
func TestQueryOutOfReach(t *testing.T) {
	p, m := fitted(t)
	a, ok, err := query.Query{Optimize: 0, Bounds: []float64{unbounded, 0.99}, Confidence: 0.5}.Search(t.Context(), m)
	if err != nil || !ok || a.Met() {
		t.Fatalf("%v, %v, %v", a, ok, err)
	}
	best := bruteForce(p, func(q space.Point) float64 { return simulated.Train(q).Values[1] })
	if got := simulated.Train(a.Point).Values[1]; got < best-0.01 {
		t.Errorf("nearest has accuracy %.4f, best %.4f", got, best)
	}
	// 0.5·√(1·8/32)/16 is the least loss.
	a, ok, err = query.Query{Optimize: 1, Bounds: []float64{0.001, unbounded}, Confidence: 0.5}.Search(t.Context(), m)
	if err != nil || !ok || a.Met() || math.Abs(a.Reached[0]-1.0/64) > 1e-12 {
		t.Errorf("nearest to a loss of 0.001: %v, %v, %v", a, ok, err)
	}
	if want := (1.0/64 - 0.001) / (10 - 0.001); math.Abs(a.Violation-want) > 1e-12 {
		t.Errorf("violation %g, want %g", a.Violation, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := query.Query{Bounds: []float64{1, unbounded}, Confidence: 0.5}
	if _, _, err := q.Search(ctx, m); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Of equal answers the one that is better otherwise wins. What is nearest to a bound does not depend on how far it is.
func TestQueryOrder(t *testing.T) {
	p := &suggest.Problem{
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Reference: 10},
			{Name: "error", Goal: suggest.Minimize, Reference: 1},
		},
		Constants: [][]float64{{0.3, 0.25}, {0.03, 0.25}, {9, 0.2}, {8, 0.2}},
	}
	for _, tc := range []struct {
		optimize       int
		epsilon, error float64
		want           int
	}{
		{optimize: 1, epsilon: 1, error: unbounded, want: 1},
		{optimize: 1, epsilon: 10, error: unbounded, want: 3},
		{optimize: 0, epsilon: unbounded, error: -1, want: 3},
		{optimize: 0, epsilon: unbounded, error: -1e17, want: 3},
		{optimize: 0, epsilon: unbounded, error: -1e300, want: 3},
		{optimize: 0, epsilon: 5, error: -1e300, want: 1}, // meets one of two
	} {
		q := query.Query{Optimize: tc.optimize, Bounds: []float64{tc.epsilon, tc.error}}
		if a, i, ok := q.Constant(p); !ok || i != tc.want {
			t.Errorf("%+v: constant %d, %+v", tc, i, a)
		}
	}
}

// The value that holds with a confidence is that quantile of the posterior, for every
// transform and goal: draws of the latent value are at least as good that often.
func TestQueryConfidence(t *testing.T) {
	for _, transform := range []suggest.Transform{suggest.Identity, suggest.Log, suggest.Logit} {
		for _, goal := range []suggest.Goal{suggest.Minimize, suggest.Maximize} {
			p := &suggest.Problem{
				Space:      &space.Space{Parameters: []space.Parameter{{Name: "x", Kind: space.Double, Min: 0, Max: 1}}},
				Objectives: []suggest.Objective{{Name: "y", Goal: goal, Transform: transform, Reference: 0.5}},
			}
			h := new(suggest.History)
			rng := rand.New(rand.NewPCG(1, 2))
			for range 12 {
				x := rng.Float64()
				h.Evaluations = append(h.Evaluations, suggest.Evaluation{
					Point: space.Point{x}, Values: []float64{0.3 + 0.2*x + 0.05*rng.NormFloat64()}, StdErrors: []float64{0.05},
				})
			}
			m, err := model.Fit(t.Context(), p, h, model.Options{})
			require.NoError(t, err)
			at := func(confidence float64) query.Answer {
				a, ok := query.Query{Bounds: []float64{unbounded}, Confidence: confidence}.Measured(m)
				if !ok {
					t.Fatal("nothing was measured")
				}
				return a
			}
			// The 5 % and 95 % quantiles are the ends of the interval of a prediction.
			high, median, low := at(0.95), at(0.5), at(0.05)
			end := func(a query.Answer, good bool) float64 {
				if good == (goal == suggest.Minimize) {
					return a.Predictions[0].Lower
				}
				return a.Predictions[0].Upper
			}
			for _, tc := range []struct{ got, want float64 }{
				{high.Reached[0], end(high, false)},
				{median.Reached[0], median.Predictions[0].Median},
				{low.Reached[0], end(low, true)},
			} {
				if math.Abs(tc.got-tc.want) > 1e-12 {
					t.Errorf("%v, %v: reaches %v, the prediction says %v", transform, goal, tc.got, tc.want)
				}
			}
		}
	}
}
