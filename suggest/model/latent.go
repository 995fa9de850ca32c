package model

import (
	"cmp"
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/acquisition"
)

// minFraction is how far fractions are kept from 0 and 1 before the logit if there is no
// sample size: closer ones would be outliers of several units on the surrogate's scale for a
// difference that few measurements resolve.
const minFraction = 1e-3

// OnScale returns an exact value of o on the scale of its transform. Values outside the range of
// the scale count as the nearest value within it: see [suggest.Objective].Floor.
func OnScale(o *suggest.Objective, v float64) float64 {
	z, _ := latent(o, v, 0, 1)
	return z
}

// smallCount is the count of successes or failures below which a sample variance says
// little, so that the Jeffreys posterior gives the noise instead.
const smallCount = 5

// latent returns the value of o on its surrogate's scale for v, the finite mean
// of the given number of runs with standard error se (NaN if unknown), and the
// variance of its noise (NaN if unknown).
//
// With a sample size m, the value is the logit of p = (k + 1/2) / (N + 1), with k
// successes in N = runs·m records. Its noise variance is s²/(runs p² (1-p)²)
// by the delta method, s² being the variance between runs, at least 1/(4m²).
// If k or N - k is below 5 it is ψ₁(k + 1/2) + ψ₁(N - k + 1/2), the variance of
// the logit of a fraction under Jeffreys' posterior.
//
// A value of a NoiseFree objective has the variance of the Noise alone, whatever its standard error.
//
// A value with Noise added is no count: the logit is taken of the value itself, kept at
// least the noise away from 0 and 1, where the variance by the delta method is about 1.
func latent(o *suggest.Objective, v, se float64, runs int) (z, variance float64) {
	// The spread of a few noisy values can be less than their noise.
	added := o.Noise / math.Sqrt(float64(runs))
	if se = math.Max(se, added); o.NoiseFree {
		se = added
	}
	switch o.Transform {
	case suggest.Log:
		clipped := math.Max(v, cmp.Or(o.Floor, suggest.DefaultFloor))
		return math.Log(clipped), se * se / (clipped * clipped)
	case suggest.Logit:
		v = math.Min(math.Max(v, 0), 1)
		if o.Noise > 0 {
			margin := math.Min(o.Noise, 0.5)
			p := math.Min(math.Max(v, margin), 1-margin)
			slope := 1 / (p * (1 - p))
			return logit(p), se * se * slope * slope
		}
		if o.SampleSize == 0 {
			p := math.Min(math.Max(v, minFraction), 1-minFraction)
			slope := 1 / (p * (1 - p))
			return logit(p), se * se * slope * slope
		}
		n := float64(runs) * o.SampleSize
		k := v * n
		p := (k + 0.5) / (n + 1)
		if math.IsNaN(se) || o.NoiseFree {
			return logit(p), se
		}
		return logit(p), fractionNoise(k, n, p, se, float64(runs), o.SampleSize)
	default:
		return math.Min(math.Max(v, -largest), largest), se * se
	}
}

// disagreement is the share of the binomial variance of a fraction that two runs on the same records
// differ by at least: they agree on most of the records. It is what was fitted to runs of DP-SGD on
// five data sets, rounded to a quarter.
const disagreement = 0.25

// noiseFloor is the noise variance, on the surrogate's scale, that a fraction of records has at least
// where the noise of runs is unknown, 0 without a sample size: a few runs that happen to agree must not pass for exact.
// It does not fall with the number of runs, which are judged by the same records.
func noiseFloor(o *suggest.Objective, v float64) float64 {
	if o.Transform != suggest.Logit || o.SampleSize == 0 || o.Noise > 0 {
		return 0
	}
	p := (v*o.SampleSize + 0.5) / (o.SampleSize + 1)
	return disagreement / (o.SampleSize * p * (1 - p))
}

// largest is the magnitude beyond which values without a transform are cut off: their
// squares must be finite.
const largest = 1e100

// fractionNoise is the noise variance of the logit of a fraction; see latent.
func fractionNoise(k, n, p, se, runs, sampleSize float64) float64 {
	if k < smallCount || n-k < smallCount {
		return trigamma(k+0.5) + trigamma(n-k+0.5)
	}
	return deltaNoise(p, se, runs, sampleSize)
}

func deltaNoise(p, se, runs, sampleSize float64) float64 {
	between := math.Max(se*se*runs, 1/(4*sampleSize*sampleSize))
	slope := 1 / (p * (1 - p))
	return between / runs * slope * slope
}

func logit(p float64) float64 { return math.Log(p) - math.Log1p(-p) }

// trigamma is ψ₁(x) = ζ(2, x), x > 0.
func trigamma(x float64) float64 { return mathext.Zeta(2, x) }

// distribution returns the distribution of o's cost where the surrogate predicts
// N(mean, variance).
func distribution(o *suggest.Objective, mean, variance float64) acquisition.Distribution {
	l := acquisition.Distribution{Mean: mean, StdDev: math.Sqrt(math.Max(variance, 0))}
	switch o.Transform {
	case suggest.Log:
		l.Family = acquisition.LogNormal
		if o.Goal == suggest.Maximize {
			l.Family = acquisition.NegatedLogNormal
		}
		return l
	case suggest.Logit:
		l.Family = acquisition.LogitNormal
	default:
	}
	if o.Goal == suggest.Maximize {
		l.Mean = -mean
	}
	return l
}

// intervalZ is the 95 % quantile of the standard Gaussian: the half width of a
// central 90 % interval.
const intervalZ = 1.6448536269514722

// prediction turns the distribution of a cost into one of the objective's own value.
func prediction(o *suggest.Objective, l acquisition.Distribution) suggest.Prediction {
	own := func(z float64) float64 { return o.Cost(l.Quantile(z)) } // Cost is its own inverse
	a, b := own(-intervalZ), own(intervalZ)
	return suggest.Prediction{Median: own(0), Lower: math.Min(a, b), Upper: math.Max(a, b)}
}

// Measured returns the prediction of the mean measurement of metric j over a number of runs,
// where the surrogate predicts N(mean, variance) of its observation, noise included. It is the
// inverse of the map from measured values to the surrogate's scale.
func (m *Model) Measured(j int, mean, variance float64, runs int) suggest.Prediction {
	o := &m.metrics[j]
	p := prediction(o, distribution(o, mean, variance))
	if o.Transform != suggest.Logit || o.SampleSize == 0 || o.Noise > 0 {
		return p
	}
	n := float64(runs) * o.SampleSize
	counted := func(v float64) float64 { return min(max((v*(n+1)-0.5)/n, 0), 1) } // see latent
	return suggest.Prediction{Median: counted(p.Median), Lower: counted(p.Lower), Upper: counted(p.Upper)}
}

// isBad reports whether an infinite value is worse than every finite one.
func isBad(o *suggest.Objective, v float64) bool {
	return math.IsInf(v, 1) && o.Goal == suggest.Minimize || math.IsInf(v, -1) && o.Goal == suggest.Maximize
}

// worse returns the worse of two latent values.
func worse(o *suggest.Objective, a, b float64) float64 {
	if o.Goal == suggest.Minimize {
		return math.Max(a, b)
	}
	return math.Min(a, b)
}
