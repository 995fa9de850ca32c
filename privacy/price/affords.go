package price

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/meter"
)

// affordsWork bounds the operations of finding the runs that one way affords, to some seconds. Runs of
// few steps with little noise take longer.
const affordsWork = 1 << 27

// affords returns the largest number of runs that cost at most a budget, to 2 % from below, with three
// digits at most, or nil where that takes too long to find.
func (w way) affords(pause func() error, budget float64) (*int64, error) {
	accountant := privacy.Within(privacy.Tightest{UpperOnly: true}, &meter.Work{Limit: affordsWork, Pause: pause})
	runs, err := w.largest(budget, func(runs int64) (float64, error) {
		g, err := w.training(accountant, runs)
		return g.Epsilon, err
	})
	if _, long := errors.AsType[*meter.LimitError](err); long {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &runs, nil
}

func (w way) largest(budget float64, epsilon func(runs int64) (float64, error)) (int64, error) {
	low, high := w.least, w.most
	atLow, err := epsilon(low)
	if err != nil || !(atLow <= budget) {
		return 0, err
	}
	atHigh, err := epsilon(high)
	if err != nil || atHigh <= budget {
		return high, err
	}
	for i := 0; high-low > max(1, low/100); i++ {
		// The logarithm of ε is not far from linear in the logarithm of the runs.
		share := math.Log(budget/atLow) / math.Log(atHigh/atLow)
		if i%3 == 2 || !(share >= 0 && share <= 1) {
			share = 0.5
		}
		middle := int64(math.Round(math.Exp(math.Log(float64(low)) + share*math.Log(float64(high)/float64(low)))))
		middle = min(max(middle, low+1), high-1)
		at, err := epsilon(middle)
		if err != nil {
			return 0, err
		}
		if at <= budget {
			low, atLow = middle, at
		} else {
			high, atHigh = middle, at
		}
	}
	return threeDigits(low), nil
}

// threeDigits rounds n >= 0 down to three significant digits.
func threeDigits(n int64) int64 {
	unit := int64(1)
	for n/unit >= 1000 {
		unit *= 10
	}
	return n / unit * unit
}
