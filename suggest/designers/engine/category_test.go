package engine_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/engine"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// choices is a study over the model and the optimiser, each with hyperparameters of its
// own. The best is a perceptron of width 64 with momentum and a rate of 0.03, which is
// not the best optimiser at rates drawn at random.
func choices() *suggest.Problem {
	when := func(parent int, value float64) *space.Condition {
		return &space.Condition{Parent: parent, Values: []float64{value}}
	}
	return &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "model", Kind: space.Categorical, Choices: []string{"logistic", "svm", "perceptron"}},
			{Name: "optimizer", Kind: space.Categorical, Choices: []string{"sgd", "adam", "momentum"}},
			{Name: "noise", Kind: space.Double, Min: 0.1, Max: 10, Scale: space.Log},
			{Name: "rate_sgd", Kind: space.Double, Min: 1e-3, Max: 10, Scale: space.Log, Condition: when(1, 0)},
			{Name: "rate_adam", Kind: space.Double, Min: 1e-5, Max: 0.1, Scale: space.Log, Condition: when(1, 1)},
			{Name: "rate_momentum", Kind: space.Double, Min: 1e-3, Max: 10, Scale: space.Log, Condition: when(1, 2)},
			{Name: "width", Kind: space.Discrete, Values: []float64{8, 16, 32, 64, 128, 256}, Scale: space.Log, Condition: when(0, 2)},
		}},
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 10, Known: func(q space.Point) float64 { return 1 / q[2] }},
			{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 0.5},
		},
	}
}

func choicesError(q space.Point) float64 {
	z := -0.2 + 0.3*math.Log(q[2])
	square := func(x float64) float64 { return x * x }
	switch q[1] {
	case 0:
		z += 0.1 * square(math.Log(q[3]/0.5))
	case 1:
		z += -0.1 + 0.1*square(math.Log(q[4]/1e-3))
	default:
		z += -0.5 + 0.35*square(math.Log(q[5]/0.03))
	}
	switch q[0] {
	case 1:
		z -= 0.1
	case 2:
		z += -0.6 + 0.25*square(math.Log(q[6]/64))
	}
	return 1 / (1 + math.Exp(-z))
}

func choicesHypervolume(t *testing.T, d suggest.Designer, n int, seed uint64) float64 {
	t.Helper()
	p := choices()
	rng := rand.New(rand.NewPCG(seed, 3))
	var costs [][]float64
	simulated.Run(t, d, p, n, seed, func(q space.Point) suggest.Evaluation {
		e := choicesError(q)
		costs = append(costs, []float64{p.Objectives[0].Known(q), e})
		noisy := 1 / (1 + math.Exp(-math.Log(e/(1-e))-0.03*rng.NormFloat64()))
		return suggest.Evaluation{Point: q, Values: []float64{p.Objectives[0].Known(q), noisy}}
	})
	return pareto.Hypervolume(costs, []float64{10, 0.5})
}

// Over model, optimiser and their own hyperparameters the default reaches with a few
// runs what random search does not with many.
func TestDefaultOverChoices(t *testing.T) {
	for seed := range uint64(3) {
		ours := choicesHypervolume(t, engine.New(engine.Options{}), 40, seed)
		random := choicesHypervolume(t, random.New(), 400, seed)
		t.Logf("seed %d: %.3f after 40 runs, %.3f after 400 random ones", seed, ours, random)
		if ours <= random {
			t.Errorf("seed %d: hypervolume %g after 40 runs, %g after 400 random ones", seed, ours, random)
		}
	}
}
