package privacy

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestFormatUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 20000 {
		x := math.Exp(rng.Float64()*100 - 50)
		printed, err := strconv.ParseFloat(formatUp(x), 64)
		if err != nil || printed < x || printed > x*(1+2e-5) {
			t.Fatalf("%.17g is printed as %s", x, formatUp(x))
		}
	}
	for _, tc := range []struct {
		x    float64
		want string
	}{{0, "0"}, {1, "1"}, {1.00000049, "1.00001"}, {0.9999999, "1"}, {math.Inf(1), "+Inf"}} {
		if got := formatUp(tc.x); got != tc.want {
			t.Errorf("%v is printed as %s, want %s", tc.x, got, tc.want)
		}
	}
}

func TestStrings(t *testing.T) {
	g := Guarantee{Epsilon: 1.5, Delta: 1e-5, Adjacency: ReplaceOne, Accountant: "rdp", Steps: 7}
	if got, want := g.String(), "(1.5, 1e-05)-DP, replace_one, 7 steps, rdp"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Adjacency(0).String() + AddRemove.String(); got != "Adjacency(0)add_remove" {
		t.Errorf("%q", got)
	}
}

// TestLowerBoundAboveEpsilon: a lower bound above ε is not cut to it but warned of.
func TestLowerBoundAboveEpsilon(t *testing.T) {
	g := Guarantee{Epsilon: 2}
	for lower, want := range map[float64]float64{0: 0, 1.5: 1.5, 2: 2, 2 * (1 + 1e-15): 2, 2 * (1 + 1e-9): 0, math.Inf(1): 0, math.NaN(): 0} {
		got := g.WithLower(lower)
		if warned := len(got.Warnings) == 1 && got.Warnings[0].Code == WarnContradiction; got.EpsilonLower != want || warned == (lower <= 2*(1+1e-15)) {
			t.Errorf("%g: lower bound %g, warnings %v", lower, got.EpsilonLower, got.Warnings)
		}
	}
}
