package pld

import (
	"math"

	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/internal/logexp"
)

// logBinomialTail returns log P[X >= k] of a binomial X with n tries of probability q, 0 < q < 1, 1 <= k <= n <= 2⁵³,
// and a bound of its error. It sums the terms of the shorter tail: some multiple of √(nq(1−q)).
func logBinomialTail(n, k int64, q float64) (log, errorBound float64) {
	if float64(k) > float64(n)*q { // terms fall from k on
		return logTermsAbove(n, k, q)
	}
	// The median is at least ⌊nq⌋, so that at most ½ is taken off.
	below, e := logTermsAbove(n, n-k+1, 1-q) // n − X has probability 1 − q
	if q < 0x1p-53 {
		below, e = float64(n)*math.Log1p(-q), float64(n)*q*0x1p-50 // then nq < 1 and k = 1, unless n is at its largest
	}
	p := math.Exp(below)
	return math.Log1p(-p), 2*e*p + 0x1p-50
}

// logTermsAbove sums the terms from k > nq on.
func logTermsAbove(n, k int64, q float64) (log, errorBound float64) {
	first, e := logBinomialTerm(n, k, q)
	sum, term, terms := 1.0, 1.0, 0.0
	for j := float64(k); j < float64(n); j++ {
		ratio := (float64(n) - j) / (j + 1) * q / (1 - q)
		term *= ratio
		sum += term
		if terms++; term*ratio < 0x1p-60*sum*(1-ratio) { // ratios fall: the rest is at most term·ratio/(1 − ratio)
			break
		}
	}
	return first + math.Log(sum), e + (6*terms+64)*0x1p-53
}

// logBinomialTerm returns log P[X = k], 0 < q < 1, and a bound of its error, by Loader's formula ("Fast and accurate
// computation of binomial probabilities", 2000): Stirling's series, and the deviance without cancellation.
func logBinomialTerm(n, k int64, q float64) (log, errorBound float64) {
	size, x, rest := float64(n), float64(k), float64(n-k)
	switch k {
	case 0:
		log = size * math.Log1p(-q)
		return log, 0x1p-50 * (1 - log)
	case n:
		log = size * math.Log(q)
		return log, 0x1p-50 * (1 - log)
	}
	excess := math.FMA(-size, q, x) // k − nq
	taken, left := size*q, size*(1-q)
	deviance := taken*entropyGap(excess/taken) + left*entropyGap(-excess/left)
	log = 0.5*math.Log(size/x/rest) - gaussian.LogSqrt2Pi + stirlingGap(size) - stirlingGap(x) - stirlingGap(rest) - deviance
	return log, 0x1p-47 * (2 + math.Abs(log) + deviance)
}

// entropyGap returns (1 + u)·log(1 + u) − u >= 0 for u >= −1.
func entropyGap(u float64) float64 {
	if u <= -1 {
		return 1
	}
	t := math.Log1p(u)
	return t*u - logexp.Expm1MinusArg(t)
}

// stirlingGap returns log n! − (n + ½)·log n + n − ½·log 2π, n >= 1.
func stirlingGap(n float64) float64 {
	if n < 16 {
		log, _ := math.Lgamma(n + 1)
		return log - (n+0.5)*math.Log(n) + n - gaussian.LogSqrt2Pi
	}
	// The next term of the series is below 1e-13/n².
	return (1.0/12 - (1.0/360-(1.0/1260-1.0/1680/n/n)/n/n)/n/n) / n
}
