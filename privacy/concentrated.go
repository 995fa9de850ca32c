package privacy

import (
	"errors"
)

// ZeroConcentrated is any mechanism that is ρ-zCDP: its Rényi divergences are at
// most ρ·α at every order α (Bun and Steinke, "Concentrated differential privacy",
// 2016). Account it with [RDP].
type ZeroConcentrated struct {
	Rho        float64 // ρ > 0, finite
	Neighbours Adjacency
}

// Name returns "zero_concentrated".
func (m ZeroConcentrated) Name() string { return "zero_concentrated" }

// Adjacency returns m.Neighbours.
func (m ZeroConcentrated) Adjacency() Adjacency { return m.Neighbours }

// Validate reports the fields "rho" and "adjacency".
func (m ZeroConcentrated) Validate() error {
	return errors.Join(CheckPositive("rho", m.Rho), CheckAdjacency(m.Neighbours))
}

// Assumptions returns that ρ is taken on trust.
func (m ZeroConcentrated) Assumptions() []Assumption {
	return []Assumption{PremiseTheorem.Assume("the stated rho holds")}
}

// RenyiCurve returns ρ·α.
func (m ZeroConcentrated) RenyiCurve() RenyiCurve { return linearRenyi(m.Rho) }
