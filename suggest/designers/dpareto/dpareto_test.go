package dpareto_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/dpareto"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// randomHistory holds n random configurations, evaluated by f.
func randomHistory(s *space.Space, n int, f func(space.Point) suggest.Evaluation) *suggest.History {
	rng := rand.New(rand.NewPCG(11, 12))
	h := &suggest.History{}
	for range n {
		h.Evaluations = append(h.Evaluations, f(s.Sample(rng)))
	}
	return h
}

// The initial points are the random designer's, and every configuration that
// was tried in whatever state counts as one.
func TestDParetoInitialPoints(t *testing.T) {
	p := simulated.Training()
	h := randomHistory(p.Space, 3, simulated.Train)
	rng := rand.New(rand.NewPCG(1, 1))
	h.Pending = []space.Point{p.Space.Sample(rng)}
	h.Infeasible = []space.Point{p.Space.Sample(rng)}
	r := suggest.Request{Count: 4, Seed: 8, Number: 6}
	got := simulated.Ask(t, dpareto.New(dpareto.Options{InitialPoints: 7, Candidates: 50}), p, h, r)
	random := simulated.Ask(t, random.New(), p, h, r)
	if diff := cmp.Diff(random[:2], got[:2]); diff != "" {
		t.Errorf("initial points (-random +got):\n%s", diff)
	}
	for _, s := range got[2:] {
		if s.Designer != "dpareto" || len(s.Predictions) != 2 || s.FallbackReason != "" {
			t.Errorf("suggestion after the initial points: %+v", s)
		}
	}
}

// The optimum lies on faces of the space, and is suggested exactly there.
func TestDParetoReachesFaces(t *testing.T) {
	p := simulated.Training()
	h := simulated.Run(t, dpareto.New(dpareto.Options{InitialPoints: 10}), p, 30, 4, simulated.Train)
	onFace := 0
	for _, e := range h.Evaluations[10:] {
		if e.Point[2] == 5e-2 && e.Point[4] == 0 {
			onFace++
		}
	}
	if onFace < 10 {
		t.Errorf("%d of 20 suggestions have the best learning rate, the upper bound", onFace)
	}
}

// A whole batch avoids what is pending and itself, by a clear distance.
func TestDParetoBatchSpreads(t *testing.T) {
	p := simulated.Training()
	h := randomHistory(p.Space, 20, simulated.Train)
	batch := simulated.Ask(t, dpareto.New(dpareto.Options{}), p, h, suggest.Request{Count: 6, Number: 21})
	for i, a := range batch {
		for _, b := range batch[:i] {
			x, y := p.Space.Encode(nil, a.Point), p.Space.Encode(nil, b.Point)
			distance := 0.0
			for j := range x {
				distance += (x[j] - y[j]) * (x[j] - y[j])
			}
			if math.Sqrt(distance) < 0.01 {
				t.Errorf("%v and %v in one batch", a.Point, b.Point)
			}
		}
	}
}

// Without a model a quasi-random configuration stands in, and says why.
func TestDParetoFallback(t *testing.T) {
	p := simulated.Training()
	h := randomHistory(p.Space, 16, func(q space.Point) suggest.Evaluation {
		return suggest.Evaluation{Point: q, Values: []float64{1, math.NaN()}}
	})
	r := suggest.Request{Count: 2, Seed: 1, Number: 17}
	got := simulated.Ask(t, dpareto.New(dpareto.Options{}), p, h, r)
	want := simulated.Ask(t, quasirandom.New(), p, h, r)
	for i, s := range got {
		if !s.Point.Equal(want[i].Point) || s.Designer != "quasi_random" {
			t.Errorf("suggestion %d = %+v, want the quasi-random %v", i, s, want[i].Point)
		}
		if !strings.Contains(s.FallbackReason, `"accuracy"`) {
			t.Errorf("reason %q does not name the objective", s.FallbackReason)
		}
	}
}

// With every configuration far beyond the reference, the search heads for it.
func TestDParetoEmptyFront(t *testing.T) {
	p := simulated.Training()
	p.Objectives[0].Reference = 1e-2
	h := randomHistory(p.Space, 16, func(q space.Point) suggest.Evaluation {
		e := simulated.Train(q)
		e.Values[0] += 0.5 // at least 50 times the reference
		return e
	})
	best := math.Inf(1)
	for _, e := range h.Evaluations {
		best = math.Min(best, e.Values[0])
	}
	s := simulated.Ask(t, dpareto.New(dpareto.Options{}), p, h, suggest.Request{Count: 1, Number: 17})[0]
	if s.Designer != "dpareto" || s.Predictions[0].Median > best {
		t.Errorf("suggestion %+v, want one with an epsilon below %g", s, best)
	}
}

// Infeasible configurations are never suggested again, and their neighbourhood
// is avoided.
func TestDParetoLearnsInfeasible(t *testing.T) {
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "x", Kind: space.Double, Min: 0, Max: 1},
			{Name: "y", Kind: space.Double, Min: 0, Max: 1},
		}},
		Objectives: []suggest.Objective{
			{Name: "a", Goal: suggest.Minimize, Reference: 2},
			{Name: "b", Goal: suggest.Minimize, Reference: 2},
		},
	}
	d := dpareto.New(dpareto.Options{InitialPoints: 8, Candidates: 200, Restarts: 5})
	h := &suggest.History{}
	infeasible := 0
	for number := range int64(30) {
		q := simulated.Ask(t, d, p, h, suggest.Request{Count: 1, Seed: 2, Number: number})[0].Point
		if q[0] < 0.3 { // where objective a would be best
			h.Infeasible = append(h.Infeasible, q)
			if number >= 8 {
				infeasible++
			}
			continue
		}
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{
			Point: q, Values: []float64{q[0] + q[1], 1 + (1-q[0])*0.2 - q[1]}, StdErrors: []float64{0, 0},
		})
	}
	if infeasible > 8 {
		t.Errorf("%d of 22 suggestions are in the infeasible third", infeasible)
	}
}

