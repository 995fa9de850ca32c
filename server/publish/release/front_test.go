package release

import (
	"math"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/history"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// The noise of 272 values, σ = √N/(mμ), against an independent computation of μ from the
// exact privacy profile of the Gaussian mechanism (Balle and Wang 2018) in 50 digits.
func TestFrontNoise(t *testing.T) {
	for _, tt := range []struct {
		records int64
		epsilon float64
		want    float64
	}{
		{1605, 1, 0.043411}, {1605, 3, 0.015864}, {10000, 1, 0.006968}, {10000, 3, 0.002546}, {10000, 10, 0.000892},
		{16281, 1, 0.004280}, {16281, 3, 0.001564}, {16281, 10, 0.000548}, {60000, 1, 0.001161},
	} {
		got, err := frontNoise(272, tt.records, tt.epsilon, 1e-6)
		if err != nil || math.Abs(got-tt.want) > 0.51e-6 {
			t.Errorf("%d records, ε = %g: %.7f (%v), want %g", tt.records, tt.epsilon, got, err, tt.want)
		}
	}
	if _, err := frontNoise(272, 1000, 1, 1e-30); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a δ below that of the grid: %v", err)
	}
}

// measured returns results of one configuration, whose only objective has been measured once.
func measured(goal suggest.Goal, value float64) (*fixedResults, *front.Configuration) {
	objective := suggest.Objective{Goal: goal}
	compiled := &spec.Study{Problem: &suggest.Problem{Objectives: []suggest.Objective{objective}}}
	results := &front.Results{Data: &front.Data{Compiled: compiled, Trials: history.Trials{Evaluations: []suggest.Evaluation{{Runs: 1, Values: []float64{value}}}}}}
	return &fixedResults{Results: results, records: 100}, &front.Configuration{Point: space.Point{0}, Measurements: []int{0}}
}

// Measured values get noise of the declared standard deviation, after they are clipped: a value
// beyond [0, 1] is released as one at the end would be.
func TestNoiseOfValues(t *testing.T) {
	const sigma, n = 0.1, 4000
	for value, end := range map[float64]float64{0.5: 0.5, 1.7: 1, -3: 0, math.NaN(): 0, math.Inf(1): 1} {
		f, c := measured(suggest.Minimize, value)
		entropy := noise.Seeded(1)
		squares, moved := 0.0, 0
		for range n {
			e := f.noisy(c, entropy, sigma)
			if e.StdErrors[0] != sigma || !(e.Values[0] >= 0 && e.Values[0] <= 1) {
				t.Fatalf("%g is released as %g ± %g", value, e.Values[0], e.StdErrors[0])
			}
			if e.Values[0] != end {
				moved++
			}
			squares += (e.Values[0] - end) * (e.Values[0] - end)
		}
		share := 1.0 // of draws that clipping afterwards leaves as they are
		if end != 0.5 {
			share = 0.5
		}
		// The mean square has a relative standard error below √(5/4000) = 0.036.
		if got := squares / (share * n * sigma * sigma); math.Abs(got-1) > 0.15 || math.Abs(float64(moved)/(share*n)-1) > 0.1 {
			t.Errorf("%g: noise of %.3f times the declared variance in %d of %d draws", value, got, moved, n)
		}
	}
}

// Utilities are in [0, 1], whatever was measured.
func TestUtilities(t *testing.T) {
	for value, want := range map[float64]float64{0.25: 0.25, 1.7: 1, -3: 0, math.NaN(): 0, math.Inf(1): 1} {
		f, c := measured(suggest.Maximize, value)
		if got := f.utility(c, 0); got != want {
			t.Errorf("maximize %g: utility %g, want %g", value, got, want)
		}
		f, c = measured(suggest.Minimize, value)
		if got := f.utility(c, 0); got != 1-want {
			t.Errorf("minimize %g: utility %g, want %g", value, got, 1-want)
		}
	}
}
