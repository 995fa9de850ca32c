package restrict_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/restrict"
	"github.com/dpareto/dpareto/suggest/space"
)

// Random configurations with Adam and a privacy loss of at most 1.
func ExampleWithin() {
	loss := func(q space.Point) float64 { return 4 / q[0] }
	problem := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "noise", Kind: space.Double, Min: 0.5, Max: 8, Scale: space.Log},
			{Name: "optimizer", Kind: space.Categorical, Choices: []string{"sgd", "adam"}},
		}},
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 8, Known: loss},
			{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 0.5},
		},
	}
	designer := restrict.Within(random.New(), restrict.Condition{
		Fixed:  map[int]float64{1: 1},
		AtMost: []restrict.Limit{{Objective: 0, Known: loss, Upper: 1}},
	})
	list, err := designer.Suggest(context.Background(), problem, &suggest.History{}, suggest.Request{Count: 3, Seed: 1, Number: 1})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range list {
		fmt.Println(loss(s.Point) <= 1, problem.Space.Parameters[1].Choices[int(s.Point[1])])
	}
	// Output:
	// true adam
	// true adam
	// true adam
}
