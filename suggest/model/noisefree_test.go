package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/space"
)

// curve evaluates the trade-off of one parameter once at each of n values, with noise of standard
// deviation sd.
func curve(n int, sd float64, seed uint64) *suggest.History {
	rng := rand.New(rand.NewPCG(seed, 3))
	h := new(suggest.History)
	for i := range n {
		x := 0.05 + 4.95*float64(i)/float64(n-1)
		epsilon, err := simulated.CurveValues(x)
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: space.Point{x}, Values: []float64{epsilon, err + sd*rng.NormFloat64()}})
	}
	return h
}

// Values without noise are recognised, though their standard errors are unknown. Those with noise
// never are.
func TestNoiseFreeIsRecognised(t *testing.T) {
	p := simulated.Curve()
	for seed := range uint64(5) {
		for _, sd := range []float64{0, 0.01, 0.05} {
			for _, reading := range []bool{false, true} {
				m, err := Fit(t.Context(), p, curve(20, sd, seed), Options{Seed: seed, ForReading: reading})
				require.NoError(t, err)
				if known := m.KnownNoise(1); (known == 0) != (sd == 0) || known != 0 && !math.IsNaN(known) {
					t.Errorf("seed %d, reading %t, noise of standard deviation %g: known noise %g", seed, reading, sd, known)
				}
			}
		}
	}
}

// A repetition that differs is noise, also where the hyperparameters were learned before it.
func TestRepetitionContradicts(t *testing.T) {
	p, h := simulated.Curve(), curve(104, 0, 1)
	cache := new(Cache)
	fit := func() float64 {
		m, err := Fit(t.Context(), p, h, Options{Seed: 1, Cache: cache})
		require.NoError(t, err)
		return m.KnownNoise(1)
	}
	if known := fit(); known != 0 {
		t.Fatalf("known noise %g of exact values", known)
	}
	if at, _ := milestone(105); at == 105 {
		t.Fatal("hyperparameters are learned again after 105 runs")
	}
	again := h.Evaluations[10]
	again.Values = []float64{again.Values[0], again.Values[1] + 0.01}
	h.Evaluations = append(h.Evaluations, again)
	if known := fit(); !math.IsNaN(known) {
		t.Errorf("known noise %g after a repetition that differs", known)
	}
}

// Evidence by hand: 23 values have 253 pairs, and noise of the prior's mode makes ties of
// repetitions e^{5/2} times as frequent.
func TestRepetitions(t *testing.T) {
	build := func(n int, step func(int) float64, repeated ...float64) *observations {
		d := &observations{}
		for i := range n {
			d.add(i, []float64{float64(i)}, step(i), math.NaN(), 1, 0, 0)
		}
		for _, add := range repeated {
			d.add(3, []float64{3}, step(3)+add, math.NaN(), 1, 0, 0)
		}
		return d
	}
	smooth := func(i int) float64 { return math.Sqrt(float64(i)) }
	for name, tc := range map[string]struct {
		d        *observations
		evidence float64
		differ   bool
	}{
		"none":    {build(23, smooth), 0, false},
		"one":     {build(23, smooth, 0), -math.Log(math.Exp(2.5) / 254), false},
		"two":     {build(23, smooth, 0, 0), -2 * math.Log(math.Exp(2.5)/254), false},
		"few":     {build(4, smooth, 0), 0, false},
		"another": {build(23, smooth, 0, 1e-3), 0, true},
		// Values of two digits: 11 of 0 and 12 of 1, which are 55 + 66 ties.
		"rounded": {build(23, func(i int) float64 { return float64(i % 2) }, 0, 0, 0), 0, false},
		// Groups of two: 11 ties.
		"coarse": {build(23, func(i int) float64 { return float64(i / 2) }, 0), -math.Log(12 * math.Exp(2.5) / 254), false},
	} {
		evidence, differ := tc.d.repetitions()
		if !scalar.EqualWithinAbs(evidence, tc.evidence, 1e-12) || differ != tc.differ {
			t.Errorf("%s: evidence %g, differ %t; want %g, %t", name, evidence, differ, tc.evidence, tc.differ)
		}
	}
}
