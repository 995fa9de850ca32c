package pareto_test

import (
	"fmt"

	"github.com/dpareto/dpareto/suggest/pareto"
)

// Of five trials with a privacy loss and an error, both minimised, two are dominated.
func ExampleNonDominated() {
	trials := [][]float64{{1, 0.4}, {2, 0.3}, {3, 0.35}, {4, 0.1}, {4, 0.2}}
	fmt.Println(pareto.NonDominated(trials))
	// Output:
	// [0 1 3]
}

// The hypervolume is the area between the front and the reference.
func ExampleHypervolume() {
	trials := [][]float64{{1, 0.4}, {2, 0.3}, {4, 0.1}}
	fmt.Printf("%.2f\n", pareto.Hypervolume(trials, []float64{5, 0.5}))
	// Output:
	// 0.90
}

// A front is built once and asked often.
func ExampleNewFront() {
	front := pareto.NewFront([][]float64{{1, 0.4}, {3, 0.35}, {2, 0.3}, {4, 0.1}}, []float64{5, 0.5})
	fmt.Println(front.Points())
	fmt.Printf("%.2f\n", front.Improvement([]float64{3, 0.2}))
	fmt.Println(front.Improves([]float64{3, 0.3}))
	// Output:
	// [[1 0.4] [2 0.3] [4 0.1]]
	// 0.10
	// false
}
