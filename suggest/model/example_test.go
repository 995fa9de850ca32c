package model_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
)

// The front of a model consists of what is good by all measurements together: the run at
// 0.5 was lucky.
func ExampleFit() {
	problem := &suggest.Problem{
		Space:      &space.Space{Parameters: []space.Parameter{{Name: "x", Kind: space.Double, Min: 0, Max: 1}}},
		Objectives: []suggest.Objective{{Name: "error", Goal: suggest.Minimize, Reference: 1}},
	}
	history := &suggest.History{}
	for i, y := range []float64{0.90, 0.72, 0.55, 0.45, 0.40, 0.28, 0.38, 0.36, 0.34, 0.37, 0.35} {
		history.Evaluations = append(history.Evaluations, suggest.Evaluation{
			Point: space.Point{float64(i) / 10}, Values: []float64{y}, StdErrors: []float64{0.05},
		})
	}
	m, err := model.Fit(context.Background(), problem, history, model.Options{ForReading: true})
	if err != nil {
		log.Fatal(err)
	}
	lucky := m.Estimates()[5]
	fmt.Printf("measured %.2f, expected above 0.3: %t\n", lucky.Values[0], lucky.Predictions[0].Median > 0.3)
	fmt.Println("on the front:", lucky.OnFront)
	// Output:
	// measured 0.28, expected above 0.3: true
	// on the front: false
}
