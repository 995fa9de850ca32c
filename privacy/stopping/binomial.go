package stopping

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/tuning"
)

// Binomial is the number of successes in a number of independent tries. With Success = 1 it is
// exactly Tries. K can be 0 otherwise: then only this fact is released.
type Binomial struct {
	Tries   int64   // >= 1
	Success float64 // probability of each, in (0, 1]
}

// Validate reports the fields "tries" and "success".
func (b Binomial) Validate() error {
	var errs []error
	if b.Tries < 1 {
		errs = append(errs, privacy.FieldErrorf("tries", "must be at least 1, is %d", b.Tries))
	}
	if !(b.Success > 0 && b.Success <= 1) {
		errs = append(errs, privacy.FieldErrorf("success", "must be above 0 and at most 1, is %g", b.Success))
	}
	return errors.Join(errs...)
}

// MeanRuns returns the tries times their probability.
func (b Binomial) MeanRuns() float64 { return float64(b.Tries) * b.Success }

// Probability returns C(n, k)·p^k·(1−p)^{n−k}.
func (b Binomial) Probability(k int64) float64 {
	if k < 0 || k > b.Tries {
		return 0
	}
	if b.Success == 1 {
		if k == b.Tries {
			return 1
		}
		return 0
	}
	n, x := float64(b.Tries), float64(k)
	all, _ := math.Lgamma(n + 1)
	chosen, _ := math.Lgamma(x + 1)
	rest, _ := math.Lgamma(n - x + 1)
	return math.Exp(all - chosen - rest + x*math.Log(b.Success) + (n-x)*math.Log1p(-b.Success))
}

// ContainsTop returns 1 − (1 − qp)^n.
func (b Binomial) ContainsTop(q float64) float64 {
	checkShare(q)
	return -math.Expm1(float64(b.Tries) * math.Log1p(-q*b.Success))
}

// Draw implements [Distribution].
func (b Binomial) Draw(src *noise.Source) (int64, error) {
	if err := b.Validate(); err != nil {
		return 0, err
	}
	if b.Success == 1 {
		return b.Tries, nil
	}
	if b.Tries > MaxMean {
		return 0, privacy.FieldErrorf("tries", "must be at most %g to draw candidates, is %d", float64(MaxMean), b.Tries)
	}
	var k int64
	for range b.Tries {
		if src.BernoulliFloat64(b.Success) {
			k++
		}
	}
	return k, nil
}

// Mechanism returns a [tuning.BinomialSelection].
func (b Binomial) Mechanism(base privacy.Mechanism, steps int64) privacy.Mechanism {
	return tuning.BinomialSelection{Base: base, Steps: steps, Tries: b.Tries, Probability: b.Success}
}
