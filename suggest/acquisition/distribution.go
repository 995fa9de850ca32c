package acquisition

import (
	"math"

	"github.com/dpareto/dpareto/internal/fastexp"
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

// Distribution is the outcome X of one minimised objective, as a map of a Gaussian. StdDev = 0
// makes it a known constant. Mean must be finite and StdDev finite and not negative; a
// Gaussian may also have Mean = +Inf with StdDev = 0, which never improves.
type Distribution struct {
	Family       Family
	Mean, StdDev float64
}

// Median returns the median of X, the image of Mean.
func (l Distribution) Median() float64 { return l.image(l.Mean) }

// Latent returns the distribution on the scale of Z, turned where X falls with Z so that it is still
// minimised. The orders of outcomes stay, distances between them do not.
func (l Distribution) Latent() Distribution {
	if l.Family == NegatedLogNormal {
		l.Mean = -l.Mean
	}
	l.Family = Gaussian
	return l
}

// Quantile returns the value of X that is Mean + z·StdDev in Z. It increases
// in z, but for [NegatedLogNormal].
func (l Distribution) Quantile(z float64) float64 { return l.image(l.Mean + z*l.StdDev) }

// image maps a value of Z to one of X.
func (l Distribution) image(z float64) float64 {
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
	x := -math.Abs(z)
	power, rest := fastexp.Split(x)
	e := power + rest
	if x < fastexp.Least {
		e = math.Exp(x)
	}
	if z < 0 {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}

// standardize returns the standard Gaussian quantile z with P(X < t) = Φ(z).
func (l Distribution) standardize(t float64) float64 {
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
		return Distribution{Mean: -l.Mean, StdDev: l.StdDev}.standardize(-math.Log(-t))
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

// Probability returns P(lower < X < upper), 0 if lower >= upper. Neither tail
// loses digits.
func (l Distribution) Probability(lower, upper float64) float64 {
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
func (l Distribution) logProbability(lower, upper float64) float64 {
	if lower >= upper {
		return math.Inf(-1)
	}
	value, _, _ := logInterval(l.standardize(lower), l.standardize(upper))
	return value
}

// normalCDF is the standard Gaussian distribution function Φ.
func normalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
