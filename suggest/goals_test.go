package suggest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/suggest/space"
)

// Whoever changes a suggested point changes nothing that the history holds.
func TestSuggestedPointsAreCopies(t *testing.T) {
	p := tradeOff()
	h := noisyHistory(p, 20, 3, 1)
	s := newTestSurface(t, p, h, EngineOptions{})
	e := &explorer{surface: s, options: EngineOptions{}, tried: h.tried()}
	list, _ := e.replicable(nil)
	if len(list) == 0 {
		t.Fatal("nothing to replicate")
	}
	before := h.tried()
	for _, q := range list {
		for j := range q {
			q[j] = -1
		}
	}
	for i := range h.Evaluations {
		if !before.contains(h.Evaluations[i].Point) {
			t.Errorf("evaluation %d moved to %v", i, h.Evaluations[i].Point)
		}
	}
}

// A configuration that is being tried is not tried again at the same time.
func TestPendingIsNotRepeated(t *testing.T) {
	p := tradeOff()
	h := noisyHistory(p, 20, 3, 1)
	e := &explorer{surface: newTestSurface(t, p, h, EngineOptions{}), tried: h.tried()}
	all, _ := e.replicable(nil)
	if len(all) < 2 {
		t.Fatal("too few to replicate")
	}
	left, trials := e.replicable(all[:1])
	if !slices.EqualFunc(left, all[1:], slices.Equal[space.Point]) || len(trials) != len(left) {
		t.Errorf("%v to replicate of %v, of which the first is pending", left, all)
	}
}

// A constraint on a known metric holds for every suggestion of every designer.
func TestKnownConstraintsAreAlwaysMet(t *testing.T) {
	for _, name := range DesignerNames() {
		d, _ := DesignerByName(name, 4)
		p := tradeOff()
		p.Constraints = []Constraint{{
			Name: "work", Lower: 0, Upper: 40,
			Known: func(q space.Point) float64 { return q[2] * q[0] },
		}}
		rng := rand.New(rand.NewPCG(1, 1))
		h := &History{}
		for i := range 12 {
			got, err := d.Suggest(t.Context(), p, h, Request{Count: 1, Seed: 3, Number: int64(i + 1)})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			q := got[0].Point
			if work := q[2] * q[0]; work > 40 {
				t.Errorf("%s: suggestion %d has work %g", name, i+1, work)
			}
			observeTradeOff(h, p, q, rng, 0.1)
			e := &h.Evaluations[len(h.Evaluations)-1]
			e.Values = append(e.Values, q[2]*q[0])
		}
	}
}

// A run is worth at least its best single checkpoint, whether the known objective
// grows or falls along it.
func TestTrajectoriesAreWorthTheirBestCheckpoint(t *testing.T) {
	for name, known := range map[string]func(space.Point) float64{
		"growing": func(q space.Point) float64 { return q[0] * q[1] },
		"falling": func(q space.Point) float64 { return 9 / q[0] / 100 / q[1] },
	} {
		p := epochProblem(32)
		p.Objectives[0].Known = known
		h := &History{}
		rng := rand.New(rand.NewPCG(4, 1))
		for run := range 6 {
			noise := math.Exp(-4.5 * rng.Float64())
			for epoch := range 10 {
				q := space.Point{noise, float64(epoch + 1)}
				h.Evaluations = append(h.Evaluations, Evaluation{
					Point: q, Values: []float64{known(q), 0.2 + 0.3*noise/q[1] + 0.01*rng.Float64()}, Run: int64(run + 1),
				})
			}
		}
		s := newTestSurface(t, p, h, EngineOptions{})
		v := s.visitor()
		checked := 0
		for range 30 {
			at := s.siteAt(p.Space.Sample(rng))
			steps := s.steps(at.point, looks)
			if len(steps) < 2 {
				continue
			}
			whole := v.value(at, steps, 1, nil)
			for _, step := range steps {
				if single := v.value(at, []float64{step}, 1, nil); single > whole+1e-9 {
					t.Errorf("%s: the checkpoint %g of %v is worth %g, the run %g", name, step, at.point, single, whole)
				} else if !math.IsInf(single, -1) {
					checked++
				}
			}
		}
		if checked < 30 {
			t.Errorf("%s: only %d checkpoints counted", name, checked)
		}
	}
}

// Whether a run is given up does not depend on the direction in which an objective is
// written down.
func TestHopelessHasNoPreferredDirection(t *testing.T) {
	hopeless, hopeful := 0, 0
	for seed := range uint64(8) {
		var verdicts [2]bool
		for g, goal := range []Goal{Minimize, Maximize} {
			p := epochProblem(32)
			p.Objectives[1] = Objective{Name: "risk", Goal: goal, Transform: Log, Reference: 1, Floor: 1e-9}
			value := func(risk float64) float64 {
				if goal == Maximize {
					return 1 / risk
				}
				return risk
			}
			rng := rand.New(rand.NewPCG(seed, 2))
			h := &History{}
			add := func(h *History, run int64, noise, quality float64, epochs int) {
				for epoch := range epochs {
					q := space.Point{noise, float64(epoch + 1)}
					risk := quality * (0.2 + 0.5/q[1]) * math.Exp(0.01*rng.NormFloat64())
					h.Evaluations = append(h.Evaluations, Evaluation{Point: q, Values: []float64{q[0] * q[1], value(risk)}, Run: run})
				}
			}
			for run := range 8 {
				add(h, int64(run+1), math.Exp(-4.5*rng.Float64()), 1, 32)
			}
			m, err := FitModel(t.Context(), p, h, ModelOptions{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			partial := &History{}
			add(partial, 99, 0.1+0.8*rng.Float64(), 0.7+0.8*float64(seed%2), 4)
			q := partial.Evaluations[0].Point.Clone()
			q[1] = 32
			if verdicts[g], err = m.Hopeless(partial.Evaluations, q, 4, LastUseful(p, q)); err != nil {
				t.Fatal(err)
			}
		}
		if verdicts[0] != verdicts[1] {
			t.Errorf("seed %d: hopeless is %v minimised and %v maximised", seed, verdicts[0], verdicts[1])
		}
		if verdicts[0] {
			hopeless++
		} else {
			hopeful++
		}
	}
	if hopeless == 0 || hopeful == 0 {
		t.Errorf("%d hopeless runs and %d others: the test tells nothing", hopeless, hopeful)
	}
}
