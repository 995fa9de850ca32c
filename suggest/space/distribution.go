package space

import (
	"fmt"
	"math"
)

// minAcceptedMass is the least probability that a distribution may give to its
// accepted range. Below it a design distribution is surely a mistake: a rejection sampler
// would need more than 1e9 draws per value.
const minAcceptedMass = 1e-9

// Distribution is the distribution of a [Double] or [Integer] parameter in a design:
// one of [Uniform], [LogUniform], [Normal] and [ShiftedExponential].
//
// Every distribution is conditioned on the open interval (AcceptMin, AcceptMax), as if
// all draws outside it were rejected. AcceptMin = AcceptMax = 0
// stands for the parameter's own (Min, Max). The interval must lie within the
// parameter's domain and carry a mass of at least 1e-9. Integers are drawn as
// real numbers and rounded (half to even) after acceptance, so that the end
// points of a uniform integer have half the mass of other values.
//
// These are the distributions of Appendix C of Avent, González, Diethe, Paleyes, Balle,
// "Automatic Discovery of Privacy-Utility Pareto Fronts", PoPETs 2020(4).
type Distribution interface {
	// accept returns the accepted range as given, (0, 0) for the default.
	accept() (lo, hi float64)
	// check returns the violated fields of the distribution itself.
	check(lo, hi float64) FieldErrors
	// mass returns the probability of (lo, hi) under the unconditioned distribution.
	mass(lo, hi float64) float64
	// quantile returns the value at cumulative probability u in (0, 1) of the
	// distribution conditioned on (lo, hi).
	quantile(u, lo, hi float64) float64
}

// Uniform is the uniform distribution on (AcceptMin, AcceptMax).
type Uniform struct {
	AcceptMin, AcceptMax float64
}

func (d Uniform) accept() (lo, hi float64)           { return d.AcceptMin, d.AcceptMax }
func (d Uniform) check(_, _ float64) (e FieldErrors) { return e }
func (d Uniform) mass(_, _ float64) float64          { return 1 }
func (d Uniform) quantile(u, lo, hi float64) float64 {
	return lo + u*(hi-lo)
}

// LogUniform is the distribution on (AcceptMin, AcceptMax), AcceptMin > 0, of a value
// whose logarithm is uniform.
type LogUniform struct {
	AcceptMin, AcceptMax float64
}

func (d LogUniform) accept() (lo, hi float64) { return d.AcceptMin, d.AcceptMax }

func (d LogUniform) check(lo, _ float64) (e FieldErrors) {
	if !(lo > 0) {
		e.Add("accept_min", fmt.Sprintf("must be positive for a log-uniform distribution, is %g", lo))
	}
	return e
}

func (d LogUniform) mass(_, _ float64) float64 { return 1 }

func (d LogUniform) quantile(u, lo, hi float64) float64 {
	return lo * math.Exp(u*math.Log(hi/lo))
}

// Normal is the Gaussian distribution with the given mean and standard deviation
// (StdDev > 0), conditioned on (AcceptMin, AcceptMax).
type Normal struct {
	Mean, StdDev         float64
	AcceptMin, AcceptMax float64
}

func (d Normal) accept() (lo, hi float64) { return d.AcceptMin, d.AcceptMax }

func (d Normal) check(_, _ float64) (e FieldErrors) {
	if !isFinite(d.Mean) {
		e.Add("mean", "must be finite")
	}
	if !(d.StdDev > 0) || math.IsInf(d.StdDev, 0) {
		e.Add("std_dev", fmt.Sprintf("must be positive and finite, is %g", d.StdDev))
	}
	return e
}

// normalTail returns the upper tail probability Q(z) of the standard Gaussian.
func normalTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// normalTailInverse returns z with Q(z) = q, 0 < q < 1. A Newton step restores
// the digits that math.Erfcinv loses for small q.
func normalTailInverse(q float64) float64 {
	z := math.Sqrt2 * math.Erfcinv(2*q)
	density := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
	return z + (normalTail(z)-q)/density
}

// tails returns the upper tail probabilities at the two ends of (lo, hi),
// measured from the side of the mean on which the interval lies, so that no
// digits are lost far out: a >= b, and flipped reports that the axis was turned.
func (d Normal) tails(lo, hi float64) (a, b float64, flipped bool) {
	zl, zh := (lo-d.Mean)/d.StdDev, (hi-d.Mean)/d.StdDev
	if zl+zh < 0 {
		return normalTail(-zh), normalTail(-zl), true
	}
	return normalTail(zl), normalTail(zh), false
}

func (d Normal) mass(lo, hi float64) float64 {
	a, b, _ := d.tails(lo, hi)
	return a - b
}

func (d Normal) quantile(u, lo, hi float64) float64 {
	a, b, flipped := d.tails(lo, hi)
	if flipped {
		// The turned axis runs from hi down to lo.
		return d.Mean - d.StdDev*normalTailInverse(b+u*(a-b))
	}
	return d.Mean + d.StdDev*normalTailInverse(a-u*(a-b))
}

// ShiftedExponential is the distribution of Shift + X with X exponential with the given
// rate (Rate > 0, mean 1/Rate), conditioned on (AcceptMin, AcceptMax). The
// "Shifted Exp(λ, shift)" of Avent et al. has rate λ.
type ShiftedExponential struct {
	Rate, Shift          float64
	AcceptMin, AcceptMax float64
}

func (d ShiftedExponential) accept() (lo, hi float64) { return d.AcceptMin, d.AcceptMax }

func (d ShiftedExponential) check(_, _ float64) (e FieldErrors) {
	if !(d.Rate > 0) || math.IsInf(d.Rate, 0) {
		e.Add("rate", fmt.Sprintf("must be positive and finite, is %g", d.Rate))
	}
	if !isFinite(d.Shift) {
		e.Add("shift", "must be finite")
	}
	return e
}

func (d ShiftedExponential) mass(lo, hi float64) float64 {
	lo, hi = math.Max(lo, d.Shift), math.Max(hi, d.Shift)
	return -math.Exp(-d.Rate*(lo-d.Shift)) * math.Expm1(-d.Rate*(hi-lo))
}

func (d ShiftedExponential) quantile(u, lo, hi float64) float64 {
	lo = math.Max(lo, d.Shift)
	// Memoryless: beyond lo the distribution is exponential again, cut at hi - lo.
	return lo - math.Log1p(u*math.Expm1(-d.Rate*(hi-lo)))/d.Rate
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// strictlyInside moves v, by rounding at most, into the open interval.
func strictlyInside(v, lo, hi float64) float64 {
	if v <= lo {
		return math.Nextafter(lo, hi)
	}
	if v >= hi {
		return math.Nextafter(hi, lo)
	}
	return v
}
