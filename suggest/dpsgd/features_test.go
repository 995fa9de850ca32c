package dpsgd

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/suggest/space"
)

// anyRun draws a run.
func anyRun(t *rapid.T) Run {
	positive := func(name string) float64 { return math.Exp(rapid.Float64Range(-7, 7).Draw(t, name)) }
	return Run{positive("rate"), positive("norm"), positive("noise"), positive("lot"), positive("steps")}
}

// The coordinates are what one gets by following the steps, and they determine the run.
func TestCoordinates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		c := r.Coordinates(false)
		// The noise of one step in a weight is ηκσC/m; T of them add up to √T times as much.
		path, noise := r.Steps*r.LearningRate*r.ClippingNorm, math.Sqrt(r.Steps)*r.LearningRate*r.Noise*r.ClippingNorm/r.LotSize
		for name, pair := range map[string][2]float64{
			"R": {c[LogPath], math.Log(path)}, "ν": {c[LogRatio], math.Log(noise / path)},
			"η": {c[LogPath] - c[LogNorm] - c[LogSteps], math.Log(r.LearningRate)},
			"σ": {c[LogRatio] + c[LogLotSize] + c[LogSteps]/2, math.Log(r.Noise)},
			"C": {c[LogNorm], math.Log(r.ClippingNorm)}, "T": {c[LogSteps], math.Log(r.Steps)}, "m": {c[LogLotSize], math.Log(r.LotSize)},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-9 {
				t.Errorf("%s: %g, want %g", name, pair[0], pair[1])
			}
		}
	})
}

// Where all gradients are clipped, η·s with C/s is the same training, and so is σ·s with m·s but for the lots:
// R and ν do not change. A normalised optimizer does not see C.
func TestInvariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		s := math.Exp(rapid.Float64Range(-2, 2).Draw(t, "s"))
		same := func(name string, a, b [Coordinates]float64) {
			if math.Abs(a[LogPath]-b[LogPath]) > 1e-9 || math.Abs(a[LogRatio]-b[LogRatio]) > 1e-9 {
				t.Errorf("%s: %v and %v", name, a, b)
			}
		}
		clipped, scaled, other := r, r, r
		clipped.LearningRate, clipped.ClippingNorm = r.LearningRate*s, r.ClippingNorm/s
		same("clipped", r.Coordinates(false), clipped.Coordinates(false))
		scaled.Noise, scaled.LotSize = r.Noise*s, r.LotSize*s
		same("scaled", r.Coordinates(false), scaled.Coordinates(false))
		other.ClippingNorm *= s
		same("normalised", r.Coordinates(true), other.Coordinates(true))
	})
}

// Features are finite also where no run can be.
func TestFeaturesAreFinite(t *testing.T) {
	f := Features(func(q space.Point) Run { return Run{q[0], q[0], q[0], q[0], q[0]} }, false, []int{0}, []int{0})
	dst := make([]float64, f.Count)
	for _, v := range []float64{0, -1, math.NaN(), math.Inf(1), 1} {
		f.Evaluate(dst, space.Point{v})
		for k, x := range dst {
			if math.IsNaN(x) || math.IsInf(x, 0) || (v != 1) != (x == 0.5) {
				t.Errorf("feature %d at %g: %g", k, v, x)
			}
		}
	}
}
