package acquisition

import "math"

// LogFeasible returns ln P(lower <= X <= upper), the probability that an outcome
// meets its constraint, and its derivatives. Bounds are in own units and may be
// infinite. A known value gives 0 or -Inf, with derivatives 0, as does an
// interval that is certain or impossible.
func LogFeasible(l Distribution, lower, upper float64) (value float64, d Partial) {
	if l.StdDev == 0 {
		if x := l.Median(); lower <= x && x <= upper {
			return 0, Partial{}
		}
		return math.Inf(-1), Partial{}
	}
	if lower >= upper {
		return math.Inf(-1), Partial{}
	}
	value, mean, square := logInterval(l.standardize(lower), l.standardize(upper))
	if l.Family == NegatedLogNormal { // whose quantile increases with Mean
		mean = -mean
	}
	return value, Partial{Mean: mean / l.StdDev, StdDev: (square - 1) / l.StdDev}
}

// logInterval returns ln P(a < U < b) of a standard Gaussian U, without loss in
// either tail, and E[U] and E[U²] given that event: 0 and 1 if it is certain or
// impossible.
func logInterval(a, b float64) (value, mean, square float64) {
	switch {
	case a >= b, b < -1e150: // where the logarithm overflows
		return math.Inf(-1), 0, 1
	case a > 0:
		value, mean, square = logInterval(-b, -a)
		return value, -mean, square
	case (b-a)*math.Max(1, -a) < 0.5:
		// A difference would cancel: integrate the density.
		centre := (a + b) / 2
		var sum float64
		for _, n := range shortRule {
			u := a + (b-a)*n.x
			w := n.w * math.Exp((centre-u)*(centre+u)/2)
			sum += w
			mean += w * u
			square += w * u * u
		}
		return math.Log((b-a)*sum) - centre*centre/2 - logSqrt2Pi, mean / sum, square / sum
	case b > 0:
		value = math.Log1p(-normalCDF(a) - normalCDF(-b))
	default:
		upper := logPhi(b)
		value = upper + log1mexp(upper-logPhi(a))
	}
	if math.IsInf(value, -1) {
		return value, 0, 1
	}
	// By parts: E[U] = (φ(a) - φ(b))/P, E[U²] = 1 + (aφ(a) - bφ(b))/P.
	square = 1
	if !math.IsInf(a, -1) {
		density := math.Exp(-a*a/2 - logSqrt2Pi - value)
		mean += density
		square += a * density
	}
	if !math.IsInf(b, 1) {
		density := math.Exp(-b*b/2 - logSqrt2Pi - value)
		mean -= density
		square -= b * density
	}
	return value, mean, square
}
