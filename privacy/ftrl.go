package privacy

import (
	"errors"

	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// DPFTRL is a whole run of a gradient method with correlated noise and without sampling (DP-FTRL, matrix
// factorisation): with gradients G, one row a step, it releases what follows from C·G + Z for a lower triangular
// matrix C and Gaussian Z. It is as private as one [Gaussian], also if later gradients depend on earlier releases
// (Denisov, McMahan, Rush, Smith and Thakurta, "Improved differential privacy for SGD via optimal private linear
// operators on adaptive streams", 2022): given what was released, the difference of the rows of C·G between neighbours
// is known, and its norm is at most Sensitivity times the clipping norm. Where a record is replaced, rows of G change by
// up to twice that norm.
type DPFTRL struct {
	// Sensitivity is the norm of C·G for rows of norm at most 1 in the steps of a single record, > 0 and finite. Package
	// correlated computes it.
	Sensitivity float64
	// NoiseMultiplier is the standard deviation of Z divided by the clipping norm, > 0 and finite, under either
	// adjacency.
	NoiseMultiplier float64
	Neighbours      Adjacency
}

// Name returns "dp_ftrl".
func (m DPFTRL) Name() string { return "dp_ftrl" }

// Adjacency returns m.Neighbours.
func (m DPFTRL) Adjacency() Adjacency { return m.Neighbours }

// Validate reports the fields "sensitivity", "noise_multiplier" and "adjacency".
func (m DPFTRL) Validate() error {
	return errors.Join(
		CheckPositive("sensitivity", m.Sensitivity),
		CheckPositive("noise_multiplier", m.NoiseMultiplier),
		CheckAdjacency(m.Neighbours))
}

// Assumptions returns the conditions that the loader and the trainer must meet.
func (m DPFTRL) Assumptions() []Assumption {
	steps := PremiseData.Assume("the steps of a record depend neither on other records nor on what was released")
	if m.Neighbours == AddRemove {
		steps = PremiseData.Assume("the steps of a record depend neither on other records nor on what was released, and a missing record leaves its places empty")
	}
	return []Assumption{
		PremiseSampler.Assume("a record takes part in at most the stated number of steps, with at least the stated separation from one to the next"),
		PremiseSampler.Assume("nothing that is released depends on the size of a batch"),
		PremiseSensitivity.Assume("the gradient of every record is clipped by itself, over all parameters together"),
		assumeSecretNoise,
		steps,
		PremiseTheorem.Assume("what is released follows from C·G + Z, for the stated matrix C, which does not depend on the data; of trees a new one begins after each stated separation"),
	}
}

// gaussian returns the mechanism that is as private as the run.
func (m DPFTRL) gaussian() Gaussian {
	g := Gaussian{Sensitivity: m.Sensitivity, StandardDeviation: m.NoiseMultiplier, Neighbours: m.Neighbours}
	if m.Neighbours == ReplaceOne {
		g.Sensitivity *= 2
	}
	return g
}

// GaussianMu returns μ of Gaussian differential privacy.
func (m DPFTRL) GaussianMu() float64 { return m.gaussian().GaussianMu() }

// RenyiCurve returns the divergence of [Gaussian].
func (m DPFTRL) RenyiCurve() RenyiCurve { return m.gaussian().RenyiCurve() }

// DominatingPairs returns the pairs of [PairMechanism]. They are attained if Sensitivity is.
func (m DPFTRL) DominatingPairs() pld.Pairs { return m.gaussian().DominatingPairs() }
