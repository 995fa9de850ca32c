package bayesopt_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/privacy/bayesopt"
	"github.com/dpareto/dpareto/privacy/noise"
)

// Algorithm 1 over five candidates: the search, and the release of what it found. At this ε
// the release hardly prefers the best one.
func ExampleNoisy_Search() {
	const candidates, evaluations, sigma = 5, 8, 0.1
	kernel := mat.NewSymDense(candidates, nil)
	for i := range candidates {
		for j := range candidates {
			kernel.SetSym(i, j, math.Exp(-0.5*float64((i-j)*(i-j))))
		}
	}
	gain, err := bayesopt.BoundInformationGain(context.Background(), kernel, sigma, evaluations, 0.01)
	if err != nil {
		log.Fatal(err)
	}
	a := bayesopt.Noisy{
		Candidates: candidates, Evaluations: evaluations, Epsilon: 1, Delta: 1e-5,
		Noise: sigma, Correlation: 1, Difference: 1e-5, InformationGain: gain.Upper,
	}
	utility := []float64{-1, 0, 1.5, 0.5, -0.5}
	posterior, best, err := a.Search(context.Background(), kernel, func(_ context.Context, candidate int) (float64, error) {
		return utility[candidate], nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// A real release takes its noise from noise.System().
	chosen, statement, err := a.ReleaseCandidate(noise.Seeded(1), posterior.Mean())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("largest utility %g\n", best)
	fmt.Printf("released candidate %d, (%g, %g)-DP if its assumptions hold\n", chosen, statement.Epsilon, statement.Delta)
	// Output:
	// largest utility 1.5
	// released candidate 0, (1, 1e-05)-DP if its assumptions hold
}

// Algorithm 3 releases the best score of a ridge regression.
func ExampleRidge_Release() {
	a := bayesopt.Ridge{Records: 1000, Epsilon: 1, Range: 1, Lipschitz: 1, Least: 0.1, Most: 1}
	_, g, err := a.Release(noise.Seeded(1), 0.8)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(g.Epsilon, g.Delta, g.Adjacency)
	// Output:
	// 1 0 replace_one
}
