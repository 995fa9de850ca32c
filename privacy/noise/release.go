package noise

import "math"

const (
	gridBits     = 40      // a grid is at most 2^−gridBits of the scale
	maxMagnitude = 0x1p400 // of values and scales, so that no quotient overflows
)

// Grid returns the grid g that [Source.Laplace] and [Source.Gaussian] release
// multiples of: the largest power of two that is at most 2⁻⁴⁰·scale. It panics
// unless 2⁻⁴⁰⁰ <= scale <= 2⁴⁰⁰.
func Grid(scale float64) float64 {
	exponent, _ := grid(scale)
	return math.Ldexp(1, exponent)
}

// grid returns log2 of the grid, and the scale in its units, 2⁴⁰ to 2⁴¹, rounded up:
// noise is never less than was asked for, and more by 2⁻⁴⁰ of it at most.
func grid(scale float64) (exponent int, units uint64) {
	if !(scale >= 1/maxMagnitude && scale <= maxMagnitude) {
		panic("noise: scale outside [2^-400, 2^400]")
	}
	_, exponent = math.Frexp(scale) // 2^(exponent−1) <= scale
	exponent -= 1 + gridBits
	return exponent, uint64(math.Ceil(math.Ldexp(scale, -exponent)))
}

// Sensitivity returns the sensitivity with which to account a release of [Source.Laplace] or
// [Source.Gaussian], rounded up: the sensitivity of the value, >= 0, plus the grid, since
// rounding to the grid can move two values apart by that much. It moves d coordinates apart by
// up to d·Grid in the ℓ1 norm and √d·Grid in the ℓ2 norm. The argument is the sensitivity of
// the floats passed in, including the rounding errors of the caller.
func Sensitivity(sensitivity, scale float64) float64 {
	sum := sensitivity + Grid(scale)
	return math.Nextafter(sum, math.Inf(1))
}

// Laplace returns value, rounded to a multiple of Grid(scale), plus discrete Laplace
// noise on that grid, of which neighbouring integers differ in probability by the
// factor e^{g/scale}: the release is pure ε-DP with
//
//	ε = Sensitivity(Δ, scale)/scale <= Δ/scale + 2⁻³⁹
//
// for values that differ by at most Δ. The result is a multiple of the grid. The
// value must be finite and at most 2⁴⁰⁰ in magnitude, the scale within
// [2⁻⁴⁰⁰, 2⁴⁰⁰]; others panic.
func (s *Source) Laplace(value, scale float64) float64 {
	exponent, units := grid(scale)
	checkValue(value)
	return release(value, s.DiscreteLaplace(units), exponent)
}

// Gaussian returns value, rounded to a multiple of Grid(sigma), plus discrete Gaussian noise
// on that grid. For values that differ by at most Δ the release is ρ-zero-concentrated DP with
// ρ = Sensitivity(Δ, sigma)²/2sigma², and its privacy profile δ(ε) is at most the one of
// Gaussian DP with μ = Sensitivity(Δ, sigma)/sigma plus GaussianDelta(Δ, sigma). The result is
// a multiple of the grid. The value must be finite and at most 2⁴⁰⁰ in magnitude, sigma within
// [2⁻⁴⁰⁰, 2⁴⁰⁰]; others panic.
func (s *Source) Gaussian(value, sigma float64) float64 {
	exponent, units := grid(sigma)
	checkValue(value)
	return release(value, s.DiscreteGaussian(units), exponent)
}

func checkValue(value float64) {
	if !(math.Abs(value) <= maxMagnitude) {
		panic("noise: value is not finite or above 2^400")
	}
}

// release returns the float nearest to the sum of value, rounded to the grid, and
// units of the grid. Both operands of the addition are integers and exact floats
// (noise reaches 2⁵³ units with probability below e^−4000), so that the result is a
// function of their exact sum.
func release(value float64, units int64, exponent int) float64 {
	return math.Ldexp(math.RoundToEven(math.Ldexp(value, -exponent))+float64(units), exponent)
}

// GaussianDelta bounds by how much the privacy profile of [Source.Gaussian] exceeds the
// profile of the continuous Gaussian mechanism with μ = Sensitivity(Δ, sigma)/sigma, at any ε,
// for values that differ by at most Δ = sensitivity. It is 6e-24 at most for Δ <= σ and 1e-20
// for Δ <= 500σ. For several releases, also with parameters that are chosen adaptively, the
// bounds add up (as long as their sum is below 1e-6).
func GaussianDelta(sensitivity, sigma float64) float64 {
	_, units := grid(sigma)
	return gaussianDelta(Sensitivity(sensitivity, sigma)/sigma, float64(units))
}

// gaussianDelta is GaussianDelta for noise of s units of the grid.
//
// In units of s, with h = 1/s, let φ be the normal density, r(x) the probability of
// the cell around the grid point x under it over h, and d(x) = φ(x)/Z the discrete
// Gaussian's over h. Averaging over the cell, with u uniform on [−½, ½],
//
//	r(x)/φ(x) = E[cosh(xhu)·e^{−h²u²/2}],
//
// which is at least e^{−h²/24} by Jensen's inequality, and at most
// sinh(xh/2)/(xh/2) <= e^{x²h²/24}. By Poisson's summation formula
// 1 <= Z <= 1 + 3e^{−2π²s²} = 1 + z. So everywhere d <= e^{h²/24}·r, and on the other
// data set, the centre of whose noise is at most μ away, d' >= e^{−(c+μ)²h²/24−z}·r'
// wherever |x| <= c. With θ the sum of the exponents,
//
//	Σ(d − e^ε·d')₊ <= e^{h²/24}·(Σ(r − e^{ε−θ}·r')₊ + P(|x| > c)).
//
// Cells are computed from the continuous mechanism, whose profile has a slope
// between −1 and 0: the sum on the right is at most δ(ε) + θ. Factors of releases
// multiply, exponents and tails add.
func gaussianDelta(mu, s float64) float64 {
	const c = 12
	h := 1 / s
	theta := h*h/24 + (c+mu)*(c+mu)*h*h/24 + 3*math.Exp(-2*math.Pi*math.Pi*s*s)
	tail := math.Erfc((c - h/2) / math.Sqrt2)
	return math.Expm1((h*h/24 + theta + tail) * (1 + 2e-6)) // for the products of several
}
