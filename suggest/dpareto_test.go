package suggest_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

func ask(t *testing.T, d suggest.Designer, p *suggest.Problem, h *suggest.History, r suggest.Request) []suggest.Suggestion {
	t.Helper()
	s, err := d.Suggest(t.Context(), p, h, r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// randomHistory holds n random configurations, evaluated by f.
func randomHistory(s *space.Space, n int, f func(space.Point) suggest.Evaluation) *suggest.History {
	rng := rand.New(rand.NewPCG(11, 12))
	h := &suggest.History{}
	for range n {
		h.Evaluations = append(h.Evaluations, f(s.Sample(rng)))
	}
	return h
}

// The initial points are those of random search, and every configuration that
// was tried in whatever state counts as one.
func TestDParetoInitialPoints(t *testing.T) {
	p := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives()}
	h := randomHistory(p.Space, 3, train)
	rng := rand.New(rand.NewPCG(1, 1))
	h.Pending = []space.Point{p.Space.Sample(rng)}
	h.Infeasible = []space.Point{p.Space.Sample(rng)}
	r := suggest.Request{Count: 4, Seed: 8, Number: 6}
	got := ask(t, suggest.NewDPareto(suggest.DParetoOptions{InitialPoints: 7, Candidates: 50}), p, h, r)
	random := ask(t, suggest.NewRandom(), p, h, r)
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
	p := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives()}
	h := study(t, suggest.NewDPareto(suggest.DParetoOptions{InitialPoints: 10}), p, 30, 4, train)
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
	p := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives()}
	h := randomHistory(p.Space, 20, train)
	batch := ask(t, suggest.NewDPareto(suggest.DParetoOptions{}), p, h, suggest.Request{Count: 6, Number: 21})
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
	p := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives()}
	h := randomHistory(p.Space, 16, func(q space.Point) suggest.Evaluation {
		return suggest.Evaluation{Point: q, Values: []float64{1, math.NaN()}}
	})
	r := suggest.Request{Count: 2, Seed: 1, Number: 17}
	got := ask(t, suggest.NewDPareto(suggest.DParetoOptions{}), p, h, r)
	want := ask(t, suggest.NewQuasiRandom(), p, h, r)
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
	p := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives()}
	p.Objectives[0].Reference = 1e-2
	h := randomHistory(p.Space, 16, func(q space.Point) suggest.Evaluation {
		e := train(q)
		e.Values[0] += 0.5 // at least 50 times the reference
		return e
	})
	best := math.Inf(1)
	for _, e := range h.Evaluations {
		best = math.Min(best, e.Values[0])
	}
	s := ask(t, suggest.NewDPareto(suggest.DParetoOptions{}), p, h, suggest.Request{Count: 1, Number: 17})[0]
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
	d := suggest.NewDPareto(suggest.DParetoOptions{InitialPoints: 8, Candidates: 200, Restarts: 5})
	h := &suggest.History{}
	infeasible := 0
	for number := range int64(30) {
		q := ask(t, d, p, h, suggest.Request{Count: 1, Seed: 2, Number: number})[0].Point
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

// The exact function takes the place of a surrogate where that is asked for.
func TestDParetoExactKnown(t *testing.T) {
	p := curveProblem()
	h := noisyCurve(6, 20, 0.02, 5)
	for _, exact := range []bool{false, true} {
		s := ask(t, suggest.NewDPareto(suggest.DParetoOptions{InitialPoints: 5, ExactKnown: exact}), p, h, suggest.Request{Count: 1, Number: 7})[0]
		v := s.Predictions[0]
		if got := v.Lower == v.Upper && v.Median == s.Point[0]; got != exact {
			t.Errorf("exact = %t: epsilon of %v predicted as %+v", exact, s.Point, v)
		}
	}
}

// Three objectives of every goal and transform, over every kind of parameter:
// the hypervolume grows beyond that of random search.
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
	random := hypervolume(study(t, suggest.NewRandom(), p, 30, 1, evaluate))
	got := hypervolume(study(t, suggest.NewDPareto(suggest.DParetoOptions{InitialPoints: 10, Candidates: 300, Restarts: 8}), p, 30, 1, evaluate))
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
	suggest.NewDPareto(suggest.DParetoOptions{Restarts: -1})
}
