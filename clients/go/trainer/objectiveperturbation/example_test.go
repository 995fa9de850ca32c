package objectiveperturbation_test

import (
	"context"
	"fmt"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/privacy"
)

// The training loss as a function of ε for one unit noise, each minimiser starting
// from the one before it.
func ExampleObjective() {
	examples, err := linear.NewExamples(dataset.Generated(10000, 1), 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	risk := linear.Risk{Examples: examples, Loss: linear.Logistic{}}
	u := make([]float64, examples.Dim())
	objectiveperturbation.UnitNoise(u, random.New(1, 0, 0, 0))

	var theta []float64
	for _, epsilon := range []float64{4, 2, 1, 0.5} {
		objective := objectiveperturbation.Objective(risk, privacy.ObjectivePerturbation{
			DatasetSize:    int64(examples.Rows()),
			Regularization: 1e-6,
			Curvature:      risk.Loss.Curvature(),
			Epsilon:        epsilon,
		}, u)
		minimum, err := objective.Minimize(context.Background(), theta, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		theta = minimum.Theta
		fmt.Printf("ε = %.1f: loss %.3f\n", epsilon, risk.Value(theta))
	}
	// Output:
	// ε = 4.0: loss 0.360
	// ε = 2.0: loss 0.400
	// ε = 1.0: loss 0.478
	// ε = 0.5: loss 0.621
}
