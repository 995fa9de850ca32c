package noise

import (
	"math"
	"math/big"
	"math/bits"
)

// BernoulliFloat64 returns true with probability p exactly, 0 <= p <= 1. It panics for
// another p.
func (s *Source) BernoulliFloat64(p float64) bool {
	if !(p >= 0 && p <= 1) {
		panic("noise: probability outside [0, 1]")
	}
	if p == 1 {
		return true
	}
	for { // as in bernoulli, all operations being exact
		p *= 1 << 64
		digit := uint64(p)
		p -= float64(digit)
		if u := s.Uint64(); u != digit {
			return u < digit
		}
	}
}

// BernoulliExp returns true with probability e^−γ exactly, γ >= 0 (Canonne, Kamath
// and Steinke, 2020, Algorithm 1). It panics for a negative γ. The expected time is
// bounded for all γ of a given length.
func (s *Source) BernoulliExp(gamma *big.Rat) bool {
	if gamma.Sign() < 0 {
		panic("noise: negative exponent")
	}
	whole, num := new(big.Int).QuoRem(gamma.Num(), gamma.Denom(), new(big.Int))
	for part := new(big.Int).SetUint64(math.MaxUint64); !whole.IsUint64(); whole.Sub(whole, part) {
		if !s.BernoulliExpInteger(math.MaxUint64) {
			return false
		}
	}
	if !s.BernoulliExpInteger(whole.Uint64()) {
		return false
	}
	denom := new(big.Int)
	return s.alternate(func(k uint64) bool {
		return s.bernoulliBig(num, denom.Mul(gamma.Denom(), denom.SetUint64(k)))
	})
}

// BernoulliExpInteger is BernoulliExp for an integer, without big arithmetic. Its
// expected time is bounded for all n.
func (s *Source) BernoulliExpInteger(n uint64) bool {
	for range n {
		if !s.bernoulliExp(1, 1) {
			return false
		}
	}
	return true
}

// DiscreteLaplace returns an integer y with probability ∝ e^{−|y|/scale} exactly
// (Canonne, Kamath and Steinke, 2020, Algorithm 2). It panics unless
// 1 <= scale <= 2⁴⁸. Integers outside of 64 bits, whose probability is below
// e^−32000, wrap around.
func (s *Source) DiscreteLaplace(scale uint64) int64 {
	checkInteger(scale)
	for {
		rest := s.Uint64N(scale)
		if !s.bernoulliExp(rest, scale) {
			continue
		}
		magnitude := rest
		for s.bernoulliExp(1, 1) {
			magnitude += scale
		}
		negative := s.Uint64()>>63 == 1
		switch {
		case !negative:
			return int64(magnitude)
		case magnitude > 0: // a zero has one sign only
			return -int64(magnitude)
		}
	}
}

// DiscreteGaussian returns an integer y with probability ∝ e^{−y²/2sigma²} exactly
// (Canonne, Kamath and Steinke, 2020, Algorithm 3). It panics unless
// 1 <= sigma <= 2⁴⁸.
func (s *Source) DiscreteGaussian(sigma uint64) int64 {
	checkInteger(sigma)
	// A discrete Laplace y of scale t is accepted with probability
	// e^{−(|y|−σ²/t)²/2σ²}. Every t is right; t = σ keeps the numbers small.
	for {
		y := s.DiscreteLaplace(sigma)
		distance := max(y, -y) - int64(sigma)
		if s.bernoulliGauss(uint64(max(distance, -distance)), sigma) {
			return y
		}
	}
}

func checkInteger(scale uint64) {
	if scale < 1 || scale > 1<<48 {
		panic("noise: integer scale outside [1, 2^48]")
	}
}

// bernoulliGauss returns true with probability e^{−(d/σ)²/2}. With d = aσ + b the
// exponent is a²·½ + a·(b/σ) + ½(b/σ)².
func (s *Source) bernoulliGauss(d, sigma uint64) bool {
	a, b := d/sigma, d%sigma
	for range a * a {
		if !s.bernoulliExp(1, 2) {
			return false
		}
	}
	for range a {
		if !s.bernoulliExp(b, sigma) {
			return false
		}
	}
	return s.alternate(func(k uint64) bool { // ½(b/σ)²/k as a product
		return s.bernoulli(1, 2*k) && s.bernoulli(b, sigma) && s.bernoulli(b, sigma)
	})
}

// bernoulliExp returns true with probability e^{−p/q}, p <= q <= 2⁴⁸.
func (s *Source) bernoulliExp(p, q uint64) bool {
	return s.alternate(func(k uint64) bool { return s.bernoulli(p, q*k) })
}

// alternate returns true with probability e^−γ, given trials that succeed with
// probability γ/k <= 1/k: the first failure comes at k with probability
// γ^{k−1}/(k−1)! − γ^k/k!, and odd ones sum to the series of e^−γ.
func (s *Source) alternate(trial func(k uint64) bool) bool {
	for k := uint64(1); ; k++ { // rarely above 20
		if !trial(k) {
			return k%2 == 1
		}
	}
}

// bernoulli returns true with probability p/q, p <= q and q > 0: a uniform number of
// [0, 1) is below p/q when the first of its digits that differs is, with digits of
// base 2⁶⁴.
func (s *Source) bernoulli(p, q uint64) bool {
	if p == q {
		return true
	}
	for {
		var digit uint64
		digit, p = bits.Div64(p, 0, q)
		if u := s.Uint64(); u != digit {
			return u < digit
		}
	}
}

// bernoulliBig is bernoulli for p and q of any size. It leaves them as they are.
func (s *Source) bernoulliBig(p, q *big.Int) bool {
	if p.Cmp(q) == 0 {
		return true
	}
	digit, rest := new(big.Int), new(big.Int).Set(p)
	for {
		digit.QuoRem(rest.Lsh(rest, 64), q, rest)
		if u := s.Uint64(); u != digit.Uint64() {
			return u < digit.Uint64()
		}
	}
}
