package model

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"

	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/surrogate"
)

// Length scales are expected to be the diagonal of the unit cube, to a factor of e, where
// the values have noise that is known, and only there.
func TestSmoothness(t *testing.T) {
	for name, tc := range map[string]struct {
		variance []float64
		smooth   bool
	}{
		"known":      {[]float64{0.1, 0.2, 0.1}, true},
		"some known": {[]float64{0.1, math.NaN(), 0.1}, true},
		"none":       {[]float64{0, 0, 0}, false},
		"unknown":    {[]float64{math.NaN(), math.NaN(), math.NaN()}, false},
	} {
		data := &observations{tied: []int{0, 1, 2, 2}} // three length scales
		for i, v := range tc.variance {
			x := []float64{0.1, 0.2, 0, 1}
			x[0] += float64(i) / 4
			data.add(i, x, float64(i), v, 1, 0, 0)
		}
		_, o := data.surrogate()
		if o.Prior == nil {
			o.Prior = new(surrogate.DefaultPrior(3))
		}
		diagonal := math.Sqrt(1 + 1 + 1)
		top, slope := o.Prior.Length.LogDensity(math.Log(diagonal))
		longer, _ := o.Prior.Length.LogDensity(math.Log(math.E * diagonal))
		shorter, _ := o.Prior.Length.LogDensity(math.Log(diagonal / math.E))
		smooth := math.Abs(slope) < 1e-12 && math.Abs(top-longer-0.5) < 1e-12 && math.Abs(top-shorter-0.5) < 1e-12
		if smooth != tc.smooth {
			t.Errorf("%s noise: log density %g at the diagonal with slope %g, %g at e times and %g at 1/e times that",
				name, top, slope, longer, shorter)
		}
	}
}

// endingContext ends after a number of questions whether it has.
type endingContext struct {
	context.Context
	left atomic.Int64
	late atomic.Int64 // questions after the end
}

func (c *endingContext) Err() error {
	if c.left.Add(-1) >= 0 {
		return nil
	}
	c.late.Add(1)
	return context.Canceled
}

// A fit asks before every evaluation of the posterior, and not many times after the
// end.
func TestFitStopsSoonAfterCancellation(t *testing.T) {
	p := simulated.TradeOff()
	h := simulated.TradeOffHistory(p, 60, 1, 0.1)
	for _, steps := range []int64{0, 3, 10, 25} {
		ctx := &endingContext{Context: t.Context()}
		ctx.left.Store(steps)
		if _, err := Fit(ctx, p, h, Options{Seed: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("after %d steps: error %v, want the context's", steps, err)
		}
		if late := ctx.late.Load(); late > 20 {
			t.Errorf("after %d steps: %d more", steps, late)
		}
	}
}
