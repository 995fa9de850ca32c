package sample

import (
	"math/bits"
	"math/rand/v2"

	"github.com/dpareto/dpareto/suggest/space"
)

// skip is the distance in the sequence between the points that one trial tries in turn: a
// prime near 2^32 divided by the golden ratio, so that its multiples are spread evenly in
// every base.
const skip = 2654435761

// QuasiRandom returns the points for trial number of a study, one per call.
func QuasiRandom(s *space.Space, seed uint64, number int64) func() space.Point {
	sequence := NewHalton(len(s.Parameters), Mix(seed))
	u := make([]float64, len(s.Parameters))
	n := uint64(number)
	return func() space.Point {
		sequence.At(u, n)
		n += skip
		return s.Quantile(u)
	}
}

// Halton is a nested-scrambled Halton sequence.
type Halton struct {
	bases []uint64
	key   uint64
}

// NewHalton returns the sequence of the given dimension whose scrambling is
// determined by key.
func NewHalton(dim int, key uint64) Halton {
	return Halton{bases: primes(dim), key: key}
}

// At writes the n-th point, in the open unit cube, to u.
func (h Halton) At(u []float64, n uint64) {
	for j, b := range h.bases {
		u[j] = scrambledInverse(n, b, Mix(h.key^Mix(uint64(j))))
	}
}

// scrambledInverse returns the radical inverse of n in base b, in (0, 1), with
// every digit permuted by a random permutation that depends on the digits
// before it. Digits, also beyond n's own, are produced until 2^32 numbers are
// distinct; a uniform number stands for the rest.
func scrambledInverse(n, b, key uint64) float64 {
	const resolution = 1 << 32
	numerator, denominator := 0.0, 1.0
	prefix := key
	var pcg rand.PCG
	for denominator < resolution {
		digit := n % b
		n /= b
		pcg.Seed(prefix, key)
		numerator = numerator*float64(b) + float64(permuted(digit, b, &pcg))
		denominator *= float64(b)
		prefix = Mix(prefix ^ Mix(digit))
	}
	return (numerator + (float64(prefix>>12)+0.5)/(1<<52)) / denominator
}

// permuted returns the image of digit under the permutation of {0..b-1} that
// source draws.
func permuted(digit, b uint64, source *rand.PCG) uint64 {
	// Fisher-Yates from the top, following one element: position i receives
	// the element at a uniform position j <= i.
	at := digit
	for i := b - 1; i > 0; i-- {
		j := remainder(source.Uint64(), i+1)
		switch at {
		case i:
			at = j
		case j:
			at = i
		}
		if at == i {
			break // positions above i - 1 are settled
		}
	}
	return at
}

// reciprocals holds floor(2^64/m) for the small m that divisors mostly are.
var reciprocals = func() (table [64]uint64) {
	for m := uint64(2); m < uint64(len(table)); m++ {
		table[m], _ = bits.Div64(1, 0, m)
	}
	return table
}()

// remainder returns x mod m, m > 1: by a product, since divisions take several times as
// long. The quotient by the rounded reciprocal is at most 1 too small.
func remainder(x, m uint64) uint64 {
	if m >= uint64(len(reciprocals)) {
		return x % m
	}
	quotient, _ := bits.Mul64(x, reciprocals[m])
	r := x - quotient*m
	if r >= m {
		r -= m
	}
	return r
}

// primes returns the first n primes.
func primes(n int) []uint64 {
	list := make([]uint64, 0, n)
	for c := uint64(2); len(list) < n; c++ {
		isPrime := true
		for _, q := range list {
			if q*q > c {
				break
			}
			if c%q == 0 {
				isPrime = false
				break
			}
		}
		if isPrime {
			list = append(list, c)
		}
	}
	return list
}
