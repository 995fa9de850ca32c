package selection_test

import (
	"fmt"
	"log"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/selection"
)

// Accuracies of five candidates on 1000 validation records, of which one may be replaced.
func ExamplePermuteAndFlip() {
	accuracies := []float64{0.85, 0.849, 0.84, 0.80, 0.5}
	const sensitivity, epsilon = 1.0 / 1000, 1.0
	src := noise.Seeded(1) // noise.System() for a release
	chosen, err := selection.PermuteAndFlip(src, accuracies, sensitivity, epsilon)
	if err != nil {
		log.Fatal(err)
	}
	g, err := privacy.Epsilon(privacy.Pure{}, privacy.Selection{
		Method: privacy.PermuteAndFlip, Epsilon: epsilon, Neighbours: privacy.ReplaceOne,
	}, 1, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("candidate %d, %v\n", chosen, g)
	fmt.Printf("expected loss at most %.4f\n", selection.ExpectedLossBound(len(accuracies), sensitivity, epsilon))
	// Output:
	// candidate 0, (1, 0)-DP, replace_one, 1 steps, pure
	// expected loss at most 0.0032
}
