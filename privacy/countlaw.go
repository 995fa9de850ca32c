package privacy

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// countLaw is the distribution of the number K of candidates that a selection draws, by its
// generating function φ(z) = E z^K. The derivatives of φ are convex and do not fall on [0, 1].
type countLaw interface {
	// mean returns E[K] = φ′(1).
	mean() float64
	// at returns φ′ and φ″ at 1 − v, 0 <= v <= 1.
	at(v float64) (value, slope float64)
}

// negativeBinomial is the truncated negative binomial distribution of [RepeatedSelection]:
// φ′(z) = E[K]·(γ/(1 − (1−γ)z))^{η+1}.
type negativeBinomial struct{ eta, gamma float64 }

func (l negativeBinomial) mean() float64 { return meanRuns(l.eta, math.Log(l.gamma)) }

func (l negativeBinomial) at(v float64) (value, slope float64) {
	rest := l.gamma + (1-l.gamma)*v
	value = l.mean() * math.Pow(l.gamma/rest, l.eta+1)
	return value, value * (l.eta + 1) * (1 - l.gamma) / rest
}

// poissonCount is the Poisson distribution with a mean: φ′(z) = E[K]·e^{−E[K](1−z)}.
type poissonCount float64

func (l poissonCount) mean() float64 { return float64(l) }

func (l poissonCount) at(v float64) (value, slope float64) {
	m := float64(l)
	value = m * math.Exp(-m*v)
	return value, m * value
}

// binomialCount has n tries of probability p: φ′(z) = np(1 − p(1−z))^{n−1}. With p = 1 it is
// exactly n.
type binomialCount struct {
	n int64
	p float64
}

func (l binomialCount) mean() float64 { return float64(l.n) * l.p }

func (l binomialCount) at(v float64) (value, slope float64) {
	n := float64(l.n)
	base := 1 - l.p*v
	value = n * l.p * math.Pow(base, n-1)
	if l.n > 1 {
		slope = n * (n - 1) * l.p * l.p * math.Pow(base, n-2)
	}
	return value, slope
}

// cappedNegativeBinomial is the distribution of K given that K <= most, as drawing K again until
// K <= most has it. The probability of k is proportional to Γ(k+η)/k!·(1−γ)^k, so that k times it is, with
// j = k − 1, proportional to a probability of the negative binomial distribution of shape η + 1. The sum of
// these up to j = most − 1 is a regularised incomplete beta function.
type cappedNegativeBinomial struct {
	negativeBinomial

	most     int64
	logTotal float64 // of the probabilities, relative to k = 1
}

func newCappedNegativeBinomial(l negativeBinomial, most int64) cappedNegativeBinomial {
	weight, total := 1.0, 0.0
	for k := 1.0; k <= float64(most); k++ {
		total += weight
		weight *= (1 - l.gamma) * (k + l.eta) / (k + 1)
	}
	return cappedNegativeBinomial{l, most, math.Log(total)}
}

func (l cappedNegativeBinomial) mean() float64 {
	value, _ := l.at(0)
	return value
}

func (l cappedNegativeBinomial) at(v float64) (value, slope float64) {
	rest := math.Min(1, l.gamma+(1-l.gamma)*v)
	sum := func(shape float64, terms int64) float64 { // of Γ(j+shape)/(j!·Γ(shape))·(1 − rest)^j, j < terms
		return math.Exp(-shape*math.Log(rest)-l.logTotal) * mathext.RegIncBeta(shape, float64(terms), rest)
	}
	value = sum(l.eta+1, l.most)
	if l.most > 1 {
		slope = (1 - l.gamma) * (l.eta + 1) * sum(l.eta+2, l.most-1)
	}
	return value, slope
}
