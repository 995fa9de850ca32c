package transcript_test

import (
	"fmt"

	"github.com/dpareto/dpareto/privacy/transcript"
)

// The accuracy on 10,000 test records, with a standard error of 0.7 %, says nearly as much
// as a 1-Gaussian-DP model itself in the worst case.
func ExampleEffectiveMu() {
	fmt.Printf("%.3f\n", transcript.EffectiveMu(1, 0.007, 10_000, 8))
	// Output:
	// 0.993
}

// Noise that is small against the interval of the numbers hides next to nothing.
func ExampleContraction() {
	fmt.Printf("%.3f %.3f\n", transcript.Contraction(1, 0.1), transcript.Contraction(1, 1))
	// Output:
	// 1.000 0.383
}
