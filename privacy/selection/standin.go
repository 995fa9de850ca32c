// Package selection chooses candidates privately.
package selection

import (
	"math"
	"math/big"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
)

// Select chooses by permute-and-flip.
func Select(s *noise.Source, _ privacy.SelectionMethod, utilities []float64, sensitivity, epsilon float64) (int, error) {
	best := math.Inf(-1)
	order := make([]int, len(utilities))
	for i, u := range utilities {
		best = math.Max(best, u)
		order[i] = i
	}
	for n := len(order); ; n-- {
		k := int(s.Uint64N(uint64(n)))
		i := order[k]
		order[k] = order[n-1]
		if s.BernoulliExp(new(big.Rat).SetFloat64(epsilon * (best - utilities[i]) / (2 * sensitivity))) {
			return i, nil
		}
	}
}
