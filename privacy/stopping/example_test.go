package stopping_test

import (
	"fmt"
	"log"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/stopping"
)

// Ten candidates on average, each trained and scored with Gaussian DP of μ = 0.25.
func ExampleByMean() {
	dist, err := stopping.ByMean(1, 10)
	if err != nil {
		log.Fatal(err)
	}
	base := privacy.Gaussian{Sensitivity: 0.25, StandardDeviation: 1, Neighbours: privacy.ReplaceOne}
	g, err := privacy.Epsilon(privacy.RDP{}, dist.Mechanism(base, 1), 1, 1e-6)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(g)
	fmt.Printf("one of the best 5 %% with probability %.2f\n", dist.ContainsTop(0.05))
	// Output:
	// (2.27132, 1e-06)-DP, replace_one, 1 steps, rdp
	// one of the best 5 % with probability 0.34
}
