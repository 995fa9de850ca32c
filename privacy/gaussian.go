package privacy

import (
	"errors"

	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// Gaussian is the Gaussian mechanism: a statistic of ℓ2 sensitivity Sensitivity
// is released with independent noise N(0, StandardDeviation²) on every coordinate.
type Gaussian struct {
	Sensitivity       float64   // Δ > 0, finite, in the unit of the statistic
	StandardDeviation float64   // standard deviation of the noise > 0, same unit
	Neighbours        Adjacency // the adjacency that Sensitivity is stated for
}

// Name returns "gaussian".
func (m Gaussian) Name() string { return "gaussian" }

// Adjacency returns m.Neighbours.
func (m Gaussian) Adjacency() Adjacency { return m.Neighbours }

// Validate reports the fields "sensitivity", "standard_deviation" and "adjacency".
func (m Gaussian) Validate() error {
	return errors.Join(
		CheckPositive("sensitivity", m.Sensitivity),
		CheckPositive("standard_deviation", m.StandardDeviation),
		CheckAdjacency(m.Neighbours))
}

// Assumptions returns the meaning of the sensitivity.
func (m Gaussian) Assumptions() []Assumption {
	return []Assumption{PremiseSensitivity.Assume("the sensitivity bounds the Euclidean distance between the statistics of adjacent data sets"), assumeSecretNoise}
}

// GaussianMu returns μ = Sensitivity/StandardDeviation.
func (m Gaussian) GaussianMu() float64 { return m.Sensitivity / m.StandardDeviation }

// RenyiCurve returns ρ(α) = α·μ²/2 (Mironov, 2017, Proposition 7).
func (m Gaussian) RenyiCurve() RenyiCurve {
	mu := m.GaussianMu()
	return linearRenyi(0.5 * mu * mu)
}

// DominatingPairs returns the pair of [PairMechanism].
func (m Gaussian) DominatingPairs() pld.Pairs { return pld.Attained(pld.Gaussian(m.GaussianMu())) }

// linearRenyi is the curve ρ(α) = rate·α of concentrated differential privacy.
type linearRenyi float64

func (rate linearRenyi) RDP(order float64) float64 { return float64(rate) * order }
