package designers_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers"
	"github.com/dpareto/dpareto/suggest/problems"
)

// A designer by its name. The same request always has the same answer.
func ExampleByName() {
	problem := problems.ZDT1(2)
	designer, ok := designers.ByName("quasi_random", designers.Options{})
	if !ok {
		log.Fatal("no such designer")
	}
	list, err := designer.Suggest(context.Background(), &problem.Problem, &suggest.History{}, suggest.Request{Count: 3, Seed: 1, Number: 1})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range list {
		fmt.Printf("%.2f\n", s.Point)
	}
	// Output:
	// [0.12 0.37]
	// [0.86 0.32]
	// [0.38 0.79]
}

func ExampleNames() {
	fmt.Println(designers.Names())
	// Output:
	// [default dpareto ehvi ehvi_exact grid nsga2 quasi_random random]
}
