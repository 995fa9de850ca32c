package surrogate

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/floats/scalar"

	"github.com/dpareto/dpareto/internal/require"
)

// basedGP returns a posterior on a base that has a base itself, and the two.
func basedGP(t *testing.T, obs Observations, d int) (g, base, first *GP) {
	t.Helper()
	h := someHyperparameters(d)
	first = mustNew(t, SquaredExponential{}, h, randomObservations(newRand(1), 20, d))
	var err error
	h.BaseWeight = 0.5
	base, err = NewWithBase(Matern52{}, h, randomObservations(newRand(2), 30, d), first)
	require.NoError(t, err)
	h = noisyHyperparameters(d)
	h.BaseWeight = 0.8
	g, err = NewWithBase(nil, h, obs, base)
	require.NoError(t, err)
	return g, base, first
}

// A base is the same as subtracting its mean from the outputs, and adding it to
// the predictions.
func TestBaseMatchesResiduals(t *testing.T) {
	const d, tol = 2, 1e-9
	obs := checkpoints(3, 25, d)
	g, base, first := basedGP(t, obs, d)
	rest := obs
	rest.Y = nil
	for i, x := range obs.X {
		mean, _ := base.Predict(x)
		rest.Y = append(rest.Y, obs.Y[i]-0.8*mean)
	}
	want := newNaive(t, Matern52{}, noisyHyperparameters(d), rest)
	if got, want := g.LogMarginalLikelihood(), want.logMarginalLikelihood(); !scalar.EqualWithinAbsOrRel(got, want, tol, tol) {
		t.Errorf("log marginal likelihood %v, want %v", got, want)
	}
	x := randomPoints(newRand(4), 6, d)
	wantMean, wantCov := want.joint(x)
	for a, p := range x {
		baseMean, _ := base.Predict(p)
		wantMean[a] += 0.8 * baseMean
		mean, variance := g.Predict(p)
		if !scalar.EqualWithinAbs(mean, wantMean[a], tol) || !scalar.EqualWithinAbs(variance, wantCov.At(a, a), tol) {
			t.Errorf("at %v: mean %v, variance %v, want %v, %v", p, mean, variance, wantMean[a], wantCov.At(a, a))
		}
	}

	// Without its observations the base of the base is all there is.
	h := someHyperparameters(d)
	h.BaseWeight = 1
	empty, err := NewWithBase(nil, h, Observations{}, first)
	require.NoError(t, err)
	firstMean, _ := first.Predict(x[0])
	if mean, variance := empty.Predict(x[0]); !scalar.EqualWithinAbs(mean, h.Mean+firstMean, tol) || variance != h.SignalVariance {
		t.Errorf("mean %v, variance %v, want %v, %v", mean, variance, h.Mean+firstMean, h.SignalVariance)
	}
}

func TestBaseGradients(t *testing.T) {
	const d, b, samples = 3, 4, 3
	g, _, _ := basedGP(t, checkpoints(5, 25, d), d)
	rng := newRand(6)
	points := randomPoints(rng, b, d)
	c := mustCondition(t, g, points, randomNormals(rng, samples, b))
	weights := []float64{0.7, -1.1, 2}
	settings := &fd.Settings{Formula: fd.Central, Step: 1e-5}
	dMean, dVariance, grad := make([]float64, d), make([]float64, d), make([]float64, d)
	means, all := make([]float64, samples), make([]float64, samples)
	variances := make([]float64, 1)
	var p Partial
	for _, x := range randomPoints(rng, 5, d) {
		g.PredictGradient(dMean, dVariance, x)
		want := fd.Gradient(nil, func(x []float64) float64 { mean, _ := g.Predict(x); return mean }, x, settings)
		if !floats.EqualApprox(dMean, want, 1e-5) {
			t.Errorf("at %v: gradient of the mean %v, finite difference %v", x, dMean, want)
		}
		variance := c.PredictPartial(&p, means, x)
		p.Gradient(grad, weights, -0.4)
		want = fd.Gradient(nil, func(x []float64) float64 {
			v := c.Predict(all, x)
			return floats.Dot(weights, all) - 0.4*v
		}, x, settings)
		if !floats.EqualApprox(grad, want, 1e-5) {
			t.Errorf("at %v: gradient %v, finite difference %v", x, grad, want)
		}
		c.PredictBatch(all, variances, [][]float64{x})
		if !floats.EqualApprox(all, means, 1e-10) || !scalar.EqualWithinAbs(variances[0], variance, 1e-10) {
			t.Errorf("at %v: batch means %v, variance %v, want %v, %v", x, all, variances[0], means, variance)
		}
	}
	for s := range samples {
		for i, x := range points {
			c.Predict(means, x)
			if got := c.BaseValues(s)[i]; !scalar.EqualWithinAbs(got, means[s], 1e-3) {
				t.Errorf("value %v at base point %d of sample %d, mean %v", got, i, s, means[s])
			}
		}
	}
}

