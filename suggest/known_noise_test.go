package suggest

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/suggest/space"
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
			data.add(x, float64(i), v, 1, 0, 0)
		}
		_, o := data.surrogate()
		if o.Prior == nil {
			o.Prior = surrogate.DefaultPrior(3)
		}
		diagonal := math.Sqrt(1 + 1 + 1)
		top, slope := o.Prior.LengthScale(math.Log(diagonal))
		longer, _ := o.Prior.LengthScale(math.Log(math.E * diagonal))
		shorter, _ := o.Prior.LengthScale(math.Log(diagonal / math.E))
		smooth := math.Abs(slope) < 1e-12 && math.Abs(top-longer-0.5) < 1e-12 && math.Abs(top-shorter-0.5) < 1e-12
		if smooth != tc.smooth {
			t.Errorf("%s noise: log density %g at the diagonal with slope %g, %g at e times and %g at 1/e times that",
				name, top, slope, longer, shorter)
		}
	}
}

// Configurations are tried again where noise is learned, and never where it is known.
func TestNoReplicateWithKnownNoise(t *testing.T) {
	const sd = 1
	again := map[bool]int{}
	for seed := range uint64(8) {
		for _, known := range []bool{false, true} {
			p := tradeOff()
			p.Space.Parameters[2] = space.Parameter{Name: "lot", Kind: space.Discrete, Values: []float64{16}}
			p.Space.Parameters[3] = space.Parameter{Name: "kind", Kind: space.Discrete, Values: []float64{1}}
			h := noisyHistory(p, 60, seed, sd)
			for i := range h.Evaluations {
				if e := &h.Evaluations[i]; known {
					slope := e.Values[1] * (1 - e.Values[1]) // the noise is that of the logit
					e.StdErrors = []float64{0, sd * slope}
				}
			}
			got, err := NewDefault(EngineOptions{}).Suggest(t.Context(), p, h, Request{Count: 4, Seed: seed, Number: 61})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range got {
				if s.Replicate {
					again[known]++
				}
			}
		}
	}
	if again[false] == 0 || again[true] != 0 {
		t.Errorf("%d replicates with learned noise and %d with known noise", again[false], again[true])
	}
}
