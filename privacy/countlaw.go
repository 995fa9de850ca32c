package privacy

import (
	"math"
	"slices"
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

// cappedCount is a distribution on 1, 2, …, by its probabilities.
type cappedCount []float64

// cappedNegativeBinomial is the distribution of K given that K <= most, as drawing K again until
// K <= most has it. With n = Γ(k+η)/k! the probability of k is
// proportional to n·(1−γ)^k.
func cappedNegativeBinomial(l negativeBinomial, most int64) cappedCount {
	c := make(cappedCount, most)
	weight, total := 1.0, 0.0 // relative to k = 1
	for i := range c {
		k := float64(i + 1)
		c[i] = weight
		total += weight
		weight *= (1 - l.gamma) * (k + l.eta) / (k + 1)
	}
	for i := range c {
		c[i] /= total
	}
	return c
}

func (c cappedCount) mean() float64 {
	value, _ := c.at(0)
	return value
}

func (c cappedCount) at(v float64) (value, slope float64) {
	z := 1 - v
	for i, probability := range slices.Backward(c) { // Horner's rule for Σ k·c_k·z^{k−1}, and its derivative
		slope = slope*z + value
		value = value*z + float64(i+1)*probability
	}
	return value, slope
}
