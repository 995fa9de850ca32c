package accounting

import (
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/correlated"
	"github.com/dpareto/dpareto/server/expression"
)

// maxParticipations bounds participations times steps, with which the time for a sensitivity grows.
const maxParticipations = 10_000_000

// dpFTRL compiles correlated noise without sampling.
func (c *compiler) dpFTRL(path string, m *dparetov1.DpFtrlMechanism) *mechanism {
	steps := c.integer(join(path, unitSteps), m.GetSteps())
	sigma := c.number(join(path, "noise_multiplier"), m.GetNoiseMultiplier())
	var separation, participations *expression.Number
	if m.GetSeparation() != "" {
		separation = c.integer(join(path, "separation"), m.GetSeparation())
	}
	if m.GetParticipations() != "" {
		participations = c.integer(join(path, "participations"), m.GetParticipations())
	}
	matrix := c.noiseMatrix(path, m)
	return &mechanism{gaussian: true, pair: true, evaluate: once(path, nil, func(e *evaluation) (privacy.Mechanism, map[string]float64) {
		n := e.integer(unitSteps, steps)
		apart, most := n, int64(maxParticipations)
		if separation != nil {
			apart = e.integer("separation", separation)
		}
		if participations != nil {
			most = e.integer("participations", participations)
		}
		switch {
		case e.err != nil:
		case n < 1 || n > maxParticipations:
			e.failf(unitSteps, "must be an integer in [1, %d], is %d", maxParticipations, n)
		case apart < 1 || apart > n:
			e.failf("separation", "must be an integer in [1, steps = %d], is %d", n, apart)
		case most < 1:
			e.failf("participations", "must be at least 1, is %d", most)
		case separation == nil && participations != nil && most > 1:
			e.failf("separation", "is required with %d participations: without it a record takes part once", most)
		case n*min(most, (n-1)/apart+1) > maxParticipations:
			e.failf("participations", "times steps must be at most %d, is %d times %d", maxParticipations, min(most, (n-1)/apart+1), n)
		}
		if e.err != nil {
			return nil, nil
		}
		run := privacy.DPFTRL{
			Sensitivity:     matrix.Sensitivity(int(n), int(apart), int(most)),
			NoiseMultiplier: e.float("noise_multiplier", sigma),
			Neighbours:      c.adjacency,
		}
		return run, map[string]float64{"sensitivity": run.Sensitivity, "mu": run.GaussianMu(), "noise_multiplier": run.NoiseMultiplier}
	})}
}

// noiseMatrix returns the matrix, valid where no violation was added.
func (c *compiler) noiseMatrix(path string, m *dparetov1.DpFtrlMechanism) correlated.Matrix {
	var matrix correlated.Matrix
	switch m.GetMatrix() {
	case dparetov1.NoiseMatrix_NOISE_MATRIX_TREE:
		matrix = correlated.Tree{}
	case dparetov1.NoiseMatrix_NOISE_MATRIX_BLT:
		matrix = correlated.BLT{Scale: m.GetBufferScale(), Decay: m.GetBufferDecay()}
	case dparetov1.NoiseMatrix_NOISE_MATRIX_TOEPLITZ:
		matrix = correlated.Column(m.GetColumn())
	default:
		c.addf(join(path, "matrix"), "must be NOISE_MATRIX_TREE, NOISE_MATRIX_BLT or NOISE_MATRIX_TOEPLITZ, is %v", m.GetMatrix())
		return nil
	}
	for _, violation := range privacy.FieldErrors(matrix.Validate()) {
		c.addf(join(path, violation.Field), "%s", violation.Message)
	}
	if len(m.GetColumn()) > 0 && m.GetMatrix() != dparetov1.NoiseMatrix_NOISE_MATRIX_TOEPLITZ {
		c.addf(join(path, "column"), "is only for NOISE_MATRIX_TOEPLITZ")
	}
	if len(m.GetBufferScale())+len(m.GetBufferDecay()) > 0 && m.GetMatrix() != dparetov1.NoiseMatrix_NOISE_MATRIX_BLT {
		c.addf(join(path, "buffer_scale"), "and buffer_decay are only for NOISE_MATRIX_BLT")
	}
	return matrix
}
