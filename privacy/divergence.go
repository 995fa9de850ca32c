package privacy

import (
	"math"
)

// Divergence returns the bound on the Rényi divergence of an order > 1 that steps >= 1 runs of m have together:
// the charge of a filter of that order for them (Feldman and Zrnic, "Individual privacy accounting via a Rényi
// filter", 2021, Theorem 4.3; [Conversion.Budget] is its budget). The errors are m's validation error,
// FieldErrors for "mechanism", "steps" and "order", and the *UnsupportedError of [Renyi].
func Divergence(m Mechanism, steps int64, order float64) (float64, error) {
	if !(order > 1) || math.IsInf(order, 1) {
		return 0, FieldErrorf("order", "must exceed 1 and be finite, is %g", order)
	}
	if m == nil {
		return 0, FieldErrorf("mechanism", "must be set")
	}
	if err := m.Validate(); err != nil {
		return 0, err
	}
	if steps < 1 {
		return 0, FieldErrorf("steps", "must be at least 1, is %d", steps)
	}
	curve, err := Renyi(m)
	if err != nil {
		return 0, err
	}
	return curve.RDP(order) * float64(steps), nil
}

// Budget returns the largest Rényi divergence of the given order > 1 that is still (epsilon,
// delta)-DP by the conversion. It is not positive if the order is too small for epsilon: below
// about 1 + log(1/delta)/epsilon.
func (c Conversion) Budget(order, epsilon, delta float64) float64 {
	return epsilon - c.surcharge(order, math.Log(delta))
}
