package query_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"math/rand/v2"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/query"
	"github.com/dpareto/dpareto/suggest/space"
)

// Which configuration has the least error with a privacy loss of at most 2?
func ExampleQuery_Search() {
	problem := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "noise", Kind: space.Double, Min: 0.5, Max: 8, Scale: space.Log},
			{Name: "rate", Kind: space.Double, Min: 0, Max: 1},
		}},
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 8, Known: func(q space.Point) float64 { return 4 / q[0] }},
			{Name: "error", Goal: suggest.Minimize, Reference: 1},
		},
	}
	history := &suggest.History{}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		q := problem.Space.Sample(rng)
		history.Evaluations = append(history.Evaluations, suggest.Evaluation{
			Point:     q,
			Values:    []float64{4 / q[0], 0.1 + 0.05*q[0] + (q[1]-0.3)*(q[1]-0.3)},
			StdErrors: []float64{0, 0},
		})
	}
	m, err := model.Fit(context.Background(), problem, history, model.Options{ForReading: true})
	if err != nil {
		log.Fatal(err)
	}
	q := query.Query{Optimize: 1, Bounds: []float64{2, math.NaN()}, Confidence: 0.5}
	answer, ok, err := q.Search(context.Background(), m)
	if err != nil || !ok {
		log.Fatal(ok, err)
	}
	fmt.Printf("noise %.1f, rate %.1f, epsilon %.1f, error %.1f\n", answer.Point[0], answer.Point[1], answer.Reached[0], answer.Reached[1])
	// Output:
	// noise 2.0, rate 0.3, epsilon 2.0, error 0.2
}
