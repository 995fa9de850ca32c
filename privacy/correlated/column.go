package correlated

import (
	"math"
	"slices"

	"github.com/dpareto/dpareto/privacy"
)

// Matrix is the lower triangular matrix C with which a run correlates its noise: a [Column], a [BLT] or a [Tree].
type Matrix interface {
	// Validate reports fields of the matrix by their names.
	Validate() error
	// Sensitivity returns an upper bound of the norm of C·G for rows of norm at most 1 of a single record, which takes
	// part in at most participations >= 1 of steps >= 1 steps, with at least separation from one to the next, from 1 to
	// steps.
	Sensitivity(steps, separation, participations int) float64
}

// Column is the first column c₀, c₁, … of a lower triangular Toeplitz matrix C; entries beyond its end are 0. c₀ is
// positive.
type Column []float64

// Validate reports the field "column".
func (c Column) Validate() error {
	if len(c) == 0 || !(c[0] > 0) {
		return privacy.FieldErrorf("column", "must begin with a positive entry")
	}
	for i, x := range c {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return privacy.FieldErrorf("column", "must be finite, is %g at %d", x, i)
		}
	}
	return nil
}

// SquareRoot returns the first bands >= 1 coefficients of (1 − x)^(−1/2), scaled to norm 1. The matrix of all
// coefficients is the square root of the matrix of prefix sums (Fichtenberger, Henzinger and Upadhyay, "Constant
// matters", 2023; Kalinin and Lampert, "Banded square root matrix factorization for differentially private model
// training", 2024).
func SquareRoot(bands int) Column {
	c := make(Column, bands)
	c[0] = 1
	for i := 1; i < bands; i++ {
		c[i] = c[i-1] * float64(2*i-1) / float64(2*i)
	}
	return c.normalised()
}

// normalised scales c to norm 1, up to rounding, in place.
func (c Column) normalised() Column {
	norm := 0.0
	for _, x := range c {
		norm = math.Hypot(norm, x)
	}
	for i := range c {
		c[i] /= norm
	}
	return c
}

// Sensitivity returns an upper bound of the norm of C·G for rows of norm at most 1 of a single record, which takes
// part in at most participations of steps >= 1 steps, with at least separation >= 1 steps from one to the next. The
// bound is attained, up to rounding, if the entries are not negative and do not increase, or if there are at most
// separation entries.
//
// Columns s < t of C have the product p(s, t) = Σ_{u < steps−t} c_{u+t−s}·c_u. If c >= 0 does not increase, p falls in t
// for equal t − s, and in t − s for equal t. So among all patterns the columns 0, b, 2b, … have the largest product in
// every pair, and rows of equal direction attain ‖Σ_i C_{ib}‖ (Kalinin and Lampert, 2024, Theorem 2). Other c are
// bounded by c_j ← max_{l >= j} |c_l|, with products no smaller than the absolute ones of c. With at most separation
// entries all these columns are orthogonal, so that the norms of single columns suffice; they fall in t.
func (c Column) Sensitivity(steps, separation, participations int) float64 {
	c = c[:min(len(c), steps)]
	bound := make([]float64, len(c))
	for i := len(c) - 1; i >= 0; i-- {
		bound[i] = math.Abs(c[i])
		if len(c) > separation && i+1 < len(c) {
			bound[i] = math.Max(bound[i], bound[i+1])
		}
	}
	participations = min(participations, (steps-1)/separation+1)
	largest := slices.Max(bound) // so that no square leaves the range of doubles
	squares := 0.0
	for row := range steps {
		sum := 0.0
		for i := range min(participations, row/separation+1) {
			if lag := row - i*separation; lag < len(bound) {
				sum += bound[lag] / largest
			}
		}
		squares += sum * sum
	}
	// All terms are positive: a sum of n has a relative error below (n−1)·2⁻⁵³/(1−n·2⁻⁵³), a square doubles it. Quotients
	// that underflow lack less than 2⁻¹⁰⁰⁰ beside the 1 of the largest entry.
	terms := float64(steps + 2*participations + 16)
	return largest * math.Sqrt(squares) * (1 + terms*0x1p-52)
}

// Inverse returns the first n >= 0 entries of the first column of C⁻¹.
func (c Column) Inverse(n int) []float64 {
	d := make([]float64, n)
	for i := range d {
		sum := 0.0
		if i == 0 {
			sum = 1
		}
		for j := max(0, i-len(c)+1); j < i; j++ {
			sum -= c[i-j] * d[j]
		}
		d[i] = sum / c[0]
	}
	return d
}

// Errors returns the variance of the noise in the sum of the first i gradients, where Z has variance 1: its mean over
// i = 1, …, steps, and its value at i = steps, the largest. The noise of a run has σ²·L²·sens(C)² times that.
//
// The sum of the first i rows of C⁻¹ is (b_{i−1}, …, b_0) for the prefix sums b of the column of C⁻¹.
func (c Column) Errors(steps int) (mean, last float64) {
	b := 0.0
	for i, d := range c.Inverse(steps) {
		b += d
		last += b * b
		mean += b * b * float64(steps-i) / float64(steps)
	}
	return mean, last
}
