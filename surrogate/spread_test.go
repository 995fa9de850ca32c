package surrogate

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/internal/require"
)

// The density is the marginal likelihood of the posterior that Fit returns, times the priors of what it has
// fitted, in whatever units.
func TestLogPosterior(t *testing.T) {
	for _, unit := range []float64{1, 1e4} {
		for _, fixed := range []*float64{nil, new(0.01 * unit * unit)} {
			obs := checkpoints(1, 20, 2)
			obs.Groups, obs.Positions = nil, nil
			for i := range obs.Y {
				obs.Y[i] = unit * (obs.Y[i] + 3)
			}
			o := Options{FixedNoise: fixed}
			gp, err := Fit(t.Context(), obs, o)
			require.NoError(t, err)
			h := gp.Hyperparameters()
			got, err := LogPosterior(obs, o, h)
			require.NoError(t, err)
			mean, sd := stat.MeanStdDev(obs.Y, nil)
			prior, variance := DefaultPrior(2), sd*sd
			gap := (h.Mean - mean) / sd
			want := gp.LogMarginalLikelihood() - gap*gap/2
			logs := func(density func(float64) (float64, float64), v float64) {
				d, _ := density(math.Log(v))
				want += d
			}
			logs(prior.Signal.LogDensity, h.SignalVariance/variance)
			for _, l := range h.LengthScales {
				logs(prior.Length.LogDensity, l)
			}
			if fixed == nil {
				logs(prior.Noise.LogDensity, h.NoiseVariance/variance)
			}
			if !scalar.EqualWithinRel(got, want, 1e-6) {
				t.Errorf("unit %g, fixed noise %t: %g, want %g", unit, fixed != nil, got, want)
			}
		}
	}
}

// The curvature is the one of the density by another method: second differences of values.
func TestCurvature(t *testing.T) {
	obs, h := checkpoints(1, 20, 2), noisyHyperparameters(2)
	p, err := (Options{NoiseSlopes: true}).problemAt(obs, h)
	require.NoError(t, err)
	theta := p.logs(h)
	p.clamp(theta)
	got, err := p.curvature(theta)
	require.NoError(t, err)
	density := newLogPosterior(p)
	want := mat.NewSymDense(len(theta), nil)
	fd.Hessian(want, func(x []float64) float64 {
		v, err := density.Value(x)
		require.NoError(t, err)
		return v
	}, theta, nil)
	for i := range theta {
		for j := range i + 1 {
			if a, b := got.At(i, j), want.At(i, j); math.Abs(a-b) > 1e-3*(1+math.Abs(b)) {
				t.Errorf("curvature %g in (%d, %d), want %g", a, i, j, b)
			}
		}
	}
}

// Draws scatter around a maximum, more where there are fewer observations, and are the same for the
// same seed.
func TestSpread(t *testing.T) {
	width := make(map[int]float64)
	for _, n := range []int{15, 120} {
		rng := newRand(5)
		obs := Observations{X: randomPoints(rng, n, 2)}
		for _, x := range obs.X {
			obs.Y = append(obs.Y, math.Sin(6*x[0])+0.05*rng.NormFloat64())
		}
		g, err := Fit(t.Context(), obs, Options{Seed: 1})
		require.NoError(t, err)
		h := g.Hyperparameters()
		draws, err := Spread(obs, Options{}, h, 200, newRand(6))
		require.NoError(t, err)
		var logs []float64
		for _, d := range draws {
			require.NoError(t, d.check("draw"))
			logs = append(logs, math.Log(d.LengthScales[0]))
		}
		mean := floats.Sum(logs) / float64(len(logs))
		for _, v := range logs {
			width[n] += (v - mean) * (v - mean) / float64(len(logs))
		}
		if at := math.Log(h.LengthScales[0]); math.Abs(mean-at) > 4*math.Sqrt(width[n]/200)+0.05 {
			t.Errorf("%d observations: mean logarithm %g of the length scale, want about %g", n, mean, at)
		}
		again, err := Spread(obs, Options{}, h, 1, newRand(6))
		if err != nil || again[0].LengthScales[0] != draws[0].LengthScales[0] {
			t.Errorf("%v, %v: another draw with the same seed", again, err)
		}
	}
	if !(width[120] < width[15]) || width[120] == 0 {
		t.Errorf("variances %v of the logarithm by observations", width)
	}
}
