package proposetest_test

import (
	"fmt"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/proposetest"
)

// A search whose cap an ε of 1 pays for. This example draws noise from a seed; a release draws
// it from noise.System.
func Example() {
	tuning, err := proposetest.Tuning{
		Parts: 1000, Epsilon: 0.1, Delta: 1e-6, Lower: 0.5, Granularity: 0.05, Neighbours: privacy.ReplaceOne,
	}.Plan(1)
	if err != nil {
		panic(err)
	}
	result, err := tuning.Run(noise.Seeded(1), []float64{0.62, 0.55, 0.91, 0.74})
	if err != nil {
		panic(err)
	}
	fmt.Println("cap", tuning.Cap, "guarantee", result.Guarantee)
	fmt.Println("selected", result.Selected, "after", len(result.Rounds), "rounds")
	// Output:
	// cap 10 guarantee (0.999371, 1e-06)-DP, replace_one, 10 steps, optimal_composition
	// selected 2 after 10 rounds
}
