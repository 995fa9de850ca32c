package surrogate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dpareto/dpareto/surrogate"
)

// Kernels by smoothness: the more of it, the surer the posterior between observations.
func ExampleNew() {
	obs := surrogate.Observations{X: [][]float64{{0}, {1}}, Y: []float64{0, 1}}
	h := surrogate.Hyperparameters{SignalVariance: 1, LengthScales: []float64{0.5}, NoiseVariance: 1e-4}
	for _, kernel := range []surrogate.Kernel{surrogate.Matern32{}, surrogate.Matern52{}, surrogate.SquaredExponential{}} {
		g, err := surrogate.New(kernel, h, obs)
		if err != nil {
			log.Fatal(err)
		}
		mean, variance := g.Predict([]float64{0.75})
		fmt.Printf("%s: mean %.3f, variance %.3f\n", kernel.Name(), mean, variance)
	}
	// Output:
	// matern32: mean 0.762, variance 0.359
	// matern52: mean 0.805, variance 0.285
	// squared-exponential: mean 0.854, variance 0.178
}

// The flat prior makes Fit a fit by maximum likelihood.
func ExampleNoPrior() {
	var obs surrogate.Observations
	for i := range 8 {
		x := float64(i) / 7
		obs.X, obs.Y = append(obs.X, []float64{x}), append(obs.Y, x*x)
	}
	g, err := surrogate.Fit(context.Background(), obs, surrogate.Options{Prior: surrogate.NoPrior{}})
	if err != nil {
		log.Fatal(err)
	}
	mean, _ := g.Predict([]float64{0.5})
	fmt.Printf("%.2f\n", mean)
	// Output:
	// 0.25
}