func TestExtendWithBase(t *testing.T) {
	const d = 2
	obs := checkpoints(7, 20, d)
	whole, base, _ := basedGP(t, obs, d)
	g, err := NewWithBase(nil, whole.Hyperparameters(), Observations{}, base)
	require.NoError(t, err)
	if g, err = g.Extend(obs); err != nil {
		t.Fatal(err)
	}
	compare(t, g, whole, randomPoints(newRand(8), 5, d), 1e-9)
}

// The weight follows the data: the share of the earlier function in the present.
func TestFitChoosesBaseWeight(t *testing.T) {
	const d = 2
	earlier := func(x []float64) float64 { return 3*math.Sin(6*x[0]) + math.Cos(9*x[1]) }
	other := func(x []float64) float64 { return 0.3 * x[1] }
	var past Observations
	past.X = randomPoints(newRand(9), 80, d)
	for _, x := range past.X {
		past.Y = append(past.Y, earlier(x))
	}
	base := mustFit(t, past, Options{})
	for _, share := range []float64{0, 0.5, 1} {
		obs := Observations{X: randomPoints(newRand(10), 15, d)}
		for _, x := range obs.X {
			obs.Y = append(obs.Y, 4+share*earlier(x)+other(x))
		}
		g := mustFit(t, obs, Options{Base: base})
		if got := g.Hyperparameters().BaseWeight; got != share {
			t.Errorf("weight %v, want %v", got, share)
		}
		var errBase, errAlone float64
		alone := mustFit(t, obs, Options{})
		for _, x := range randomPoints(newRand(11), 50, d) {
			want := 4 + share*earlier(x) + other(x)
			mean, _ := g.Predict(x)
			errBase += (mean - want) * (mean - want) / 50
			mean, _ = alone.Predict(x)
			errAlone += (mean - want) * (mean - want) / 50
		}
		if share == 0 && errBase != errAlone {
			t.Errorf("mean squared error %v with an unused base, %v without", errBase, errAlone)
		}
		if share > 0 && errBase > errAlone/20 {
			t.Errorf("share %v: mean squared error %v with the base, %v without", share, errBase, errAlone)
		}
	}
}

func TestFitFromBaseWithFewObservations(t *testing.T) {
	base := mustNew(t, nil, someHyperparameters(2), randomObservations(newRand(12), 30, 2))
	g := mustFit(t, Observations{}, Options{Base: base})
	compare(t, g, base, randomPoints(newRand(13), 3, 2), 0)

	// One observation moves the level, and leaves the shape to the base.
	x := []float64{0.3, 0.4}
	before, _ := base.Predict(x)
	g = mustFit(t, Observations{X: [][]float64{x}, Y: []float64{before + 10}}, Options{Base: base})
	for _, p := range randomPoints(newRand(14), 3, 2) {
		want, _ := base.Predict(p)
		if mean, _ := g.Predict(p); !scalar.EqualWithinAbs(mean, want+10, 1e-9) {
			t.Errorf("mean %v at %v, want %v", mean, p, want+10)
		}
	}
	if _, variance := g.Predict([]float64{9, 9}); variance > 10*base.Hyperparameters().SignalVariance {
		t.Errorf("prior variance %v, %v in the base", variance, base.Hyperparameters().SignalVariance)
	}
}

func TestBaseErrors(t *testing.T) {
	h := someHyperparameters(1)
	h.BaseWeight = 0.5
	if _, err := New(nil, h, Observations{}); err == nil || !strings.Contains(err.Error(), "BaseWeight is 0.5, want 0 without a base") {
		t.Errorf("error %v, want one about the weight", err)
	}
	h.BaseWeight = 1.5
	if _, err := New(nil, h, Observations{}); err == nil || !strings.Contains(err.Error(), "BaseWeight is 1.5, want a number from 0 to 1") {
		t.Errorf("error %v, want one about the weight", err)
	}
	base := mustNew(t, nil, someHyperparameters(2), Observations{})
	for name, call := range map[string]func(){
		"NewWithBase": func() { _, _ = NewWithBase(nil, someHyperparameters(1), Observations{}, base) },
		"Fit": func() {
			_, _ = Fit(t.Context(), Observations{X: [][]float64{{0}}, Y: []float64{0}}, Options{Base: base})
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := recover(); got != panicDimension {
					t.Errorf("panic %v, want %q", got, panicDimension)
				}
			}()
			call()
		})
	}
}
