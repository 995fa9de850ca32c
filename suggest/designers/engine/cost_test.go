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

// spend runs the default until a hypervolume is reached and returns the epochs and
// runs that it took.
func spend(t *testing.T, cost suggest.Cost, target float64, seed uint64) (epochs float64, count int) {
	t.Helper()
	p := simulated.EpochTraining()
	p.Cost = cost
	h := &suggest.History{}
	d := engine.New(engine.Options{})
	rng := rand.New(rand.NewPCG(seed, 31))
	for simulated.EpochTrainingHypervolume(h) < target {
		if count++; count > 120 {
			t.Fatalf("cost of %s, seed %d: hypervolume %g after 120 runs", cost, seed, simulated.EpochTrainingHypervolume(h))
		}
		s, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: seed, Number: int64(count)})
		if err != nil || s[0].FallbackReason != "" {
			t.Fatalf("%v, %v", s, err)
		}
		simulated.TrainEpochs(h, s[0].Point, int64(count), rng)
		epochs += s[0].Point[1]
	}
	return epochs, count
}

// Where epochs are paid for, by their number or as measured, a hypervolume is reached
// with fewer of them, in more runs.
func TestCostsOfEpochs(t *testing.T) {
	const target = 2.8
	var epochs [3]float64
	for seed := range uint64(2) {
		for _, cost := range []suggest.Cost{suggest.CostRuns, suggest.CostCheckpoint, suggest.CostMeasured} {
			n, count := spend(t, cost, target, seed)
			t.Logf("seed %d: %g epochs in %d runs with a cost of %s", seed, n, count, cost)
			epochs[cost] += n
		}
	}
	for _, cost := range []suggest.Cost{suggest.CostCheckpoint, suggest.CostMeasured} {
		if epochs[cost] > 0.8*epochs[suggest.CostRuns] {
			t.Errorf("%g epochs with a cost of %s, %g of runs", epochs[cost], cost, epochs[suggest.CostRuns])
		}
	}
}

// Without checkpoints too, what is as good and cheaper is preferred.
func TestMeasuredCosts(t *testing.T) {
	var spent [3]float64
	for _, cost := range []suggest.Cost{suggest.CostRuns, suggest.CostMeasured} {
		d := engine.New(engine.Options{})
		p := simulated.TradeOff()
		p.Cost = cost
		h := simulated.TradeOffHistory(p, 14, 3, 0.1)
		price := func(q space.Point) float64 { return math.Exp(4 * q[0]) } // the error's optimum is at 0.3
		for i := range h.Evaluations {
			h.Evaluations[i].Cost = price(h.Evaluations[i].Point)
		}
		rng := rand.New(rand.NewPCG(5, 5))
		for i := range 10 {
			s, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: 1, Number: int64(15 + i)})
			require.NoError(t, err)
			simulated.ObserveTradeOff(h, p, s[0].Point, rng, 0.1)
			h.Evaluations[len(h.Evaluations)-1].Cost = price(s[0].Point)
			spent[cost] += price(s[0].Point)
		}
	}
	if spent[suggest.CostMeasured] >= spent[suggest.CostRuns] {
		t.Errorf("%g spent where costs count, %g where not", spent[suggest.CostMeasured], spent[suggest.CostRuns])
	}
}
