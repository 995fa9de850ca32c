package privacy

import (
	"errors"
	"math"
)

// logSqrt2Pi is log √(2π).
const logSqrt2Pi = 0.918938533204672741780329736405617639861

// logNormalCDF returns log Φ(x), the logarithm of the standard normal
// distribution function, to about 1e-15·max(1, x²) absolutely.
func logNormalCDF(x float64) float64 {
	switch {
	case x > 0:
		return math.Log1p(-0.5 * math.Erfc(x/math.Sqrt2))
	case x > -8:
		return math.Log(0.5 * math.Erfc(-x/math.Sqrt2))
	default:
		return math.Log(mills(-x)) - 0.5*x*x - logSqrt2Pi
	}
}

// mills returns the Mills ratio M(y) = Φ(−y)/φ(y), for y >= −37.
func mills(y float64) float64 {
	if y < 2 {
		return 0.5 * math.Sqrt(2*math.Pi) * math.Erfc(y/math.Sqrt2) * math.Exp(0.5*y*y)
	}
	return 1 / (y + millsFraction(y))
}

// millsDeficit returns 1 − y·M(y) = −M'(y), for y >= −37.
func millsDeficit(y float64) float64 {
	if y < 2 {
		return 1 - y*mills(y)
	}
	k := millsFraction(y)
	return k / (y + k)
}

// millsFraction returns K in M(y) = 1/(y + K), K = 1/(y + 2/(y + 3/(y + ...)))
// (Laplace), for y >= 2. The error of n terms falls like e^{−2y√(2n)}.
func millsFraction(y float64) float64 {
	terms := 8 + int(450/(y*y))
	k := 0.0
	for i := terms; i >= 1; i-- {
		k = float64(i) / (y + k)
	}
	return k
}

// gaussianProfile returns log δ(ε) of the pair N(0, 1), N(μ, 1) for ε >= 0 and
// μ > 0, and d log δ/dε:
//
//	δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)
//
// (Balle and Wang, "Improving the Gaussian mechanism for differential privacy:
// analytical calibration and optimal denoising", 2018, Theorem 8). The difference
// is φ(a)·(M(a) − M(b)) with the Mills ratio M, a = ε/μ − μ/2 and b = ε/μ + μ/2.
// Where a and b are close it is the integral of −M', which does not cancel.
func gaussianProfile(mu, epsilon float64) (logDelta, slope float64) {
	a := (epsilon - 0.5*mu*mu) / mu
	b := (epsilon + 0.5*mu*mu) / mu
	if mu <= math.Max(1, 0.25*a) {
		var difference float64
		for i, x := range gauss16 {
			difference += weight16[i] * (millsDeficit(a+0.5*mu*(1-x)) + millsDeficit(a+0.5*mu*(1+x)))
		}
		difference *= 0.5 * mu
		return math.Log(difference) - 0.5*a*a - logSqrt2Pi, -mills(b) / difference
	}
	first, second := logNormalCDF(-a), epsilon+logNormalCDF(-b)
	logDelta = first + math.Log1p(-math.Exp(second-first))
	return logDelta, -math.Exp(second - logDelta)
}

// largeMu is the μ above which ε is searched relative to μ²/2.
const largeMu = 1000

// gaussianEpsilon returns the least ε >= 0 with δ(ε) <= e^logDelta for the pair of
// gaussianProfile. μ >= 0 may be infinite.
func gaussianEpsilon(mu, logDelta float64) float64 {
	if mu == 0 || math.Log(math.Erf(mu/(2*math.Sqrt2))) <= logDelta {
		return 0 // δ(0) = 2Φ(μ/2) − 1
	}
	// log δ is concave and falls in ε, so that Newton's iterates, once right of
	// the root, stay there. e^{−(ε−μ²/2)²/2μ²} bounds δ(ε) for ε >= μ²/2.
	t := math.Sqrt(-2 * logDelta)
	epsilon := 0.5*mu*mu + mu*t
	if math.IsInf(epsilon, 1) {
		return epsilon
	}
	if mu > largeMu {
		// In t, for ε = μ²/2 + μt, of which ε has lost the last digits:
		// δ = φ(t)·(M(t) − M(t + μ)).
		for range 100 {
			second := mills(t + mu)
			difference := mills(t) - second
			value := math.Log(difference) - 0.5*t*t - logSqrt2Pi
			next := t + (value-logDelta)*difference/(mu*second)
			if !(next < t) {
				break
			}
			t = next
		}
		return 0.5*mu*mu + mu*t
	}
	for range 100 {
		value, slope := gaussianProfile(mu, epsilon)
		next := epsilon - (value-logDelta)/slope
		if !(next < epsilon) {
			break
		}
		epsilon = math.Max(0, next)
	}
	return epsilon
}

// GaussianMu returns the largest μ for which μ-Gaussian DP is (epsilon, delta)-DP, to a
// relative precision of about 1e-12, from below (Balle and Wang, "Improving the Gaussian
// mechanism for differential privacy", 2018, Theorem 8). The errors are FieldErrors for
// "epsilon", positive and finite, and "delta", in (0, 1).
func GaussianMu(epsilon, delta float64) (float64, error) {
	if err := errors.Join(checkPositive("epsilon", epsilon), checkDelta(delta)); err != nil {
		return 0, err
	}
	return gaussianMu(epsilon, math.Log(delta)) * (1 - 1e-12), nil
}

// gaussianMu returns the largest μ with δ(epsilon) <= e^logDelta for the pair of
// gaussianProfile, epsilon >= 0.
func gaussianMu(epsilon, logDelta float64) float64 {
	// ε <= μ²/2 + μ√(2 log 1/δ), so this is below the solution.
	root := math.Sqrt(-2 * logDelta)
	lo := 2 * epsilon / (root + math.Sqrt(root*root+2*epsilon))
	lo = math.Max(lo, 2*math.Exp(logDelta)) // δ(0) <= μ/√(2π)
	hi := 2 * lo
	for gaussianEpsilon(hi, logDelta) <= epsilon {
		lo, hi = hi, 2*hi
	}
	for {
		mid := lo + 0.5*(hi-lo)
		if mid <= lo || mid >= hi {
			return lo
		}
		exceeds := math.Log(math.Erf(mid/(2*math.Sqrt2))) > logDelta
		if exceeds && epsilon > 0 {
			value, _ := gaussianProfile(mid, epsilon)
			exceeds = value > logDelta
		}
		if exceeds {
			hi = mid
		} else {
			lo = mid
		}
	}
}

// gauss16 and weight16 are the positive nodes of the 16-point Gauss-Legendre
// rule on [−1, 1] and their weights.
var (
	gauss16 = [8]float64{
		0.0950125098376374401853193354249581, 0.2816035507792589132304605014604961,
		0.4580167776572273863424194429835776, 0.6178762444026437484466717640487910,
		0.7554044083550030338951011948474422, 0.8656312023878317438804678977123931,
		0.9445750230732325760779884155346083, 0.9894009349916499325961541734503326,
	}
	weight16 = [8]float64{
		0.1894506104550684962853967232082831, 0.1826034150449235888667636679692199,
		0.1691565193950025381893120790303599, 0.1495959888165767320815017305474786,
		0.1246289712555338720524762821920164, 0.0951585116824927848099251076022462,
		0.0622535239386478928628438369943777, 0.0271524594117540948517805724560182,
	}
)
