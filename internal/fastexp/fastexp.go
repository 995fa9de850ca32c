// Package fastexp is the exponential function for inner loops. It is inlined and free of
// branches, so that, unlike calls of [math.Exp], the evaluations of a loop overlap: on amd64
// they take a third of the time.
package fastexp

import "math"

// Bounds of the arguments of [Split].
const (
	Least   = -708 // the smallest argument
	Largest = 709  // the largest argument
)

const (
	steps = 256 // of the table, to a factor of 2

	// A number of magnitude below 2^51 that is added to shift is rounded to an integer,
	// which the low bits of the sum then hold.
	shift = 0x1.8p52

	// ln 2/steps in two parts. The first has 32 bits, so that its multiples are exact.
	stepHigh = 0x1.62e42feep-9
	stepLow  = 0x1.a39ef35793c76p-41
)

// powers holds 2^(k/steps).
var powers = func() (table [steps]float64) {
	for k := range table {
		table[k] = math.Exp2(float64(k) / steps)
	}
	return table
}()

// Split returns exp(x), for x from [Least] to [Largest], in two parts: their sum has an
// error of less than 1.5 units in the last place, or 2 next to Least, where the rest has
// fewer digits, and power - 1 + rest is exp(x) - 1 without cancellation, to a relative
// 1e-13. Beyond these bounds the parts are meaningless, but for NaN, which is the rest of
// NaN.
//
// The power is 2^(k/256) for the nearest integer k, and the rest follows from it by
// the Taylor series of degree 4 of what is left.
func Split(x float64) (power, rest float64) {
	shifted := x*(steps/math.Ln2) + shift
	bits, k := math.Float64bits(shifted), shifted-shift
	r := x - k*stepHigh - k*stepLow
	power = math.Float64frombits(math.Float64bits(powers[bits%steps]) + bits/steps<<52)
	return power, power * r * (1 + r*(1.0/2+r*(1.0/6+r*(1.0/24))))
}
