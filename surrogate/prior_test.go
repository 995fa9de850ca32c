package surrogate

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/stat/distuv"
)

func TestLogNormalPrior(t *testing.T) {
	prior := LogNormalPrior{
		Signal: Normal{Mean: 0.5, StdDev: 2},
		Length: Normal{Mean: -1, StdDev: 0.7},
		Noise:  Normal{Mean: -5, StdDev: 3},
		Run:    Normal{Mean: -6, StdDev: 1.5},
	}
	tests := []struct {
		name    string
		density func(float64) (float64, float64)
		want    distuv.Normal
	}{
		{"signal variance", prior.Signal.LogDensity, distuv.Normal{Mu: 0.5, Sigma: 2}},
		{"length scale", prior.Length.LogDensity, distuv.Normal{Mu: -1, Sigma: 0.7}},
		{"noise variance", prior.Noise.LogDensity, distuv.Normal{Mu: -5, Sigma: 3}},
		{"run variance", prior.Run.LogDensity, distuv.Normal{Mu: -6, Sigma: 1.5}},
	}
	for _, test := range tests {
		mode, _ := test.density(test.want.Mu)
		for _, v := range []float64{-12, -5, -1, 0.2, 2} {
			got, slope := test.density(v)
			want := test.want.LogProb(v) - test.want.LogProb(test.want.Mu)
			if !scalar.EqualWithinAbsOrRel(got-mode, want, 1e-12, 1e-12) {
				t.Errorf("%s: log density at %v is %v below the mode, want %v", test.name, v, mode-got, -want)
			}
			wantSlope := fd.Derivative(test.want.LogProb, v, &fd.Settings{Formula: fd.Central})
			if !scalar.EqualWithinAbsOrRel(slope, wantSlope, 1e-7, 1e-7) {
				t.Errorf("%s: derivative at %v is %v, want %v", test.name, v, slope, wantSlope)
			}
		}
	}
}

// The default length scale prior must have its mode over log ℓ where the
// log-normal density over ℓ of Hvarfner et al. (2024) has its mode over ℓ,
// and the same relative heights.
func TestDefaultPriorLengthScale(t *testing.T) {
	for _, d := range []int{1, 2, 5, 20} {
		prior := DefaultPrior(d)
		reference := distuv.LogNormal{Mu: math.Sqrt2 + math.Log(float64(d))/2, Sigma: math.Sqrt(3)}
		mode := reference.Mode()
		top, slope := prior.Length.LogDensity(math.Log(mode))
		if math.Abs(slope) > 1e-12 {
			t.Errorf("d = %d: slope %v at the mode", d, slope)
		}
		for _, l := range []float64{0.05, 0.3, 2, 10} {
			got, _ := prior.Length.LogDensity(math.Log(l))
			want := reference.LogProb(l) - reference.LogProb(mode)
			if !scalar.EqualWithinAbs(got-top, want, 1e-12) {
				t.Errorf("d = %d: log density at ℓ = %v relative to the mode is %v, want %v", d, l, got-top, want)
			}
		}
	}
}
