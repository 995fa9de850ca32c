package suggest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// trainingProblem is a study of training runs of up to 64 epochs: the loss of privacy
// grows with the rate and the epochs, the error falls with both and is least for w = 0.3.
func trainingProblem() *Problem {
	return &Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "rate", Kind: space.Double, Min: 0.01, Max: 1, Scale: space.Log},
			{Name: "epochs", Kind: space.Integer, Min: 1, Max: 64, Scale: space.Log},
			{Name: "w", Kind: space.Double, Max: 1},
		}},
		Objectives: []Objective{
			{Name: "loss", Goal: Minimize, Transform: Log, Reference: 4, Known: func(q space.Point) float64 { return q[0] * math.Sqrt(q[1]) }},
			{Name: "error", Goal: Minimize, Transform: Logit, Reference: 1},
		},
		Checkpoint: "epochs",
	}
}

// trainingError is the expected error of a state: what a run learns per epoch saturates,
// so that much privacy is best spent at a high rate in few epochs.
func trainingError(q space.Point) float64 {
	z := -0.5*math.Log(q[0]*math.Sqrt(q[1])/0.3) - 0.1*math.Log(q[1]) + 6*(q[2]-0.3)*(q[2]-0.3)
	return 0.05 + 0.9/(1+math.Exp(-z))
}

// train adds the checkpoints of a run, up to its length, to a history.
func train(h *History, q space.Point, run int64, rng *rand.Rand) {
	shared := 0.05 * rng.NormFloat64()
	for _, step := range checkpoints(&space.Parameter{Min: 1}, q[1], 8) {
		at := q.Clone()
		at[1] = step
		z := logit(trainingError(at)) + shared + 0.02*rng.NormFloat64()
		h.Evaluations = append(h.Evaluations, Evaluation{
			Point: at, Values: []float64{at[0] * math.Sqrt(at[1]), 1 / (1 + math.Exp(-z))}, Run: run, Cost: q[1],
		})
	}
}

// trainingHypervolume is that of the true values of all states.
func trainingHypervolume(h *History) float64 {
	var costs [][]float64
	for _, e := range h.Evaluations {
		costs = append(costs, []float64{e.Values[0], trainingError(e.Point)})
	}
	return pareto.Hypervolume(costs, []float64{4, 1})
}

// spend runs the default until a hypervolume is reached and returns the epochs and
// runs that it took.
func spend(t *testing.T, cost Cost, target float64, seed uint64) (epochs float64, count int) {
	t.Helper()
	p := trainingProblem()
	p.Cost = cost
	h := &History{}
	rng := rand.New(rand.NewPCG(seed, 31))
	for trainingHypervolume(h) < target {
		if count++; count > 120 {
			t.Fatalf("cost of %s, seed %d: hypervolume %g after 120 runs", cost, seed, trainingHypervolume(h))
		}
		s, err := NewDefault(EngineOptions{}).Suggest(t.Context(), p, h, Request{Count: 1, Seed: seed, Number: int64(count)})
		if err != nil || s[0].FallbackReason != "" {
			t.Fatalf("%v, %v", s, err)
		}
		train(h, s[0].Point, int64(count), rng)
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
		for _, cost := range []Cost{CostRuns, CostCheckpoint, CostMeasured} {
			n, count := spend(t, cost, target, seed)
			t.Logf("seed %d: %g epochs in %d runs with a cost of %s", seed, n, count, cost)
			epochs[cost] += n
		}
	}
	for _, cost := range []Cost{CostCheckpoint, CostMeasured} {
		if epochs[cost] > 0.8*epochs[CostRuns] {
			t.Errorf("%g epochs with a cost of %s, %g of runs", epochs[cost], cost, epochs[CostRuns])
		}
	}
}

// Without checkpoints too, what is as good and cheaper is preferred.
func TestMeasuredCosts(t *testing.T) {
	var spent [3]float64
	for _, cost := range []Cost{CostRuns, CostMeasured} {
		p := tradeOff()
		p.Cost = cost
		h := noisyHistory(p, 14, 3, 0.1)
		price := func(q space.Point) float64 { return math.Exp(4 * q[0]) } // the error's optimum is at 0.3
		for i := range h.Evaluations {
			h.Evaluations[i].Cost = price(h.Evaluations[i].Point)
		}
		rng := rand.New(rand.NewPCG(5, 5))
		for i := range 10 {
			s, err := NewDefault(EngineOptions{}).Suggest(t.Context(), p, h, Request{Count: 1, Seed: 1, Number: int64(15 + i)})
			if err != nil {
				t.Fatal(err)
			}
			observeTradeOff(h, p, s[0].Point, rng, 0.1)
			h.Evaluations[len(h.Evaluations)-1].Cost = price(s[0].Point)
			spent[cost] += price(s[0].Point)
		}
	}
	if spent[CostMeasured] >= spent[CostRuns] {
		t.Errorf("%g spent where costs count, %g where not", spent[CostMeasured], spent[CostRuns])
	}
}
