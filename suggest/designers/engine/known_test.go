package engine

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

func knownSpace() *space.Space {
	return &space.Space{Parameters: []space.Parameter{
		{Name: "a", Kind: space.Double, Min: 0.1, Max: 10, Scale: space.Log},
		{Name: "m", Kind: space.Integer, Min: 1, Max: 9},
		{Name: "idle", Kind: space.Double, Min: 0, Max: 1},
		{Name: "t", Kind: space.Integer, Min: 2, Max: 200, Scale: space.Log},
		{Name: "kind", Kind: space.Categorical, Choices: []string{"u", "v"}},
	}}
}

func knownObjective() *suggest.Objective {
	return &suggest.Objective{Name: "e", Goal: suggest.Minimize, Known: func(q space.Point) float64 {
		return (1 + q[4]) * math.Sqrt(q[1]*q[3]) / q[0]
	}}
}

func relaxedExample() (*relaxed, *space.Space) {
	s := knownSpace()
	probes := []space.Point{{1, 3, 0.5, 20, 0}, {5, 7, 0.1, 90, 1}}
	return relax(knownObjective(), s, probes), s
}

func TestRelaxedIsExactAtConfigurations(t *testing.T) {
	r, s := relaxedExample()
	if len(r.smooth) != 1 || len(r.stepped) != 2 {
		t.Fatalf("parameters that matter: %v and %v, want a, and m and t", r.smooth, r.stepped)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		q := s.Sample(rng)
		v := &evaluator{surface: &surface{layout: layout{problem: &suggest.Problem{Space: s}, checkpoint: -1}}}
		got, want := r.value(q, v.siteAt(q).unit, nil), r.objective.Known(q)
		if math.Abs(got-want) > 1e-9*want {
			t.Fatalf("at %v: %g, want %g", q, got, want)
		}
	}
}

func TestRelaxedIsContinuousAndDifferentiable(t *testing.T) {
	r, s := relaxedExample()
	rng := rand.New(rand.NewPCG(2, 1))
	for range 300 {
		q := s.Sample(rng)
		unit := make([]float64, 5)
		for j := range unit {
			unit[j] = 0.02 + 0.96*rng.Float64()
		}
		grad := make([]float64, 5)
		value := r.value(q, unit, grad)
		for j := range unit {
			const h = 1e-6
			old := unit[j]
			unit[j] = old + h
			up := r.value(q, unit, nil)
			unit[j] = old - h
			down := r.value(q, unit, nil)
			unit[j] = old
			slope := (up - down) / (2 * h)
			if math.Abs(up-down) > 1e-3*value {
				t.Fatalf("jump from %g to %g along parameter %d", down, up, j)
			}
			if math.Abs(slope-grad[j]) > 1e-3*(math.Abs(slope)+math.Abs(value)) && !nearKink(r, unit, j) {
				t.Errorf("d/d%d = %g, difference quotient %g", j, grad[j], slope)
			}
		}
	}
}

// nearKink reports whether a small step along parameter j may cross into another
// simplex: to other integers, or to another order of the fractions.
func nearKink(r *relaxed, unit []float64, j int) bool {
	var fractions []float64
	stepped := false
	for _, k := range r.stepped {
		p := &r.space.Parameters[k]
		low := p.At(unit[k])
		if p.Unit(low) > unit[k] {
			low--
		}
		f := (unit[k] - p.Unit(low)) / (p.Unit(low+1) - p.Unit(low))
		fractions = append(fractions, f)
		stepped = stepped || k == j
	}
	near := math.Abs(fractions[0]-fractions[1]) < 1e-3
	for _, f := range fractions {
		near = near || f < 1e-3 || f > 1-1e-3
	}
	return stepped && near
}
