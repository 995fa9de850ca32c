package acquisition

import (
	"math"
	"sync"

	"gonum.org/v1/gonum/integrate/quad"
)

// Family is the map from a Gaussian Z ~ N(Mean, StdDev²) to the outcome X.
type Family int

// The families.
const (
	Gaussian         Family = iota // X = Z
	LogNormal                      // X = exp(Z)
	NegatedLogNormal               // X = -exp(Z): a positive quantity that is maximised
	LogitNormal                    // X = 1 / (1 + exp(-Z))
)

// Law is the distribution of one minimised objective. StdDev = 0 makes it a
// known constant. Mean must be finite and StdDev finite and not negative; a
// Gaussian may also have Mean = +Inf with StdDev = 0, which never improves.
type Law struct {
	Family       Family
	Mean, StdDev float64
}

// Median returns the median of X, the image of Mean.
func (l Law) Median() float64 { return l.image(l.Mean) }

// Quantile returns the value of X that is Mean + z·StdDev in Z. It increases
// in z, but for [NegatedLogNormal].
func (l Law) Quantile(z float64) float64 { return l.image(l.Mean + z*l.StdDev) }

// image maps a value of Z to one of X.
func (l Law) image(z float64) float64 {
	switch l.Family {
	case LogNormal:
		return math.Exp(z)
	case NegatedLogNormal:
		return -math.Exp(z)
	case LogitNormal:
		return expit(z)
	default:
		return z
	}
}

// expit is the logistic function 1 / (1 + exp(-z)), the inverse of the logit.
func expit(z float64) float64 {
	if z < 0 {
		e := math.Exp(z)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-z))
}

// standardize returns the standard Gaussian quantile z with P(X < t) = Φ(z).
func (l Law) standardize(t float64) float64 {
	var z float64 // the preimage of t
	switch l.Family {
	case LogNormal:
		if t <= 0 {
			return math.Inf(-1)
		}
		z = math.Log(t)
	case NegatedLogNormal:
		if t >= 0 {
			return math.Inf(1)
		}
		return Law{Mean: -l.Mean, StdDev: l.StdDev}.standardize(-math.Log(-t))
	case LogitNormal:
		if t <= 0 {
			return math.Inf(-1)
		}
		if t >= 1 {
			return math.Inf(1)
		}
		z = math.Log(t) - math.Log1p(-t)
	default:
		z = t
	}
	if l.StdDev == 0 {
		// A constant is below t or not; equal values are no improvement.
		if l.Mean < z {
			return math.Inf(1)
		}
		return math.Inf(-1)
	}
	return (z - l.Mean) / l.StdDev
}

// CDF returns P(X < t).
func (l Law) CDF(t float64) float64 { return normalCDF(l.standardize(t)) }

// Probability returns P(lower < X < upper), 0 if lower >= upper. Neither tail
// loses digits.
func (l Law) Probability(lower, upper float64) float64 {
	if lower >= upper {
		return 0
	}
	a, b := l.standardize(lower), l.standardize(upper)
	if a > 0 {
		a, b = -b, -a
	}
	return math.Max(normalCDF(b)-normalCDF(a), 0)
}

// logProbability returns the logarithm of Probability, finite also where that
// underflows.
func (l Law) logProbability(lower, upper float64) float64 {
	if lower >= upper {
		return math.Inf(-1)
	}
	a, b := l.standardize(lower), l.standardize(upper)
	if a > 0 {
		a, b = -b, -a
	}
	lb := logNormalCDF(b)
	if math.IsInf(a, -1) {
		return lb
	}
	return lb + math.Log(-math.Expm1(logNormalCDF(a)-lb))
}

// Shortfall returns E[(t - X)+], the expected amount by which X is below t:
//
//	Gaussian    s (zΦ(z) + φ(z)),               z = (t - m)/s
//	LogNormal   tΦ(z) - exp(m + s²/2) Φ(z - s),  z = (ln t - m)/s
//	LogitNormal ∫ φ(z) (t - expit(m + sz))+ dz, numerically
//
// and for a NegatedLogNormal the value of a call option with strike -t. It is 0
// at -Inf and below the support, and t - E[X] above the support.
func (l Law) Shortfall(t float64) float64 {
	mean := math.NaN()
	return l.shortfall(t, &mean)
}

