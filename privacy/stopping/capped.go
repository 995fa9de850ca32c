package stopping

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/tuning"
)

// Capped is a [TruncatedNegativeBinomial] number of candidates given that it is at most Most.
type Capped struct {
	Of   TruncatedNegativeBinomial
	Most int64 // in [1, tuning.MaxMostRuns]
}

// leastLikely is the least P(K <= Most) before the condition. Below it, drawing would take long.
const leastLikely = 0.01

// Validate reports the fields "eta", "gamma" and "most", which must not be improbably small.
func (c Capped) Validate() error {
	if err := c.Of.Validate(); err != nil {
		return err
	}
	if c.Most < 1 || c.Most > tuning.MaxMostRuns {
		return privacy.FieldErrorf("most", "must be in [1, %d], is %d", tuning.MaxMostRuns, c.Most)
	}
	if likely := c.condition(); likely < leastLikely {
		return privacy.FieldErrorf("most", "must be larger: the number of candidates is at most %d with a probability of only %.2g, which must be at least %g", c.Most, likely, leastLikely)
	}
	return nil
}

// condition returns P(K <= Most) without the condition.
func (c Capped) condition() float64 {
	sum := 0.0
	for k := c.Most; k >= 1; k-- {
		sum += c.Of.Probability(k)
	}
	return sum
}

// MeanRuns returns E[K | K <= Most].
func (c Capped) MeanRuns() float64 {
	return tuning.CappedSelection{Eta: c.Of.Eta, Gamma: c.Of.Gamma, MostRuns: c.Most}.MeanRuns()
}

// Probability returns P(K = k | K <= Most).
func (c Capped) Probability(k int64) float64 {
	if k > c.Most {
		return 0
	}
	return c.Of.Probability(k) / c.condition()
}

// ContainsTop implements [Distribution].
func (c Capped) ContainsTop(q float64) float64 {
	checkShare(q)
	sum := 0.0
	for k := c.Most; k >= 1; k-- {
		sum -= c.Of.Probability(k) * math.Expm1(float64(k)*math.Log1p(-q))
	}
	return math.Min(1, sum/c.condition())
}

// Draw implements [Distribution]: it draws again until the number is at most Most.
func (c Capped) Draw(src *noise.Source) (int64, error) {
	if err := errors.Join(c.Validate(), c.Of.drawable()); err != nil {
		return 0, err
	}
	return c.Of.draw(src, c.Most), nil
}

// Mechanism returns a [tuning.CappedSelection].
func (c Capped) Mechanism(base privacy.Mechanism, steps int64) privacy.Mechanism {
	return tuning.CappedSelection{Base: base, Steps: steps, Eta: c.Of.Eta, Gamma: c.Of.Gamma, MostRuns: c.Most}
}
