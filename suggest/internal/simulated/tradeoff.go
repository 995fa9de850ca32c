package simulated

import (
	"math"
	"math/rand/v2"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// TradeOff is a noisy study with a known objective: error falls with the budget,
// has its optimum at rate 0.3, and needs kind "b".
func TradeOff() *suggest.Problem {
	return &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "rate", Kind: space.Double, Min: 0, Max: 1},
			{Name: "noise", Kind: space.Double, Min: 0.1, Max: 10, Scale: space.Log},
			{Name: "lot", Kind: space.Integer, Min: 1, Max: 256, Scale: space.Log},
			{Name: "kind", Kind: space.Categorical, Choices: []string{"a", "b"}},
		}},
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 10, Known: func(q space.Point) float64 {
				return math.Sqrt(q[2]) / q[1] / 4
			}},
			{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1},
		},
	}
}

// TradeOffError is the expected error.
func TradeOffError(q space.Point) float64 {
	return Expit(-1 + 4*(q[0]-0.3)*(q[0]-0.3) + 0.3*math.Log(q[1]/math.Sqrt(q[2])) + 0.5*(1-q[3]))
}

// ObserveTradeOff adds a run of q to h, with noise of standard deviation sd on the logit
// scale.
func ObserveTradeOff(h *suggest.History, p *suggest.Problem, q space.Point, rng *rand.Rand, sd float64) {
	v := Logit(TradeOffError(q)) + sd*rng.NormFloat64()
	h.Evaluations = append(h.Evaluations, suggest.Evaluation{
		Point: q, Values: []float64{p.Objectives[0].Known(q), Expit(v)},
	})
}

// TradeOffHistory has n random runs.
func TradeOffHistory(p *suggest.Problem, n int, seed uint64, sd float64) *suggest.History {
	rng := rand.New(rand.NewPCG(seed, 1))
	h := &suggest.History{}
	for range n {
		ObserveTradeOff(h, p, p.Space.Sample(rng), rng, sd)
	}
	return h
}

// TradeOffHypervolume returns the hypervolume of the exact values of all configurations.
func TradeOffHypervolume(h *suggest.History) float64 {
	return exactHypervolume(h, TradeOffError, []float64{10, 1})
}

// exactHypervolume returns the hypervolume of the known objective and the expected error.
func exactHypervolume(h *suggest.History, expected func(space.Point) float64, reference []float64) float64 {
	var costs [][]float64
	for _, e := range h.Evaluations {
		costs = append(costs, []float64{e.Values[0], expected(e.Point)})
	}
	return pareto.Hypervolume(costs, reference)
}

// Logit is ln (p / (1 − p)).
func Logit(p float64) float64 { return math.Log(p) - math.Log1p(-p) }

// Expit is the inverse of [Logit].
func Expit(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