// Three objectives of every goal and transform, over every kind of parameter:
// the hypervolume grows beyond random search's.
func TestDParetoThreeObjectives(t *testing.T) {
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "i", Kind: space.Integer, Min: 0, Max: 20},
			{Name: "x", Kind: space.Double, Min: 0.1, Max: 10, Scale: space.Log},
			{Name: "d", Kind: space.Discrete, Values: []float64{1, 2, 4, 8}, Scale: space.Log},
			{Name: "c", Kind: space.Categorical, Choices: []string{"a", "b", "c"}},
		}},
		Objectives: []suggest.Objective{
			{Name: "loss", Goal: suggest.Minimize, Reference: 3},
			{Name: "speed", Goal: suggest.Maximize, Transform: suggest.Log, Reference: 0.1},
			{Name: "accuracy", Goal: suggest.Maximize, Transform: suggest.Logit, Reference: 0.2},
		},
	}
	evaluate := func(q space.Point) suggest.Evaluation {
		u := q[0] / 20
		loss := (u-0.3)*(u-0.3)*4 + 0.3*q[3] + 0.2*math.Abs(math.Log(q[1]))
		speed := 10 / q[2] / (1 + q[1])
		accuracy := 0.9 - 0.4*u*u - 0.3/q[2] - 0.05*q[3]
		return suggest.Evaluation{Point: q, Values: []float64{loss, speed, accuracy}, StdErrors: []float64{0, 0, 0}}
	}
	hypervolume := func(h *suggest.History) float64 {
		var costs [][]float64
		for _, e := range h.Evaluations {
			costs = append(costs, []float64{e.Values[0], -e.Values[1], 1 - e.Values[2]})
		}
		return pareto.Hypervolume(costs, []float64{3, -0.1, 0.8})
	}
	random := hypervolume(simulated.Run(t, random.New(), p, 30, 1, evaluate))
	got := hypervolume(simulated.Run(t, dpareto.New(dpareto.Options{InitialPoints: 10, Candidates: 300, Restarts: 8}), p, 30, 1, evaluate))
	if !(got > 1.05*random) {
		t.Errorf("hypervolume %g, of random search %g", got, random)
	}
}

func TestNewDParetoPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic for a negative option")
		}
	}()
	dpareto.New(dpareto.Options{Restarts: -1})
}

// The point of it all: with 40 evaluations, the true hypervolume of DPareto is
// clearly above random search's on every seed.
func TestDParetoBeatsRandom(t *testing.T) {
	p := simulated.Training()
	hypervolume := func(h *suggest.History) float64 {
		var costs [][]float64
		for _, e := range h.Evaluations {
			costs = append(costs, []float64{e.Values[0], -e.Values[1]})
		}
		return pareto.Hypervolume(costs, []float64{10, 0})
	}
	for seed := range uint64(3) {
		random := hypervolume(simulated.Run(t, random.New(), p, 40, seed, simulated.Train))
		dpareto := hypervolume(simulated.Run(t, dpareto.New(dpareto.Options{InitialPoints: 10}), p, 40, seed, simulated.Train))
		t.Logf("seed %d: random %.4f, dpareto %.4f", seed, random, dpareto)
		if !(dpareto > random+0.1) {
			t.Errorf("seed %d: hypervolume %g, of random search %g", seed, dpareto, random)
		}
	}
}

// The model looks for allowed candidates where its first ones are not.
func TestDParetoUnderTightConstraint(t *testing.T) {
	p := &suggest.Problem{Space: simulated.TrainingSpace(), Objectives: simulated.TrainingObjectives(), Allowed: func(q space.Point) bool {
		return q[0]*q[1] >= 1000 && q[0]*q[1] <= 1010
	}}
	d := dpareto.New(dpareto.Options{InitialPoints: 6, Candidates: 100, Restarts: 4})
	h := simulated.Run(t, d, p, 12, 3, simulated.Train)
	for _, e := range h.Evaluations {
		if !p.Allowed(e.Point) {
			t.Errorf("%v is not allowed", e.Point)
		}
	}
}

// BenchmarkDPareto is the time of one suggestion, fits included, after n
// evaluations of five parameters and two objectives.
func BenchmarkDPareto(b *testing.B) {
	p := simulated.Training()
	for _, n := range []int{16, 64, 272} {
		h := &suggest.History{}
		for i := range n {
			q := p.Space.Sample(rand.New(rand.NewPCG(1, uint64(i))))
			h.Evaluations = append(h.Evaluations, simulated.Train(q))
		}
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			d := dpareto.New(dpareto.Options{})
			for i := int64(0); b.Loop(); i++ {
				require.NoError(b, require.ErrOf(d.Suggest(b.Context(), p, h, suggest.Request{Count: 1, Number: i})))
			}
		})
	}
}
