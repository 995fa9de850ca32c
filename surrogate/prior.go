package surrogate

import "math"

// Prior is the prior density of the hyperparameters that [Fit] multiplies with
// the marginal likelihood. The hyperparameters are independent.
//
// Each method takes the natural logarithm v of a hyperparameter in
// standardised units (see the package comment) and returns the logarithm of
// the density of v, up to a constant, and its derivative with respect to v.
// A density of the hyperparameter itself, p(e^v), becomes a density of its
// logarithm by the factor e^v; a Prior must say which mode it means, since the
// estimate is the mode over v.
//
// Implementations must be safe for concurrent use.
type Prior interface {
	SignalVariance(v float64) (logDensity, derivative float64)
	LengthScale(v float64) (logDensity, derivative float64)

	// NoiseVariance takes the logarithm of the average over the observations of the
	// noise variance of one run that its checkpoints share in part, which is σ_n² without slopes.
	NoiseVariance(v float64) (logDensity, derivative float64)

	// RunVariance is NoiseVariance for what the checkpoints of a run share alike, σ_r².
	RunVariance(v float64) (logDensity, derivative float64)
	NoiseDecay(v float64) (logDensity, derivative float64)

	// NoiseSlope takes the slope itself, which is a difference of logarithms.
	NoiseSlope(v float64) (logDensity, derivative float64)
}

// LogNormalPrior gives each hyperparameter a normal density over its
// logarithm, and the noise slopes one over themselves. The zero value is flat, so that
// [Fit] maximises the marginal likelihood within the bounds.
type LogNormalPrior struct {
	Signal, Length, Noise, Run, Slope, Decay Normal
}

// Normal is a normal density, or the flat one if StdDev is 0.
type Normal struct {
	Mean   float64
	StdDev float64 // >= 0
}

func (d Normal) logDensity(v float64) (logDensity, derivative float64) {
	if d.StdDev == 0 {
		return 0, 0
	}
	z := (v - d.Mean) / d.StdDev
	return -z * z / 2, -z / d.StdDev
}

// SignalVariance implements [Prior].
func (p LogNormalPrior) SignalVariance(v float64) (logDensity, derivative float64) {
	return p.Signal.logDensity(v)
}

// LengthScale implements [Prior].
func (p LogNormalPrior) LengthScale(v float64) (logDensity, derivative float64) {
	return p.Length.logDensity(v)
}

// NoiseVariance implements [Prior].
func (p LogNormalPrior) NoiseVariance(v float64) (logDensity, derivative float64) {
	return p.Noise.logDensity(v)
}

// RunVariance implements [Prior].
func (p LogNormalPrior) RunVariance(v float64) (logDensity, derivative float64) {
	return p.Run.logDensity(v)
}

// NoiseSlope implements [Prior].
func (p LogNormalPrior) NoiseSlope(v float64) (logDensity, derivative float64) {
	return p.Slope.logDensity(v)
}

// NoiseDecay implements [Prior].
func (p LogNormalPrior) NoiseDecay(v float64) (logDensity, derivative float64) {
	return p.Decay.logDensity(v)
}

// DefaultPrior returns the weak prior that [Fit] uses for d inputs (d length
// scales, if some are tied) if none is given:
//
//	log ℓ_j  ~ N(√2 − 3 + ½ ln d, √3),  mode ℓ = 0.205 √d
//	log s_f² ~ N(0, 2)
//	log τ²   ~ N(−5, 1),                mode τ² = 0.0067, on average
//	log σ_r² ~ N(−6, 1.5),              mode 0.0025, on average
//	b_j      ~ N(0, 1)
//	log λ    ~ N(0, 1)
//
// with the standard deviation as the second argument.
//
// The first is the prior of Hvarfner, Hellsten and Nardi, "Vanilla Bayesian
// Optimization Performs Great in High Dimensions", ICML 2024, which is
// log-normal in ℓ with log-mean √2 + ½ ln d and log-standard deviation √3. Its
// density of ℓ, left without the Jacobian factor, is a normal density of log ℓ
// with the mean lowered by the variance 3; so the mode over log ℓ taken here is
// the mode over ℓ meant there.
//
// The noise is held near a small share of the variance until data say otherwise:
// where every configuration was run once, noise alone can explain a few runs, and a
// model that believes so has nothing left to learn. A noise slope of one standard
// deviation changes the standard deviation of the noise by two thirds from one face of
// the unit cube to the other. The decay suits positions that are logarithms: noise
// stays much the same while the epoch changes by less than a factor of e.
func DefaultPrior(d int) LogNormalPrior {
	return LogNormalPrior{
		Signal: Normal{Mean: 0, StdDev: 2},
		Length: Normal{Mean: math.Sqrt2 - 3 + math.Log(math.Max(1, float64(d)))/2, StdDev: math.Sqrt(3)},
		Noise:  Normal{Mean: -5, StdDev: 1},
		Run:    Normal{Mean: -6, StdDev: 1.5},
		Slope:  Normal{Mean: 0, StdDev: 1},
		Decay:  Normal{Mean: 0, StdDev: 1},
	}
}
