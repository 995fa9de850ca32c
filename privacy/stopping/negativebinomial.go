package stopping

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/tuning"
)

// TruncatedNegativeBinomial is the negative binomial distribution without 0 (Papernot and
// Steinke, 2022, Definition 1),
//
//	P(K = k) = (1−γ)^k / (γ^−η − 1) · Π_{l=0}^{k−1} (l+η)/(l+1),  k >= 1,
//
// and for η = 0 its limit (1−γ)^k / (k·log 1/γ), the logarithmic distribution; η = 1 is the
// geometric distribution. A base that is pure ε-DP gives a search that is (2+η)ε-DP.
type TruncatedNegativeBinomial struct {
	Eta   float64 // η > −1, finite
	Gamma float64 // 0 < γ < 1; a smaller one means more candidates
}

// nearZero is the |η·log γ| below which formulas for η = 0 are right to rounding.
const nearZero = 1e-16

// Validate reports the fields "eta" and "gamma".
func (n TruncatedNegativeBinomial) Validate() error {
	var errs []error
	if !(n.Eta > -1) || math.IsInf(n.Eta, 1) {
		errs = append(errs, privacy.FieldErrorf("eta", "must be above -1 and finite, is %g", n.Eta))
	}
	if !(n.Gamma > 0 && n.Gamma < 1) {
		errs = append(errs, privacy.FieldErrorf("gamma", "must lie strictly between 0 and 1, is %g", n.Gamma))
	}
	return errors.Join(errs...)
}

// MeanRuns returns E[K] = η(1−γ) / (γ(1−γ^η)), and (1/γ − 1)/log(1/γ) for η = 0.
func (n TruncatedNegativeBinomial) MeanRuns() float64 {
	return tuning.RepeatedSelection{Eta: n.Eta, Gamma: n.Gamma}.MeanRuns()
}

// Probability returns the formula above.
func (n TruncatedNegativeBinomial) Probability(k int64) float64 {
	if k < 1 {
		return 0
	}
	// η·Γ(k+η)/Γ(1+η)/k! is the product; η/(γ^−η − 1) has no singularity at 0.
	rising, _ := math.Lgamma(float64(k) + n.Eta)
	first, _ := math.Lgamma(1 + n.Eta)
	factorial, _ := math.Lgamma(float64(k) + 1)
	return math.Exp(float64(k)*math.Log1p(-n.Gamma) + rising - first - factorial - n.logNorm())
}

// logNorm returns log((γ^−η − 1)/η).
func (n TruncatedNegativeBinomial) logNorm() float64 {
	x := -n.Eta * math.Log(n.Gamma)
	switch {
	case math.Abs(x) < nearZero:
		return math.Log(-math.Log(n.Gamma))
	case x > 1:
		return x + math.Log(-math.Expm1(-x)/n.Eta) // without overflow
	default:
		return math.Log(math.Expm1(x) / n.Eta)
	}
}

// ContainsTop returns, with D = log(1 + q(1−γ)/γ),
//
//	1 − E[(1−q)^K] = (1 − e^−ηD) / (1 − γ^η),  and D/log(1/γ) for η = 0.
func (n TruncatedNegativeBinomial) ContainsTop(q float64) float64 {
	checkShare(q)
	d, all := math.Log1p(q*(1-n.Gamma)/n.Gamma), -math.Log(n.Gamma)
	if math.Abs(n.Eta*all) < nearZero {
		return d / all
	}
	return min(1, math.Expm1(-n.Eta*d)/math.Expm1(-n.Eta*all))
}

// Draw implements [Distribution].
func (n TruncatedNegativeBinomial) Draw(src *noise.Source) (int64, error) {
	if err := n.drawable(); err != nil {
		return 0, err
	}
	return n.draw(src, math.MaxInt64), nil
}

// drawable reports why no number can be drawn.
func (n TruncatedNegativeBinomial) drawable() error {
	if err := n.Validate(); err != nil {
		return err
	}
	if mean := n.MeanRuns(); !(mean <= MaxMean) {
		return privacy.FieldErrorf("gamma", "the mean must be at most %g to draw candidates, is %g", float64(MaxMean), mean)
	}
	if n.Eta > MaxMean {
		return privacy.FieldErrorf("eta", "must be at most %g to draw candidates, is %g", float64(MaxMean), n.Eta)
	}
	return nil
}

// draw draws until the number is at most most.
func (n TruncatedNegativeBinomial) draw(src *noise.Source, most int64) int64 {
	from := n.fromTrials
	if n.Eta < -0.1 {
		from = n.fromSibuya
	}
	for {
		if k, ok := from(src, most); ok {
			return k
		}
	}
}

// fromTrials counts the failures in trials of success probability γ up to success number
// r = ⌈η⌉, at least 1, given that there is one: k with probability
// ∝ (1−γ)^k·Π_{l<k}(l+r)/(l+1). Every failure after the first is kept with probability
// (l+η)/(l+r), l being those before; ok is false if one is not.
func (n TruncatedNegativeBinomial) fromTrials(src *noise.Source, most int64) (k int64, ok bool) {
	r := max(1, math.Ceil(n.Eta))
	needed := uint64(r)
	// The first failure comes after j < r successes with probability ∝ γ^j.
	successes := src.Uint64N(needed)
	for range successes {
		if !src.BernoulliFloat64(n.Gamma) {
			return 0, false
		}
	}
	for k = 1; k <= most; {
		if src.BernoulliFloat64(n.Gamma) {
			if successes++; successes == needed {
				return k, true
			}
			continue
		}
		// (l+η)/(l+r) = (l+r−1 + part)/(l+r) for 0 <= part = η−r+1 <= 1, which is exact, and
		// (l−1 + 1−|η|)/(l+1) for −1 < η < 0, r = 1.
		whole, part := uint64(k)+needed-1, n.Eta-(r-1)
		if n.Eta < 0 {
			whole--
		}
		switch u := src.Uint64N(uint64(k) + needed); {
		case u > whole:
			return 0, false
		case u == whole && n.Eta >= 0 && !src.BernoulliFloat64(part):
			return 0, false
		case u == whole && n.Eta < 0 && src.BernoulliFloat64(-n.Eta):
			return 0, false
		}
		k++
	}
	return 0, false
}

// fromSibuya draws from Sibuya's distribution (γ = 0), in which the number is k with
// probability |η|/k if it is not below; each step beyond 1 is kept with probability 1−γ. It
// wastes little unless η is close to 0.
func (n TruncatedNegativeBinomial) fromSibuya(src *noise.Source, most int64) (k int64, ok bool) {
	for k = 1; k <= most; k++ {
		if src.Uint64N(uint64(k)) == 0 && src.BernoulliFloat64(-n.Eta) {
			return k, true
		}
		if src.BernoulliFloat64(n.Gamma) {
			return 0, false
		}
	}
	return 0, false
}

// Mechanism returns a [tuning.RepeatedSelection].
func (n TruncatedNegativeBinomial) Mechanism(base privacy.Mechanism, steps int64) privacy.Mechanism {
	return tuning.RepeatedSelection{Base: base, Steps: steps, Eta: n.Eta, Gamma: n.Gamma}
}
