package tuning

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/dpareto/dpareto/privacy/internal/profile"
)

// runCountDistribution is the distribution of the number K of candidates that a selection draws, by its
// generating function φ(z) = E z^K. The derivatives of φ are convex and do not fall on [0, 1].
type runCountDistribution interface {
	// mean returns E[K] = φ′(1).
	mean() float64
	// at returns φ′ and φ″ at z = 1 − v, 0 <= z <= 1.
	at(s profile.Split) (value, slope float64)
}

// negativeBinomial is the truncated negative binomial distribution of [RepeatedSelection]:
// φ′(z) = E[K]·(γ/(1 − (1−γ)z))^{η+1}.
type negativeBinomial struct{ eta, gamma float64 }

func (l negativeBinomial) mean() float64 { return meanRuns(l.eta, math.Log(l.gamma)) }

func (l negativeBinomial) at(s profile.Split) (value, slope float64) {
	rest := l.gamma + (1-l.gamma)*s.V
	logRatio := math.Log(rest) - math.Log(l.gamma)
	if s.V < l.gamma {
		logRatio = math.Log1p((1 - l.gamma) * s.V / l.gamma)
	}
	value = l.mean() * math.Exp(-(l.eta+1)*logRatio)
	return value, value * (l.eta + 1) * (1 - l.gamma) / rest
}

// countRounding covers the relative rounding errors of a runCountDistribution. The incomplete beta function has the
// largest, some 5e-11.
const countRounding = 1e-9

// poissonCount is the Poisson distribution with a mean: φ′(z) = E[K]·e^{−E[K](1−z)}.
type poissonCount float64

func (l poissonCount) mean() float64 { return float64(l) }

func (l poissonCount) at(s profile.Split) (value, slope float64) {
	m := float64(l)
	value = m * math.Exp(-m*s.V)
	return value, m * value
}

// binomialCount has n tries of probability p: φ′(z) = np(1 − p(1−z))^{n−1}. With p = 1 it is
// exactly n.
type binomialCount struct {
	n int64
	p float64
}

func (l binomialCount) mean() float64 { return float64(l.n) * l.p }

func (l binomialCount) at(s profile.Split) (value, slope float64) {
	n := float64(l.n)
	logBase := math.Log1p(-l.p * s.V)
	if l.p*s.V > 0.5 {
		logBase = math.Log(1 - l.p + l.p*s.Z)
	}
	power := func(k float64) float64 {
		if k == 0 {
			return 1
		}
		return math.Exp(k * logBase)
	}
	value = n * l.p * power(n-1)
	if l.n > 1 {
		slope = n * (n - 1) * l.p * l.p * power(n-2)
	}
	return value, slope
}

// cappedNegativeBinomial is the distribution of K given that K <= most, as drawing K again until K <= most has
// it. The probability of k is proportional to Γ(k+η)/k!·(1−γ)^k.
type cappedNegativeBinomial struct {
	negativeBinomial

	most int64
	// table holds the probabilities from first on. Those before and after it are below the range of floats.
	table    []float64
	first    int64
	logTotal float64 // of all probabilities, relative to k = 1
}

func newCappedNegativeBinomial(l negativeBinomial, most int64) cappedNegativeBinomial {
	ratio := func(k int64) float64 { return (1 - l.gamma) * ((float64(k) + l.eta) / float64(k+1)) } // of k + 1 to k
	// The probabilities rise up to a peak and fall from there on.
	peak, weight, logPeak := int64(1), 1.0, 0.0
	for ; peak < most && ratio(peak) > 1; peak++ {
		if weight *= ratio(peak); weight > 0x1p500 {
			weight, logPeak = weight*0x1p-500, logPeak+500*math.Ln2
		}
	}
	logPeak += math.Log(weight)
	c := cappedNegativeBinomial{negativeBinomial: l, most: most, first: peak}
	total := 0.0
	for k, w := peak, 1.0; k >= 1 && w > 0; k-- {
		c.table, c.first, total = append(c.table, w), k, total+w
		w /= ratio(k - 1)
	}
	slices.Reverse(c.table)
	for k, w := peak+1, ratio(peak); k <= most && w > 0; k++ {
		c.table, total = append(c.table, w), total+w
		w *= ratio(k)
	}
	for i := range c.table {
		c.table[i] /= total
	}
	c.logTotal = logPeak + math.Log(total)
	return c
}

func (l cappedNegativeBinomial) mean() float64 {
	value, _ := l.at(profile.Split{Z: 1, V: 0})
	return value
}

// Where [cappedNegativeBinomial] may use the incomplete beta function. Beyond a largest η the logarithms in it
// are too large to be precise, and beyond a largest logarithm of a sum of terms the factors of it overflow.
const (
	mostBetaEta = 1000
	mostBetaLog = 700
)

// at uses that k times the probability of k is, with j = k − 1, proportional to a probability of the negative
// binomial distribution of shape η + 1. The sum of these up to j = most − 1 is a regularised incomplete beta
// function.
func (l cappedNegativeBinomial) at(s profile.Split) (value, slope float64) {
	rest := math.Min(1, l.gamma+(1-l.gamma)*s.V)
	if !(l.eta <= mostBetaEta && -(l.eta+2)*math.Log(rest) <= mostBetaLog) {
		return l.sum(s.Z)
	}
	sum := func(shape float64, terms int64) float64 { // of Γ(j+shape)/(j!·Γ(shape))·(1 − rest)^j, j < terms
		return math.Exp(-shape*math.Log(rest)-l.logTotal) * mathext.RegIncBeta(shape, float64(terms), rest)
	}
	value = sum(l.eta+1, l.most)
	if l.most > 1 {
		slope = (1 - l.gamma) * (l.eta + 1) * sum(l.eta+2, l.most-1)
	}
	return value, slope
}

// sum returns φ′ and φ″ at z, term by term, without the terms that are too small to matter.
func (l cappedNegativeBinomial) sum(z float64) (value, slope float64) {
	const negligible = 1e-22 // to the largest term
	last := l.first + int64(len(l.table)) - 1
	ratio := func(k int64) float64 { return z * (1 - l.gamma) * (1 + l.eta/float64(k)) } // of term k + 1 to k
	// The terms rise up to a peak and fall from there on.
	peak := z * (1 - l.gamma) * l.eta / (1 - z*(1-l.gamma))
	from := l.first
	if peak > float64(l.first) {
		from = int64(math.Min(peak, float64(last)))
	}
	to := from
	for w := 1.0; to < last && w > negligible; to++ {
		w *= ratio(to)
	}
	for w := 1.0; from > l.first && w > negligible; from-- {
		w /= ratio(from - 1)
	}
	shift := float64(from - 1)
	scale := math.Pow(z, shift)
	if scale == 0 {
		return 0, 0
	}
	for i, probability := range slices.Backward(l.table[from-l.first : to-l.first+1]) {
		slope = slope*z + value
		value = value*z + (shift+float64(i+1))*probability
	}
	if shift > 0 {
		slope = slope*scale + value*shift*math.Pow(z, shift-1)
	}
	return value * scale, slope
}
