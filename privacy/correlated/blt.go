package correlated

import (
	"errors"

	"github.com/dpareto/dpareto/privacy"
)

// BLT is a buffered linear Toeplitz matrix: c₀ = 1 and c_i = Σ_d Scale_d·Decay_d^(i−1). Noise C⁻¹Z takes one buffer
// for each d, whatever the number of steps (Dvijotham, McMahan, Pillutla, Steinke and Thakurta, "Efficient and
// near-optimal noise generation for streaming differential privacy", 2024; McMahan, Xu and Zhang, "A hassle-free
// algorithm for strong differential privacy in federated learning systems", 2024, Algorithm 3).
type BLT struct {
	Scale []float64 // ω, all positive
	Decay []float64 // λ, as many, all in (0, 1)
}

// Validate reports the fields "buffer_scale" and "buffer_decay". Besides the ranges Σ ω/λ must be below 1, so that C⁻¹ has a
// bounded sum.
func (b BLT) Validate() error {
	if len(b.Scale) == 0 || len(b.Scale) != len(b.Decay) {
		return privacy.FieldErrorf("buffer_decay", "must have as many entries as buffer_scale, at least 1, has %d of %d", len(b.Decay), len(b.Scale))
	}
	var errs []error
	total := 0.0
	for d := range b.Scale {
		if !(b.Scale[d] > 0) {
			errs = append(errs, privacy.FieldErrorf("buffer_scale", "must be positive, is %g", b.Scale[d]))
		}
		if !(b.Decay[d] > 0 && b.Decay[d] < 1) {
			errs = append(errs, privacy.FieldErrorf("buffer_decay", "must lie in (0, 1), is %g", b.Decay[d]))
		}
		total += b.Scale[d] / b.Decay[d]
	}
	if len(errs) == 0 && !(total < 1) {
		errs = append(errs, privacy.FieldErrorf("buffer_scale", "divided by buffer_decay must have a sum below 1, has %g", total))
	}
	return errors.Join(errs...)
}

// TwoBuffers returns a matrix that does not depend on the length of a run or of its epochs. For epochs of 32 to 512
// steps, and up to 8 of them, the noise in sums of gradients has a standard deviation, of the last sum or over all sums,
// within 25 % of the least one with two buffers.
func TwoBuffers() BLT {
	return BLT{Scale: []float64{0.34, 0.064}, Decay: []float64{0.893, 0.997}}
}

// Column returns the first n >= 1 entries of the column.
func (b BLT) Column(n int) Column {
	c := make(Column, n)
	c[0] = 1
	for d, power := range b.Scale {
		for i := 1; i < n; i++ {
			c[i] += power
			power *= b.Decay[d]
		}
	}
	return c
}

// Sensitivity returns the sensitivity of the first steps entries of the column, which fall. Each has a relative rounding error below
// (steps + buffers)·2⁻⁵², since all terms are positive.
func (b BLT) Sensitivity(steps, separation, participations int) float64 {
	return b.Column(steps).Sensitivity(steps, separation, participations) * (1 + float64(steps+len(b.Scale)+4)*0x1p-52)
}
