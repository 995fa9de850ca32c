package problems_test

import (
	"fmt"

	"github.com/dpareto/dpareto/suggest/problems"
	"github.com/dpareto/dpareto/suggest/space"
)

// A benchmark with a constraint, at a point that meets it and one that does not.
func ExampleC2DTLZ2() {
	p := problems.C2DTLZ2(2, 2)
	for _, q := range []space.Point{{0, 0.5}, {0.5, 0.5}, {0.25, 0.5}} {
		values := p.Evaluate(q)
		fmt.Printf("%.2f %t\n", values, p.Acceptable(values))
	}
	// Output:
	// [1.00 0.00 0.00] true
	// [0.71 0.71 0.00] true
	// [0.92 0.38 0.15] false
}
