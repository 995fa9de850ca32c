package engine_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/engine"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/space"
)

// earlierStudy has n random evaluations of the trade-off with a cost of error that is
// changed by f on the logit scale.
func earlierStudy(p *suggest.Problem, n int, seed uint64, f func(space.Point, float64) float64) []suggest.Evaluation {
	h := simulated.TradeOffHistory(p, n, seed+100, 0.1)
	for i := range h.Evaluations {
		e := &h.Evaluations[i]
		z := f(e.Point, simulated.Logit(e.Values[1]))
		e.Values[1] = 1 / (1 + math.Exp(-z))
	}
	return h.Evaluations
}

// warmHypervolume is the true hypervolume after n runs given an earlier study.
func warmHypervolume(t *testing.T, prior []suggest.Evaluation, n int, seed uint64) float64 {
	t.Helper()
	p := simulated.TradeOff()
	h := &suggest.History{Prior: prior}
	d := engine.New(engine.Options{})
	rng := rand.New(rand.NewPCG(seed, 77))
	for i := range n {
		s, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: seed, Number: int64(i + 1)})
		require.NoError(t, err)
		if s[0].FallbackReason != "" {
			t.Errorf("suggestion %d: %s", i+1, s[0].FallbackReason)
		}
		simulated.ObserveTradeOff(h, p, s[0].Point, rng, 0.1)
	}
	return simulated.TradeOffHypervolume(h)
}

// An earlier study whose error was another, but best in the same places, saves the
// runs in which a study finds its way.
func TestPriorHelps(t *testing.T) {
	for seed := range uint64(4) {
		p := simulated.TradeOff()
		prior := earlierStudy(p, 50, seed, func(_ space.Point, z float64) float64 { return 0.5 + 0.8*z })
		with, without := warmHypervolume(t, prior, 10, seed), warmHypervolume(t, nil, 10, seed)
		t.Logf("seed %d: %.4f with the earlier simulated.Run, %.4f without", seed, with, without)
		if with <= without {
			t.Errorf("seed %d: hypervolume %g with the earlier simulated.Run, %g without", seed, with, without)
		}
	}
}

// An earlier study of something else is overruled.
func TestMisleadingPriorIsOverruled(t *testing.T) {
	sum := 0.0
	for seed := range uint64(2) {
		p := simulated.TradeOff()
		prior := earlierStudy(p, 50, seed, func(q space.Point, _ float64) float64 {
			return 3*math.Cos(9*q[0]) - 0.4*math.Log(q[1]) + q[3]
		})
		with, without := warmHypervolume(t, prior, 30, seed), warmHypervolume(t, nil, 30, seed)
		t.Logf("seed %d: %.4f with the misleading simulated.Run, %.4f without", seed, with, without)
		sum += with / without / 2
	}
	if sum < 0.98 {
		t.Errorf("the hypervolume after a misleading study is %g of that without", sum)
	}
}

// A study with checkpoints learns from one: its first run is where the earlier one was
// best.
func TestPriorWithCheckpoints(t *testing.T) {
	p := simulated.RateTraining()
	p.Space.Parameters = append(p.Space.Parameters, space.Parameter{Name: "w", Kind: space.Double, Max: 1})
	h := &suggest.History{}
	for i := range 24 {
		x, w := 0.05+0.9*float64(i%5)/4, float64(i%7)/6
		for _, step := range []float64{1, 4, 16, 64} {
			q := space.Point{x, step, w}
			h.Prior = append(h.Prior, suggest.Evaluation{Point: q, Values: []float64{x * step, 0.9 - 0.1*math.Log(1+x*step) + 0.5*(w-0.3)*(w-0.3)}, Run: int64(i + 1)})
		}
	}
	s, err := engine.New(engine.Options{}).Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: 1, Number: 1})
	if err != nil || s[0].FallbackReason != "" {
		t.Fatalf("%v, %v", s, err)
	}
	if w := s[0].Point[2]; math.Abs(w-0.3) > 0.1 {
		t.Errorf("%v suggested, want w near 0.3", s[0].Point)
	}
}