// shortfall is Shortfall. mean keeps E[X] of a LogitNormal from one call to the
// next, so that it is integrated at most once; NaN if it has not been yet.
func (l Law) shortfall(t float64, mean *float64) float64 {
	if math.IsInf(t, -1) {
		return 0
	}
	if l.StdDev == 0 {
		return math.Max(t-l.Median(), 0)
	}
	z := l.standardize(t)
	switch l.Family {
	case LogNormal:
		if t <= 0 {
			return 0
		}
		expectation := math.Exp(l.Mean + l.StdDev*l.StdDev/2)
		return math.Max(t*normalCDF(z)-expectation*normalCDF(z-l.StdDev), 0)
	case NegatedLogNormal:
		expectation := math.Exp(l.Mean + l.StdDev*l.StdDev/2)
		if t >= 0 {
			return t + expectation
		}
		// E[(exp(Z) - strike)+] with strike = -t.
		return math.Max(expectation*normalCDF(z+l.StdDev)+t*normalCDF(z), 0)
	case LogitNormal:
		if t <= 0 {
			return 0
		}
		if z < nearTail {
			lower := math.Max(math.Min(z, 0)-nearTail, -farTail)
			return math.Max(l.logitIntegral(t, lower, z), 0)
		}
		if math.IsNaN(*mean) {
			*mean = -l.logitIntegral(0, -nearTail, nearTail)
		}
		return t - *mean
	default:
		return math.Max(l.StdDev*(z*normalCDF(z)+normalDensity(z)), 0)
	}
}

// Quadratures over the standard Gaussian φ leave out |z| > farTail, and as much
// below the upper limit of integration as makes no difference to 15 digits.
const (
	farTail    = 12
	nearTail   = 8
	panelNodes = 10 // of Gauss-Legendre in each panel
)

// panelRule returns the nodes and weights of Gauss-Legendre on [-1, 1].
var panelRule = sync.OnceValue(func() (rule struct{ x, w [panelNodes]float64 }) {
	quad.Legendre{}.FixedLocations(rule.x[:], rule.w[:], -1, 1)
	return rule
})

// logitIntegral is the integral of φ(z) (t - expit(m + sz)) from lower to upper.
// Panels are short compared with the Gaussian and with the logistic function,
// whose width in z is 1/s.
func (l Law) logitIntegral(t, lower, upper float64) float64 {
	if upper <= lower {
		return 0
	}
	rule := panelRule()
	width := math.Min(3, 6/l.StdDev)
	panels := math.Ceil((upper - lower) / width)
	half := (upper - lower) / panels / 2
	sum := 0.0
	for k := 0.0; k < panels; k++ {
		middle := lower + (2*k+1)*half
		for i, x := range rule.x {
			z := middle + half*x
			sum += rule.w[i] * normalDensity(z) * (t - expit(l.Mean+l.StdDev*z))
		}
	}
	return sum * half
}

// normalDensity is the standard Gaussian density φ.
func normalDensity(z float64) float64 {
	return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
}

// normalCDF is the standard Gaussian distribution function Φ.
func normalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// logNormalCDF is ln Φ(z), by the asymptotic series of Mills' ratio where Φ
// nears the smallest float64.
func logNormalCDF(z float64) float64 {
	if z > -30 {
		return math.Log(normalCDF(z))
	}
	if math.IsInf(z, -1) {
		return z
	}
	// Φ(z) = φ(z)/|z| (1 - 1/z² + 3/z⁴ - 15/z⁶ + ...), next term < 2e-10 here.
	r := 1 / (z * z)
	return -z*z/2 - math.Log(-z) - math.Log(2*math.Pi)/2 + math.Log1p(r*(-1+r*(3-15*r)))
}
