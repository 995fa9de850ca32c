package gaussian

import (
	"math"

	"github.com/dpareto/dpareto/privacy/internal/quadrature"
)

// Interval returns Φ(b) − Φ(a) for b − a = width: for small widths by Taylor's formula around the middle,
// whose next term is below 1e-16, and else from the tail where both are small.
func Interval(a, b, width float64) float64 {
	if !(width > 0) {
		return 0
	}
	mid := a + 0.5*width
	if width*math.Max(1, math.Abs(mid)) < 0.02 {
		m, w := mid*mid, width*width
		return width / math.Sqrt(2*math.Pi) * math.Exp(-0.5*m) * (1 + w/24*(m-1+w/80*(m*m-6*m+3)))
	}
	if a > 0 {
		a, b = -b, -a
	}
	return 0.5 * (math.Erfc(-b/math.Sqrt2) - math.Erfc(-a/math.Sqrt2))
}

// LogSqrt2Pi is log √(2π).
const LogSqrt2Pi = 0.918938533204672741780329736405617639861

// LogCDF returns log Φ(x), the logarithm of the standard normal
// distribution function, to about 1e-15·max(1, x²) absolutely.
func LogCDF(x float64) float64 {
	switch {
	case x > 0:
		return math.Log1p(-0.5 * math.Erfc(x/math.Sqrt2))
	case x > -8:
		return math.Log(0.5 * math.Erfc(-x/math.Sqrt2))
	default:
		return math.Log(mills(-x)) - 0.5*x*x - LogSqrt2Pi
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

// Profile returns log δ(ε) of the pair N(0, 1), N(μ, 1) for ε >= 0 and
// μ > 0, and d log δ/dε:
//
//	δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)
//
// (Balle and Wang, "Improving the Gaussian mechanism for differential privacy:
// analytical calibration and optimal denoising", 2018, Theorem 8). The difference
// is φ(a)·(M(a) − M(b)) with the Mills ratio M, a = ε/μ − μ/2 and b = ε/μ + μ/2.
// Where a and b are close it is the integral of −M', which does not cancel.
func Profile(mu, epsilon float64) (logDelta, slope float64) {
	a := (epsilon - 0.5*mu*mu) / mu
	b := (epsilon + 0.5*mu*mu) / mu
	if mu <= math.Max(1, 0.25*a) {
		var difference float64
		for i, x := range quadrature.Nodes16 {
			difference += quadrature.Weights16[i] * (millsDeficit(a+0.5*mu*(1-x)) + millsDeficit(a+0.5*mu*(1+x)))
		}
		difference *= 0.5 * mu
		return math.Log(difference) - 0.5*a*a - LogSqrt2Pi, -mills(b) / difference
	}
	first, second := LogCDF(-a), epsilon+LogCDF(-b)
	logDelta = first + math.Log1p(-math.Exp(second-first))
	return logDelta, -math.Exp(second - logDelta)
}

// largeMu is the μ above which ε is searched relative to μ²/2.
const largeMu = 1000

// Epsilon returns the least ε >= 0 with δ(ε) <= e^logDelta for the pair of
// gaussianProfile. μ >= 0 may be infinite.
func Epsilon(mu, logDelta float64) float64 {
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
			value := math.Log(difference) - 0.5*t*t - LogSqrt2Pi
			next := t + (value-logDelta)*difference/(mu*second)
			if !(next < t) {
				break
			}
			t = next
		}
		return 0.5*mu*mu + mu*t
	}
	for range 100 {
		value, slope := Profile(mu, epsilon)
		next := epsilon - (value-logDelta)/slope
		if !(next < epsilon) {
			break
		}
		epsilon = math.Max(0, next)
	}
	return epsilon
}

// Mu returns the largest μ with δ(epsilon) <= e^logDelta for the pair of
// gaussianProfile, epsilon >= 0.
func Mu(epsilon, logDelta float64) float64 {
	// ε <= μ²/2 + μ√(2 log 1/δ), so this is below the solution.
	root := math.Sqrt(-2 * logDelta)
	lo := 2 * epsilon / (root + math.Sqrt(root*root+2*epsilon))
	lo = math.Max(lo, 2*math.Exp(logDelta)) // δ(0) <= μ/√(2π)
	hi := 2 * lo
	for Epsilon(hi, logDelta) <= epsilon {
		lo, hi = hi, 2*hi
	}
	for {
		mid := lo + 0.5*(hi-lo)
		if mid <= lo || mid >= hi {
			return lo
		}
		exceeds := math.Log(math.Erf(mid/(2*math.Sqrt2))) > logDelta
		if exceeds && epsilon > 0 {
			value, _ := Profile(mid, epsilon)
			exceeds = value > logDelta
		}
		if exceeds {
			hi = mid
		} else {
			lo = mid
		}
	}
}
