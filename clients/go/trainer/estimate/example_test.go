package estimate_test

import (
	"context"
	"fmt"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/estimate"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
)

// The mean loss as a function of ε, from four trainings for each of ten draws of the
// noise, and the ε that a loss takes. Neither is differentially private.
func Example() {
	examples, err := linear.NewExamples(dataset.Generated(5000, 1), 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	estimator, err := estimate.New(ctx, estimate.Problem{
		Risk:           linear.Risk{Examples: examples, Loss: linear.Logistic{}},
		Regularization: 1e-6,
	}, estimate.Options{Lower: 0.1, Upper: 4, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	curve, err := estimator.Curve(ctx, []float64{0.5, 1, 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range curve {
		fmt.Printf("ε = %.1f: loss %.3f ± %.3f\n", e.Epsilon, e.Train.Loss.Value, e.Train.Loss.StandardError)
	}
	answer, err := estimator.EpsilonFor(ctx, estimate.TrainLoss, 0.5)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("loss 0.5: ε = %.2f on average, %.2f to %.2f for single models\n", answer.Epsilon, answer.Lower, answer.Upper)
	// Output:
	// ε = 0.5: loss 0.762 ± 0.004
	// ε = 1.0: loss 0.588 ± 0.002
	// ε = 2.0: loss 0.467 ± 0.001
	// loss 0.5: ε = 1.59 on average, 0.91 to 2.26 for single models
}
