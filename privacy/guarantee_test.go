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
