package surrogate

import "math"

// LogNormalPrior is the prior density of the hyperparameters that [Fit] multiplies with
// the marginal likelihood: independent normal densities of the natural logarithms of the
// hyperparameters in standardised units (see the package comment), and of the noise slopes
// themselves, which are differences of logarithms. The estimate is the mode over these. The
// zero value is flat, so that [Fit] maximises the marginal likelihood within the bounds.
type LogNormalPrior struct {
	Signal, Length Normal

	// Noise is of the average over the observations of the noise variance of one run that its
	// checkpoints share in part, which is σ_n² without slopes. Run is the same for the noise
	// that the checkpoints of a run share alike, σ_r².
	Noise, Run Normal

	Slope, Decay Normal
}

// Normal is a normal density, or the flat one if StdDev is 0.
type Normal struct {
	Mean   float64
	StdDev float64 // >= 0
}

// LogDensity returns the logarithm of the density at v, up to a constant, and its derivative.
func (d Normal) LogDensity(v float64) (logDensity, derivative float64) {
	if d.StdDev == 0 {
		return 0, 0
	}
	z := (v - d.Mean) / d.StdDev
	return -z * z / 2, -z / d.StdDev
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
