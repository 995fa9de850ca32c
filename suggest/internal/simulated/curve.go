package simulated

import (
	"math"
	"math/rand/v2"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Curve is a trade-off in one parameter: epsilon = x, error falls with x.
func Curve() *suggest.Problem {
	return &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{{Name: "x", Kind: space.Double, Min: 0.05, Max: 5}}},
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 10, Known: func(q space.Point) float64 { return q[0] }},
			{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1},
		},
	}
}

// CurveValues are the exact objectives of [Curve].
func CurveValues(x float64) (epsilon, err float64) { return x, 0.1 + 0.4*math.Exp(-x) }

// NoisyCurve evaluates the curve n times, each the mean of runs with deviation sd.
func NoisyCurve(n, runs int, sd float64, seed uint64) *suggest.History {
	rng := rand.New(rand.NewPCG(seed, 1))
	h := &suggest.History{}
	for i := range n {
		q := space.Point{0.05 + 4.95*float64(i)/float64(n-1)}
		epsilon, err := CurveValues(q[0])
		se := sd / math.Sqrt(float64(runs))
		e := suggest.Evaluation{Point: q, Values: []float64{epsilon, err + se*rng.NormFloat64()}, Runs: runs}
		if runs > 1 {
			e.StdErrors = []float64{0, se}
		}
		h.Evaluations = append(h.Evaluations, e)
	}
	return h
}
