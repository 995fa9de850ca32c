package privacy

import (
	"math"
)

// Delta returns the guarantee with the least δ for which steps runs cost at most
// epsilon >= 0, found by root search in the curve's Epsilon. Its Epsilon is at most
// epsilon. Delta is 0 only if the curve accepts that, and at least 1e-300
// otherwise. The errors are FieldErrors for "steps" and "epsilon"; the latter
// also when even δ = 1 − 2⁻⁵³ does not suffice.
func Delta(c Curve, steps int64, epsilon float64) (Guarantee, error) {
	if !(epsilon >= 0) {
		return Guarantee{}, FieldErrorf("epsilon", "must not be negative, is %g", epsilon)
	}
	if g, err := c.Epsilon(steps, 0); err == nil && g.Epsilon <= epsilon {
		return g, nil
	}
	// In terms of r = √(log 1/δ), in which ε is nearly linear.
	least, most := math.Sqrt(0x1p-53), math.Sqrt(-math.Log(1e-300))
	at := func(r float64) (Guarantee, error) { return c.Epsilon(steps, math.Exp(-r*r)) }
	hi := 3.0 // suffices
	g, err := at(hi)
	if err != nil {
		return Guarantee{}, err
	}
	lo, above := math.Inf(1), math.Inf(1) // does not
	for g.Epsilon > epsilon {
		if hi == least {
			return Guarantee{}, FieldErrorf("epsilon", "no delta below 1 gives %g", epsilon)
		}
		lo, above = hi, g.Epsilon
		if hi /= 2; hi < 0.1 {
			hi = least
		}
		if g, err = at(hi); err != nil {
			return Guarantee{}, err
		}
	}
	for math.IsInf(lo, 1) {
		next := math.Min(2*hi, most)
		larger, err := at(next)
		if err != nil {
			return Guarantee{}, err
		}
		if larger.Epsilon > epsilon {
			lo, above = next, larger.Epsilon
			break
		}
		if hi, g = next, larger; hi == most {
			return g, nil
		}
	}
	below := g.Epsilon
	const precision = 1e-9 // of δ, relative
	for range 200 {
		width := (lo - hi) * (lo + hi) // in log δ
		if !(width > precision) {
			break
		}
		mid := lo + (hi-lo)*aside((above-epsilon)/(above-below), 0.3*precision/width)
		if !(mid < lo && mid > hi) {
			mid = 0.5 * (lo + hi)
		}
		next, err := at(mid)
		if err != nil {
			return Guarantee{}, err
		}
		if next.Epsilon <= epsilon {
			g, hi, below = next, mid, next.Epsilon
		} else {
			lo, above = mid, next.Epsilon
		}
	}
	return g, nil
}

// aside moves share, where a root is expected within a bracket, a little towards the wider
// part, by at least least, so that both ends of the bracket move in turn.
func aside(share, least float64) float64 {
	if !(share > 0 && share < 1) {
		share = 0.5
	}
	margin := math.Max(least, 0.02*math.Min(share, 1-share))
	if share < 0.5 {
		return share + margin
	}
	return share - margin
}

// CalibrateNoise returns the least noise, to a relative precision of 1e-9 and not below the
// exact value, for which steps runs of family(noise) cost at most epsilon > 0 for delta, and
// the guarantee of that mechanism. ε must fall with noise, which is a noise multiplier, a
// standard deviation or a scale, as family takes it; it is searched between 1e-6 and 1e12. It
// returns the accountant's errors, and FieldErrors for an "epsilon" that is not positive or
// out of reach.
func CalibrateNoise(a Accountant, family func(noise float64) Mechanism, steps int64, epsilon, delta float64) (float64, Guarantee, error) {
	if err := CheckPositive("epsilon", epsilon); err != nil {
		return 0, Guarantee{}, err
	}
	at := func(noise float64) (Guarantee, error) { return Epsilon(a, family(noise), steps, delta) }
	const least, most = 1e-6, 1e12
	g, err := at(1)
	if err != nil {
		return 0, Guarantee{}, err
	}
	lo, hi := 1.0, 1.0
	for g.Epsilon > epsilon { // until hi suffices
		if lo, hi = hi, 2*hi; hi > most {
			return 0, Guarantee{}, FieldErrorf("epsilon", "no noise up to %g gives %g", most, epsilon)
		}
		if g, err = at(hi); err != nil {
			return 0, Guarantee{}, err
		}
	}
	for lo == hi { // until lo does not
		half, err := at(lo / 2)
		if err != nil {
			return 0, Guarantee{}, err
		}
		if lo /= 2; half.Epsilon <= epsilon {
			if hi, g = lo, half; hi < least {
				return hi, g, nil
			}
		}
	}
	// ε is close to a power of the noise: regula falsi in logarithms.
	const precision = 1e-9
	below, err := at(lo)
	if err != nil {
		return 0, Guarantee{}, err
	}
	for range 200 {
		if hi <= lo*(1+precision) {
			break
		}
		width := math.Log(hi / lo)
		share := math.Log(below.Epsilon/epsilon) / math.Log(below.Epsilon/g.Epsilon)
		mid := lo * math.Exp(width*aside(share, 0.3*precision/width))
		if !(mid > lo && mid < hi) {
			mid = math.Sqrt(lo * hi)
		}
		next, err := at(mid)
		if err != nil {
			return 0, Guarantee{}, err
		}
		if next.Epsilon <= epsilon {
			hi, g = mid, next
		} else {
			lo, below = mid, next
		}
	}
	return hi, g, nil
}
