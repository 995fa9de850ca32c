package show

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// A printed bound is never below the bound, and within a unit of its fourth digit.
func TestNumberUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		x := math.Exp(60*rng.Float64() - 30)
		printed, err := strconv.ParseFloat(NumberUp(x), 64)
		if err != nil || printed < x || printed > x*(1+1.01e-3) {
			t.Fatalf("NumberUp(%v) = %s", x, NumberUp(x))
		}
	}
	for x, want := range map[float64]string{0: "0", 1: "1.000", 0.05847322: "0.05848", 1.0001: "1.001", 31.082481: "31.09"} {
		if got := NumberUp(x); got != want {
			t.Errorf("NumberUp(%v) = %s, want %s", x, got, want)
		}
	}
	if got := NumberUp(math.Inf(1)); got != Number(math.Inf(1)) {
		t.Errorf("infinite: %s", got)
	}
}

// A printed lower bound is never above the bound, and within a unit of its fourth digit.
func TestNumberDown(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		x := math.Exp(60*rng.Float64() - 30)
		printed, err := strconv.ParseFloat(NumberDown(x), 64)
		if err != nil || printed > x || printed < x*(1-1.01e-3) {
			t.Fatalf("NumberDown(%v) = %s", x, NumberDown(x))
		}
	}
	for x, want := range map[float64]string{0: "0", 1: "1.000", 0.05847392: "0.05847", 1.9999: "1.999"} {
		if got := NumberDown(x); got != want {
			t.Errorf("NumberDown(%v) = %s, want %s", x, got, want)
		}
	}
}

// A δ is printed with at most three digits, never below it; what rounding adds to a sum is not shown.
func TestShort(t *testing.T) {
	for x, want := range map[float64]string{0.35529999999999995: "0.3553", 10: "10", 1: "1", 8.36512: "8.365", 0: "0", 1e-5: "1e-5"} {
		if got := Short(x); got != want {
			t.Errorf("Short(%v) = %s, want %s", x, got, want)
		}
	}
}

func TestDelta(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		x := math.Exp(-40 * rng.Float64())
		printed, err := strconv.ParseFloat(Delta(x), 64)
		if err != nil || printed < x*(1-1e-12) || printed > x*(1+1.01e-2) {
			t.Fatalf("%v is printed as %s", x, Delta(x))
		}
	}
	for x, want := range map[float64]string{0: "0", 1e-5: "1e-5", 1.0000000000000002e-6: "1e-6", 9.991e-6: "1e-5", 3.0711587e-5: "3.08e-5"} {
		if got := Delta(x); got != want {
			t.Errorf("%v is printed as %s, want %s", x, got, want)
		}
	}
}
