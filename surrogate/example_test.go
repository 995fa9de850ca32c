package surrogate_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/dpareto/dpareto/surrogate"
)

// Kernels by smoothness: the more of it, the surer the posterior between observations.
func ExampleNew() {
	obs := surrogate.Observations{X: [][]float64{{0}, {1}}, Y: []float64{0, 1}}
	h := surrogate.Hyperparameters{SignalVariance: 1, LengthScales: []float64{0.5}, NoiseVariance: 1e-4}
	for _, kernel := range []surrogate.Kernel{surrogate.Matern52{}, surrogate.SquaredExponential{}} {
		g, err := surrogate.New(kernel, h, obs)
		if err != nil {
			log.Fatal(err)
		}
		mean, variance := g.Predict([]float64{0.75})
		fmt.Printf("%s: mean %.3f, variance %.3f\n", kernel.Name(), mean, variance)
	}
	// Output:
	// matern52: mean 0.805, variance 0.285
	// squared-exponential: mean 0.854, variance 0.178
}

// The flat prior makes Fit a fit by maximum likelihood.
func ExampleLogNormalPrior() {
	var obs surrogate.Observations
	for i := range 8 {
		x := float64(i) / 7
		obs.X, obs.Y = append(obs.X, []float64{x}), append(obs.Y, x*x)
	}
	g, err := surrogate.Fit(context.Background(), obs, surrogate.Options{Prior: &surrogate.LogNormalPrior{}})
	if err != nil {
		log.Fatal(err)
	}
	mean, _ := g.Predict([]float64{0.5})
	fmt.Printf("%.2f\n", mean)
	// Output:
	// 0.25
}

// Learn the hyperparameters from observations and predict between them.
func ExampleFit() {
	var obs surrogate.Observations
	for i := range 9 {
		x := float64(i) / 8
		obs.X, obs.Y = append(obs.X, []float64{x}), append(obs.Y, math.Sin(6*x))
	}
	g, err := surrogate.Fit(context.Background(), obs, surrogate.Options{})
	if err != nil {
		log.Fatal(err)
	}
	x := 0.4
	mean, variance := g.Predict([]float64{x})
	fmt.Printf("f(%.1f) = %.1f, predicted %.1f\n", x, math.Sin(6*x), mean)
	fmt.Println("to a tenth:", math.Sqrt(variance) < 0.1)
	// Output:
	// f(0.4) = 0.7, predicted 0.7
	// to a tenth: true
}

// One more observation takes O(n²) and keeps the hyperparameters.
func ExampleGP_Append() {
	obs := surrogate.Observations{X: [][]float64{{0}, {1}}, Y: []float64{0, 1}}
	h := surrogate.Hyperparameters{SignalVariance: 1, LengthScales: []float64{0.5}, NoiseVariance: 1e-4}
	g, err := surrogate.New(nil, h, obs)
	if err != nil {
		log.Fatal(err)
	}
	more, err := g.Append([]float64{0.5}, 0.2, 0)
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range []*surrogate.GP{g, more} {
		mean, variance := g.Predict([]float64{0.5})
		fmt.Printf("mean %.2f, variance %.2f\n", mean, variance)
	}
	// Output:
	// mean 0.46, variance 0.52
	// mean 0.20, variance 0.00
}
