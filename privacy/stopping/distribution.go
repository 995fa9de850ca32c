package stopping

import (
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/tuning"
)

// Distribution is the distribution of the number of candidates K: a
// [TruncatedNegativeBinomial], [Capped], [Poisson] or [Binomial]. Methods other than Validate and Draw are for valid
// parameters.
type Distribution interface {
	// Validate reports parameters outside of their domains as privacy.FieldErrors.
	Validate() error
	// MeanRuns returns E[K].
	MeanRuns() float64
	// Probability returns P(K = k), 0 outside of the range of K, to a relative
	// precision of about 1e-15·k·log k.
	Probability(k int64) float64
	// ContainsTop returns the probability that one of the K candidates is among the best
	// share q of all, 0 <= q <= 1, that is 1 − E[(1−q)^K]. It panics for another q.
	ContainsTop(q float64) float64
	// Draw returns K with exactly these probabilities, given uniform bits. It returns the
	// errors of Validate, and a privacy.FieldError if E[K], or the shape, is above [MaxMean].
	// It takes about a microsecond times E[K] or K.
	Draw(src *noise.Source) (int64, error)
	// Mechanism returns the search to account, when every candidate is trained and
	// scored by steps runs of base.
	Mechanism(base privacy.Mechanism, steps int64) privacy.Mechanism
}

// MaxMean is the largest E[K] that [Distribution.Draw] accepts.
const MaxMean = 1e7

// ByMean returns the truncated negative binomial distribution of shape eta with the largest γ
// for which E[K] >= mean. It returns the errors of [tuning.SelectionGamma].
func ByMean(eta, mean float64) (TruncatedNegativeBinomial, error) {
	gamma, err := tuning.SelectionGamma(eta, mean)
	if err != nil {
		return TruncatedNegativeBinomial{}, err
	}
	return TruncatedNegativeBinomial{Eta: eta, Gamma: gamma}, nil
}

func checkShare(q float64) {
	if !(q >= 0 && q <= 1) {
		panic("stopping: share outside [0, 1]")
	}
}

// Poisson is the Poisson distribution (Papernot and Steinke, 2022, Theorem 6). K can be 0,
// with probability e^−Mean: then only this fact is released.
type Poisson struct {
	Mean float64 // E[K] > 0, finite
}

// Validate reports the field "mean".
func (p Poisson) Validate() error {
	if !(p.Mean > 0) || math.IsInf(p.Mean, 1) {
		return privacy.FieldErrorf("mean", "must be positive and finite, is %g", p.Mean)
	}
	return nil
}

// MeanRuns returns p.Mean.
func (p Poisson) MeanRuns() float64 { return p.Mean }

// Probability returns e^−μ·μ^k/k! for k >= 0.
func (p Poisson) Probability(k int64) float64 {
	if k < 0 {
		return 0
	}
	logFactorial, _ := math.Lgamma(float64(k) + 1)
	return math.Exp(float64(k)*math.Log(p.Mean) - p.Mean - logFactorial)
}

// ContainsTop returns 1 − e^−μq.
func (p Poisson) ContainsTop(q float64) float64 {
	checkShare(q)
	return -math.Expm1(-p.Mean * q)
}

// Draw implements [Distribution]: a Poisson number is the sum of independent ones with mean ½
// and one with the rest.
func (p Poisson) Draw(src *noise.Source) (int64, error) {
	if err := p.Validate(); err != nil {
		return 0, err
	}
	if p.Mean > MaxMean {
		return 0, privacy.FieldErrorf("mean", "must be at most %g to draw candidates, is %g", float64(MaxMean), p.Mean)
	}
	var k int64
	rest := p.Mean
	for ; rest > 0.5; rest -= 0.5 { // exact: multiples of the last digit of the mean
		k += smallPoisson(src, 0.5)
	}
	return k + smallPoisson(src, rest), nil
}

// smallPoisson draws from the Poisson distribution with 0 <= mean <= ½: a geometric number, k
// with probability ∝ mean^k, is kept with probability 1/k!.
func smallPoisson(src *noise.Source, mean float64) int64 {
	for k := int64(0); ; k++ {
		if !src.BernoulliFloat64(mean) {
			return k
		}
		if src.Uint64N(uint64(k)+1) != 0 {
			k = -1 // begin again
		}
	}
}

// Mechanism returns a [tuning.PoissonSelection].
func (p Poisson) Mechanism(base privacy.Mechanism, steps int64) privacy.Mechanism {
	return tuning.PoissonSelection{Base: base, Steps: steps, Mean: p.Mean}
}
