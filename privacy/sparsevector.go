package privacy

import (
	"errors"
	"math"
)

// SparseVector is the sparse vector technique: above-threshold answers to a
// stream of queries, of which each changes by at most 1 between adjacent data
// sets, stopped after Cutoff positive answers. The threshold gets Laplace noise
// of scale b₁ once and every query Laplace noise of scale b₂:
//
//	b₁ = b / (1 + (2C)^⅓),  b₂ = b − b₁
//	ε  = 1/b₁ + 2C/b₂ = (1 + (2C)^⅓)(1 + (2C)^⅔) / b
//
// with C = Cutoff and b = NoiseScale (Dwork and Roth, "The algorithmic foundations of
// differential privacy", 2014, §3.6, and Lyu, Su and Li, "Understanding the
// sparse vector technique for differential privacy", 2017, for this split; Avent
// et al., "Automatic discovery of privacy-utility Pareto fronts", 2020,
// Algorithm 1). The bound is attained in the limit of many queries.
type SparseVector struct {
	// Cutoff is C, the number of positive answers, >= 1.
	Cutoff int64
	// NoiseScale is b = b₁ + b₂, the total noise scale, > 0 and finite.
	NoiseScale float64
	// Neighbours is the adjacency under which the queries have sensitivity 1.
	Neighbours Adjacency
}

// Name returns "sparse_vector".
func (m SparseVector) Name() string { return "sparse_vector" }

// Adjacency returns m.Neighbours.
func (m SparseVector) Adjacency() Adjacency { return m.Neighbours }

// Validate reports the fields "cutoff", "noise_scale" and "adjacency".
func (m SparseVector) Validate() error {
	var errs []error
	if m.Cutoff < 1 {
		errs = append(errs, FieldErrorf("cutoff", "must be an integer of at least 1, is %d", m.Cutoff))
	}
	errs = append(errs, CheckPositive("noise_scale", m.NoiseScale), CheckAdjacency(m.Neighbours))
	return errors.Join(errs...)
}

// Assumptions returns the conditions of the closed form.
func (m SparseVector) Assumptions() []Assumption {
	return []Assumption{
		PremiseSensitivity.Assume("every query changes by at most 1 between adjacent data sets"),
		assumeSecretNoise,
		PremiseTheorem.Assume("only the positions of the positive answers are released, and the run stops at the cutoff"),
	}
}

// Split returns b₁, the scale of the threshold's noise, and b₂, the scale of
// each query's noise. The parameters must be valid.
func (m SparseVector) Split() (threshold, query float64) {
	c := math.Cbrt(2 * float64(m.Cutoff))
	// b − b₁ = b·c/(1 + c), without the subtraction.
	return m.NoiseScale / (1 + c), m.NoiseScale * (c / (1 + c))
}

// PureEpsilon returns ε of the formula above.
func (m SparseVector) PureEpsilon() float64 {
	c := math.Cbrt(2 * float64(m.Cutoff))
	return (1 + c) * (1 + c*c) / m.NoiseScale
}
