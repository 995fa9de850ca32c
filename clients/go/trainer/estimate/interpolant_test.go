package estimate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Cubics are reproduced, whatever the nodes and their order.
func TestInterpolantReproducesCubics(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		a, b, c, d := rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()
		value := func(x float64) float64 { return a + x*(b+x*(c+x*d)) }
		slope := func(x float64) float64 { return b + x*(2*c+x*3*d) }
		nodes := make([]Node, 2+rng.IntN(4))
		for i := range nodes {
			x := float64(i) + 0.5*rng.Float64()
			nodes[i] = Node{x, value(x), slope(x), slope(x)}
		}
		lower, upper := nodes[0].X, nodes[len(nodes)-1].X
		rng.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		f := NewInterpolant(nodes)
		for range 20 {
			x := lower + rng.Float64()*(upper-lower)
			if got, want := f.At(x), value(x); math.Abs(got-want) > 1e-12*(math.Abs(a)+100) {
				t.Errorf("f(%v) = %v, want %v", x, got, want)
			}
		}
		for _, n := range nodes {
			if f.At(n.X) != n.Y {
				t.Errorf("f(%v) = %v at a node, want %v", n.X, f.At(n.X), n.Y)
			}
		}
		if !math.IsNaN(f.At(lower-1e-9)) || !math.IsNaN(f.At(upper+1e-9)) {
			t.Error("a value outside of the nodes")
		}
	}
}

// The error is h⁴/384 of the fourth derivative at most, and comes close to it.
func TestInterpolantError(t *testing.T) {
	for _, h := range []float64{0.5, 0.1} {
		f := NewInterpolant([]Node{{0, 1, 1, 1}, {h, math.Exp(h), math.Exp(h), math.Exp(h)}})
		bound := math.Pow(h, 4) / 384
		if e := math.Abs(f.At(h/2) - math.Exp(h/2)); e > bound*math.Exp(h) || e < 0.9*bound {
			t.Errorf("h = %v: error %v, bound %v", h, e, bound)
		}
	}
}

// Where the branches of a calibration meet, the function has a kink.
func TestInterpolantKink(t *testing.T) {
	f := NewInterpolant([]Node{{-1, 1, -1, -1}, {0, 0, -1, 2}, {1, 2, 2, 2}})
	for x := -1.0; x <= 1; x += 0.125 {
		if want := max(-x, 2*x); math.Abs(f.At(x)-want) > 1e-15 {
			t.Errorf("f(%v) = %v, want %v", x, f.At(x), want)
		}
	}
}

// Slopes are lowered where a piece would not be monotone, and nowhere else.
func TestMonotone(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	changed := 0
	for range 300 {
		nodes := make([]Node, 4)
		y := 0.0
		for i := range nodes {
			s := 4 * rng.ExpFloat64()
			nodes[i] = Node{float64(i), y, s, s}
			y += rng.Float64()
		}
		f := NewInterpolant(nodes)
		g := f.Monotone()
		for i := range 3 {
			rising := true
			same := true
			for k := range 100 {
				x := float64(i) + float64(k)/100
				rising = rising && g.At(x+0.01) >= g.At(x)-1e-12
				same = same && f.At(x) == g.At(x)
			}
			if !rising {
				t.Errorf("%v: piece %d falls", g.nodes, i)
			}
			if steep := math.Hypot(nodes[i].Right, nodes[i+1].Left) > 3*(nodes[i+1].Y-nodes[i].Y); steep == same {
				t.Errorf("%v: piece %d is changed: %v", nodes, i, !same)
			}
			if !same {
				changed++
			}
		}
	}
	if changed < 100 {
		t.Errorf("%d pieces were changed", changed)
	}
	// Where the function turns, and where it is constant, it stays.
	for _, nodes := range [][]Node{{{0, 0, 5, 5}, {1, 1, -1, -1}}, {{0, 1, 3, 3}, {1, 1, -3, -3}}} {
		f := NewInterpolant(nodes)
		if got, want := f.Monotone().At(0.3), f.At(0.3); got != want {
			t.Errorf("%v: %v, want %v", nodes, got, want)
		}
	}
}

func TestInterpolantPanics(t *testing.T) {
	for _, nodes := range [][]Node{nil, {{1, 0, 0, 0}, {1, 1, 0, 0}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v does not panic", nodes)
				}
			}()
			NewInterpolant(nodes)
		}()
	}
}
