package suggest_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/engine"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// Ask for a configuration, evaluate it, tell the result. The privacy loss is known before
// a configuration is tried, the error after.
func Example() {
	loss := func(q space.Point) float64 { return 4 / q[0] }
	train := func(q space.Point) float64 { // the error falls with less noise, and is least at rate 0.1
		return 0.1 + 0.05*q[0] + 0.1*math.Pow(math.Log10(q[1])+1, 2)
	}
	problem := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "noise", Kind: space.Double, Min: 0.5, Max: 8, Scale: space.Log},
			{Name: "rate", Kind: space.Double, Min: 0.001, Max: 1, Scale: space.Log},
		}},
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 8, Known: loss},
			{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 0.6},
		},
	}

	ctx := context.Background()
	designer := engine.New(engine.Options{})
	history := &suggest.History{}
	for number := int64(1); number <= 16; number++ {
		asked, err := designer.Suggest(ctx, problem, history, suggest.Request{Count: 1, Seed: 1, Number: number})
		if err != nil {
			log.Fatal(err)
		}
		q := asked[0].Point
		history.Evaluations = append(history.Evaluations, suggest.Evaluation{
			Point:     q,
			Values:    []float64{loss(q), train(q)},
			StdErrors: []float64{0, 0}, // without noise
		})
	}

	fitted, err := model.Fit(ctx, problem, history, model.Options{ForReading: true})
	if err != nil {
		log.Fatal(err)
	}
	var front [][]float64
	for _, e := range fitted.Estimates() {
		if e.OnFront {
			front = append(front, e.Values)
		}
	}
	fmt.Println("more than 8 of 16 on the front:", len(front) > 8)
	fmt.Printf("hypervolume %.1f of 3.2\n", pareto.Hypervolume(front, []float64{8, 0.6}))
	// Output:
	// more than 8 of 16 on the front: true
	// hypervolume 3.1 of 3.2
}
