package surrogate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/internal/require"
)

func mustFit(tb testing.TB, obs Observations, o Options) *GP {
	tb.Helper()
	g, err := Fit(context.Background(), obs, o)
	require.NoError(tb, err)
	return g
}

// sample draws a function from the prior at x, and noisy observations of it.
func sample(seed uint64, kernel Kernel, h Hyperparameters, x [][]float64) (f []float64, obs Observations) {
	rng := newRand(seed)
	n := len(x)
	reference := &naive{kernel: kernel, h: h}
	k := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			k.SetSym(i, j, reference.covariance(x[i], x[j]))
		}
		k.SetSym(i, i, k.At(i, i)+1e-9*h.SignalVariance)
	}
	var chol mat.Cholesky
	if !chol.Factorize(k) {
		panic("sample: covariance is singular")
	}
	var l mat.TriDense
	chol.LTo(&l)
	z := mat.NewVecDense(n, nil)
	for i := range n {
		z.SetVec(i, rng.NormFloat64())
	}
	z.MulVec(&l, z)
	obs = Observations{X: x, Y: make([]float64, n)}
	for i := range n {
		f = append(f, h.Mean+z.AtVec(i))
		obs.Y[i] = f[i] + math.Sqrt(h.NoiseVariance)*rng.NormFloat64()
	}
	return f, obs
}

func newTestProblem(t *testing.T, kernel Kernel, prior LogNormalPrior, obs Observations, o Options) *problem {
	t.Helper()
	units, err := standardise(obs.Y, 1)
	require.NoError(t, err)
	return newProblem(kernel, prior, obs, units, o)
}

func TestPosteriorGradient(t *testing.T) {
	fixed := 0.03
	prior := LogNormalPrior{Signal: Normal{1, 0.5}, Length: Normal{-1, 0.3}, Noise: Normal{-3, 0.7}}
	for _, kernel := range kernels {
		for _, test := range []struct {
			name       string
			n          int
			fixedNoise *float64
		}{
			{"fitted noise", 25, nil},
			{"fixed noise", 25, &fixed},
			{"several blocks", 150, nil},
			{"one point", 1, nil},
		} {
			t.Run(kernel.Name()+"/"+test.name, func(t *testing.T) {
				rng := newRand(uint64(test.n))
				obs := randomObservations(rng, test.n, 3)
				if test.n > 9 {
					obs.X[9] = obs.X[2] // a duplicate
				}
				f := newLogPosterior(newTestProblem(t, kernel, prior, obs, Options{FixedNoise: test.fixedNoise}))
				value := func(theta []float64) float64 {
					v, err := f.Value(theta)
					require.NoError(t, err)
					return v
				}
				for range 3 {
					theta := f.random(rng)
					want := fd.Gradient(nil, value, theta, &fd.Settings{Formula: fd.Central, Step: 1e-5})
					value(theta)
					got := make([]float64, len(theta))
					f.Gradient(got)
					for i := range got {
						if !scalar.EqualWithinAbsOrRel(got[i], want[i], 1e-6, 1e-6) {
							t.Errorf("at θ = %v: derivative %d is %v, finite difference %v", theta, i, got[i], want[i])
						}
					}
				}
			})
		}
	}
}

// With no noise at all duplicates need jitter, which is a multiple of s_f² and
// so part of the gradient.
func TestPosteriorGradientWithJitter(t *testing.T) {
	var noise float64
	obs := Observations{X: [][]float64{{0.1}, {0.1}, {0.7}, {0.9}}, Y: []float64{1, 1, 2, 4}}
	f := newLogPosterior(newTestProblem(t, Matern52{}, LogNormalPrior{}, obs, Options{FixedNoise: &noise}))
	value := func(theta []float64) float64 {
		v, err := f.Value(theta)
		require.NoError(t, err)
		return v
	}
	theta := []float64{0.3, -1}
	want := fd.Gradient(nil, value, theta, &fd.Settings{Formula: fd.Central, Step: 1e-4})
	value(theta)
	if f.jitter == 0 {
		t.Fatal("no jitter was needed")
	}
	got := make([]float64, 2)
	f.Gradient(got)
	// The condition number is 1e8; leaving the jitter out changes grad[0] by 0.5.
	if maxDifference(got, want) > 1e-3 {
		t.Errorf("gradient %v, finite difference %v", got, want)
	}
}

// The value is New's in standardised units: p(y) = p(standardised)/scaleⁿ.
func TestPosteriorValue(t *testing.T) {
	obs := randomObservations(newRand(3), 20, 2)
	prior := DefaultPrior(2)
	p := newTestProblem(t, SquaredExponential{}, prior, obs, Options{})
	theta := []float64{0.4, -1, 0.3, -4}
	got, err := newLogPosterior(p).Value(theta)
	require.NoError(t, err)
	want := mustNew(t, SquaredExponential{}, hyperparametersAt(t, p, theta), obs).LogMarginalLikelihood() - meanPenalty(t, p, theta) + 20*math.Log(p.units.scale)
	for i, density := range []func(float64) (float64, float64){prior.Signal.LogDensity, prior.Length.LogDensity, prior.Length.LogDensity, prior.Noise.LogDensity} {
		v, _ := density(theta[i])
		want += v
	}
	if !scalar.EqualWithinAbs(-got, want, 1e-10) {
		t.Errorf("log posterior %v, want %v", -got, want)
	}
	if back := p.logs(hyperparametersAt(t, p, theta)); maxDifference(back, theta) > 1e-14 {
		t.Errorf("θ = %v comes back as %v", theta, back)
	}
}

// hyperparametersAt returns the hyperparameters at θ.
func hyperparametersAt(t *testing.T, p *problem, theta []float64) Hyperparameters {
	t.Helper()
	h, err := p.hyperparameters(theta)
	require.NoError(t, err)
	return h
}

// meanPenalty is minus the logarithm of the prior density of the mean.
func meanPenalty(t *testing.T, p *problem, theta []float64) float64 {
	t.Helper()
	m := (hyperparametersAt(t, p, theta).Mean - p.units.mean) / p.units.scale
	return m * m / 2
}

// The mean maximises the posterior density given the other hyperparameters.
func TestMeanIsTheBest(t *testing.T) {
	for seed := range uint64(10) {
		obs := randomObservations(newRand(seed), 15, 2)
		p := newTestProblem(t, Matern52{}, DefaultPrior(2), obs, Options{})
		theta := p.random(newRand(seed + 100))
		best := hyperparametersAt(t, p, theta)
		density := func(mean float64) float64 {
			h := best
			h.Mean = mean
			m := (mean - p.units.mean) / p.units.scale
			return mustNew(t, nil, h, obs).LogMarginalLikelihood() - m*m/2
		}
		for _, step := range []float64{-1e-3, 1e-3} {
			if density(best.Mean+step*p.units.scale) >= density(best.Mean) {
				t.Errorf("seed %d: the mean %v is not the best", seed, best.Mean)
			}
		}
	}
}

func TestStandardise(t *testing.T) {
	tests := []struct {
		y    []float64
		want standardisation
	}{
		{[]float64{1, 2, 3, 6}, standardisation{mean: 3, scale: math.Sqrt(14. / 3)}},
		{[]float64{5}, standardisation{mean: 5, scale: 1}},
		{[]float64{7, 7, 7}, standardisation{mean: 7, scale: 1}},
		{[]float64{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, standardisation{mean: 0.1, scale: 1}},
		{[]float64{0, 0}, standardisation{mean: 0, scale: 1}},
		{[]float64{1e-120, 3e-120}, standardisation{mean: 2e-120, scale: math.Sqrt2 * 1e-120}},
		{[]float64{1e140, 3e140}, standardisation{mean: 2e140, scale: math.Sqrt2 * 1e140}},
	}
	for _, test := range tests {
		got, err := standardise(test.y, 1)
		require.NoError(t, err)
		if !scalar.EqualWithinRel(got.mean, test.want.mean, 1e-15) || !scalar.EqualWithinRel(got.scale, test.want.scale, 1e-14) {
			t.Errorf("standardise(%v, 1) = %v, want %v", test.y, got, test.want)
		}
	}
}

// Twice the logarithm of the likelihood ratio of the estimate and the truth is
// about χ² distributed with one degree of freedom per hyperparameter (Wilks).
// For samples on a bounded domain this is only roughly so; the margins allow for
// that.
func TestFitRecoversHyperparameters(t *testing.T) {
	const n, samples = 120, 8
	for k, kernel := range kernels {
		truth := Hyperparameters{Mean: 10, SignalVariance: 6, LengthScales: []float64{0.25, 0.6}, NoiseVariance: 0.12}
		chi := distuv.ChiSquared{K: float64(len(truth.LengthScales) + 2)}
		var total float64
		for s := range uint64(samples) {
			seed := 100*uint64(k) + s
			_, obs := sample(seed, kernel, truth, randomPoints(newRand(seed+1000), n, 2))
			g := mustFit(t, obs, Options{Kernel: kernel, Prior: &LogNormalPrior{}, Restarts: 2, Seed: seed})
			got := g.Hyperparameters()
			atMean := truth
			atMean.Mean = got.Mean
			ratio := 2 * (g.LogMarginalLikelihood() - mustNew(t, kernel, atMean, obs).LogMarginalLikelihood())
			if ratio < 0 {
				t.Errorf("%s, sample %d: the truth is more likely than the estimate %+v, by %v", kernel.Name(), s, got, -ratio/2)
			}
			if limit := 1.5 * chi.Quantile(0.999); ratio > limit {
				t.Errorf("%s, sample %d: likelihood ratio statistic %v > %v for %+v", kernel.Name(), s, ratio, limit, got)
			}
			total += ratio
			// Five standard errors of ½ log of a sample variance of about n values.
			if e := math.Log(got.NoiseVariance / truth.NoiseVariance); math.Abs(e) > 5*math.Sqrt(2./(n/2)) {
				t.Errorf("%s, sample %d: noise variance %v, want about %v", kernel.Name(), s, got.NoiseVariance, truth.NoiseVariance)
			}
			for j, l := range truth.LengthScales {
				if e := math.Log(got.LengthScales[j] / l); math.Abs(e) > math.Log(2.5) {
					t.Errorf("%s, sample %d: length scale %d is %v, want about %v", kernel.Name(), s, j, got.LengthScales[j], l)
				}
			}
		}
		if mean := total / samples; mean < 0.4*chi.K || mean > 2*chi.K {
			t.Errorf("%s: mean likelihood ratio statistic %v, want about %v", kernel.Name(), mean, chi.K)
		}
	}
}

// An input without influence gets a long length scale.
func TestFitFindsIrrelevantInput(t *testing.T) {
	truth := Hyperparameters{SignalVariance: 1, LengthScales: []float64{0.3, 1e6, 0.4}, NoiseVariance: 0.01}
	_, obs := sample(1, Matern52{}, truth, randomPoints(newRand(2), 80, 3))
	l := mustFit(t, obs, Options{}).Hyperparameters().LengthScales
	if l[1] < 2 || l[0] > 1 || l[2] > 1 {
		t.Errorf("length scales %v, want the second much longer", l)
	}
}

// Known noise variances that are all of the noise leave little to be fitted.
func TestFitWithKnownNoise(t *testing.T) {
	truth := Hyperparameters{SignalVariance: 1, LengthScales: []float64{0.3}, NoiseVariance: 0.09}
	_, obs := sample(3, Matern52{}, truth, randomPoints(newRand(4), 100, 1))
	without := mustFit(t, obs, Options{Prior: &LogNormalPrior{}}).Hyperparameters()
	for range obs.X {
		obs.NoiseVariance = append(obs.NoiseVariance, 0.05)
	}
	with := mustFit(t, obs, Options{Prior: &LogNormalPrior{}}).Hyperparameters()
	if !scalar.EqualWithinAbs(with.NoiseVariance, without.NoiseVariance-0.05, 2e-3) {
		t.Errorf("noise variance %v beside a known 0.05, %v without", with.NoiseVariance, without.NoiseVariance)
	}
}

func TestFitFixedNoise(t *testing.T) {
	_, obs := sample(5, Matern52{}, Hyperparameters{Mean: -3, SignalVariance: 4, LengthScales: []float64{0.4}, NoiseVariance: 0.2}, randomPoints(newRand(6), 40, 1))
	for _, noise := range []float64{0, 0.2, 1e-9} {
		g := mustFit(t, obs, Options{FixedNoise: &noise})
		if got := g.Hyperparameters().NoiseVariance; got != noise {
			t.Errorf("noise variance %v, want %v", got, noise)
		}
		if noise > 0 {
			continue
		}
		for i, x := range obs.X {
			if mean, _ := g.Predict(x); math.Abs(mean-obs.Y[i]) > 1e-4 {
				t.Errorf("without noise the mean at %v is %v, want %v", x, mean, obs.Y[i])
			}
		}
	}
}

// logPosteriorOf is the quantity that Fit maximises, of a posterior with the
// default prior.
func logPosteriorOf(t *testing.T, g *GP, obs Observations, prior LogNormalPrior) float64 {
	t.Helper()
	p := newTestProblem(t, g.kernel, prior, obs, Options{})
	v, err := newLogPosterior(p).Value(p.logs(g.Hyperparameters()))
	require.NoError(t, err)
	return -v
}

func TestFitNeverWorseThanStart(t *testing.T) {
	rng := newRand(7)
	for trial := range 30 {
		d := 1 + rng.IntN(3)
		obs := randomObservations(rng, 1+rng.IntN(30), d)
		prior := DefaultPrior(d)
		p := newTestProblem(t, Matern52{}, prior, obs, Options{})
		start := hyperparametersAt(t, p, p.random(rng))
		before := logPosteriorOf(t, mustNew(t, nil, start, obs), obs, prior)
		g := mustFit(t, obs, Options{Start: &start, Restarts: -1})
		after := logPosteriorOf(t, g, obs, prior)
		if after < before-1e-9 {
			t.Errorf("trial %d: log posterior %v, %v at the start", trial, after, before)
		}
		// More starting points include the fewer.
		last := after
		for restarts := 1; restarts <= 3; restarts++ {
			o := Options{Start: &start, Restarts: restarts, Seed: uint64(trial)}
			v := logPosteriorOf(t, mustFit(t, obs, o), obs, prior)
			if v < last-1e-9 {
				t.Errorf("trial %d: log posterior %v with %d restarts, %v with fewer", trial, v, restarts, last)
			}
			last = v
		}
	}
}

// At the estimate the projected gradient vanishes, and the bounds hold even
// when the start is outside.
func TestFitIsStationary(t *testing.T) {
	rng := newRand(8)
	for trial := range 10 {
		d := 1 + rng.IntN(4)
		obs := randomObservations(rng, 10+rng.IntN(50), d)
		prior := DefaultPrior(d)
		start := Hyperparameters{SignalVariance: 1e9, LengthScales: make([]float64, d)}
		for j := range start.LengthScales {
			start.LengthScales[j] = 1e-9
		}
		g := mustFit(t, obs, Options{Start: &start, Restarts: 2, Seed: uint64(trial)})
		p := newTestProblem(t, Matern52{}, prior, obs, Options{})
		theta := p.logs(g.Hyperparameters())
		for i, v := range theta {
			if v < p.lower[i]-1e-12 || v > p.upper[i]+1e-12 {
				t.Errorf("trial %d: θ[%d] = %v is out of [%v, %v]", trial, i, v, p.lower[i], p.upper[i])
			}
		}
		f := newLogPosterior(p)
		require.NoError(t, require.ErrOf(f.Value(theta)))
		grad := make([]float64, len(theta))
		f.Gradient(grad)
		if norm := projectedNorm(theta, grad, p.lower, p.upper); norm > 0.02 {
			t.Errorf("trial %d: projected gradient %v at the estimate", trial, norm)
		}
	}
}

// A prior must pull: a sharp one determines the estimate.
func TestFitUsesPrior(t *testing.T) {
	obs := randomObservations(newRand(9), 30, 2)
	prior := LogNormalPrior{
		Signal: Normal{math.Log(2), 1e-4},
		Length: Normal{math.Log(0.7), 1e-4},
		Noise:  Normal{math.Log(0.03), 1e-4},
	}
	h := mustFit(t, obs, Options{Prior: &prior}).Hyperparameters()
	units, err := standardise(obs.Y, 1)
	require.NoError(t, err)
	unit := units.scale * units.scale
	got := []float64{h.SignalVariance / unit, h.LengthScales[0], h.LengthScales[1], h.NoiseVariance / unit}
	if want := []float64{2, 0.7, 0.7, 0.03}; maxDifference(got, want) > 1e-4 {
		t.Errorf("hyperparameters %v, want %v", got, want)
	}
}

// A change of units of Y by a power of two changes nothing but the units.
func TestFitIsScaleEquivariant(t *testing.T) {
	obs := randomObservations(newRand(10), 30, 2)
	scaled := Observations{X: obs.X}
	for i := range obs.Y {
		scaled.Y = append(scaled.Y, obs.Y[i]*8)
		scaled.NoiseVariance = append(scaled.NoiseVariance, obs.NoiseVariance[i]*64)
	}
	g, gScaled := mustFit(t, obs, Options{}), mustFit(t, scaled, Options{})
	for _, x := range randomPoints(newRand(11), 10, 2) {
		m, v := g.Predict(x)
		ms, vs := gScaled.Predict(x)
		if !scalar.EqualWithinRel(ms, 8*m, 1e-12) || !scalar.EqualWithinRel(vs, 64*v, 1e-12) {
			t.Errorf("at %v: mean %v, variance %v, want %v, %v", x, ms, vs, 8*m, 64*v)
		}
	}
}

func TestFitIsPermutationInvariant(t *testing.T) {
	rng := newRand(12)
	obs := randomObservations(rng, 40, 2)
	permuted := Observations{}
	for _, i := range rng.Perm(len(obs.X)) {
		permuted.X = append(permuted.X, obs.X[i])
		permuted.Y = append(permuted.Y, obs.Y[i])
		permuted.NoiseVariance = append(permuted.NoiseVariance, obs.NoiseVariance[i])
	}
	// Rounding differs, so the optimiser stops at slightly different points.
	compare(t, mustFit(t, permuted, Options{}), mustFit(t, obs, Options{}), randomPoints(rng, 20, 2), 1e-3)
}

func TestFitIsDeterministic(t *testing.T) {
	obs := randomObservations(newRand(13), 90, 3)
	want := snapshot(mustFit(t, obs, Options{Seed: 4}))
	for _, processors := range []int{1, 2, 7} {
		previous := runtime.GOMAXPROCS(processors)
		got := snapshot(mustFit(t, obs, Options{Seed: 4}))
		runtime.GOMAXPROCS(previous)
		if !cmp.Equal(got, want) {
			t.Errorf("the fit on %d processors differs", processors)
		}
	}
}

func TestStarts(t *testing.T) {
	obs := randomObservations(newRand(14), 5, 2)
	p := newTestProblem(t, Matern52{}, LogNormalPrior{}, obs, Options{})
	start := someHyperparameters(2)
	for _, test := range []struct {
		o    Options
		want int
	}{
		{Options{}, 6},
		{Options{Restarts: 2}, 3},
		{Options{Restarts: -1}, 1},
		{Options{Start: &start}, 6},
		{Options{Start: &start, Restarts: -1}, 1},
	} {
		starts := p.starts(test.o)
		if len(starts) != test.want {
			t.Errorf("%d starts for %+v, want %d", len(starts), test.o, test.want)
		}
		if test.o.Start != nil && !cmp.Equal(starts[0], p.logs(start)) {
			t.Errorf("first start %v, want the given one, %v", starts[0], p.logs(start))
		}
		for i, theta := range starts[1:] {
			for j, v := range theta {
				if v < p.lower[j] || v > p.upper[j] {
					t.Errorf("start %d: θ[%d] = %v is out of [%v, %v]", i+1, j, v, p.lower[j], p.upper[j])
				}
			}
		}
	}
	// The golden sequence of random starts, which must never change.
	got := fmt.Sprintf("%.6f", p.starts(Options{Restarts: 2, Seed: 42})[2])
	if want := "[0.738504 -1.596357 0.848093 -7.620971]"; got != want {
		t.Errorf("random start %s, want %s", got, want)
	}
}

func TestFitDegenerateData(t *testing.T) {
	zero := 0.0
	same := [][]float64{{0.3, 0.3}, {0.3, 0.3}, {0.3, 0.3}}
	tests := []struct {
		name string
		obs  Observations
		mean float64 // at (0.3, 0.3)
	}{
		{"one observation", Observations{X: [][]float64{{0.3, 0.3}}, Y: []float64{7}}, 7},
		{"constant outputs", Observations{X: [][]float64{{0.3, 0.3}, {0.5, 0.1}, {0.9, 0.4}}, Y: []float64{7, 7, 7}}, 7},
		{"all points equal", Observations{X: same, Y: []float64{6, 7, 8}}, 7},
		{"all observations equal", Observations{X: same, Y: []float64{7, 7, 7}}, 7},
		{"points outside the cube", Observations{X: [][]float64{{0.3, 0.3}, {-40, 90}}, Y: []float64{7, 7}}, 7},
		{"tiny outputs", Observations{X: [][]float64{{0.3, 0.3}, {0.3, 0.3}}, Y: []float64{1e-130, 3e-130}}, 2e-130},
		{"huge outputs", Observations{X: [][]float64{{0.3, 0.3}, {0.3, 0.3}}, Y: []float64{1e130, 3e130}}, 2e130},
		{"huge known noise", Observations{X: same, Y: []float64{6, 7, 8}, NoiseVariance: []float64{1e12, 1e12, 1e12}}, 7},
	}
	for _, test := range tests {
		for _, o := range []Options{{}, {Prior: &LogNormalPrior{}}, {FixedNoise: &zero}, {Kernel: SquaredExponential{}, FixedNoise: &zero}} {
			g := mustFit(t, test.obs, o)
			mean, variance := g.Predict([]float64{0.3, 0.3})
			if !scalar.EqualWithinRel(mean, test.mean, 1e-6) || !finite(variance) || variance < 0 {
				t.Errorf("%s: mean %v, variance %v, want mean %v", test.name, mean, variance, test.mean)
			}
			next, err := g.Append([]float64{0.3, 0.3}, test.mean, 0)
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			if mean, _ := next.Predict([]float64{0.3, 0.3}); !scalar.EqualWithinRel(mean, test.mean, 1e-6) {
				t.Errorf("%s: mean %v after another observation, want %v", test.name, mean, test.mean)
			}
		}
	}
}

func TestFitWithoutInputs(t *testing.T) {
	g := mustFit(t, Observations{X: [][]float64{{}, {}, {}}, Y: []float64{1, 2, 6}}, Options{})
	if mean, variance := g.Predict(nil); !scalar.EqualWithinAbs(mean, 3, 1e-9) || variance <= 0 {
		t.Errorf("mean %v, variance %v, want mean 3", mean, variance)
	}
}

func TestFitWithoutObservations(t *testing.T) {
	start := someHyperparameters(2)
	if got := mustFit(t, Observations{}, Options{Start: &start}).Hyperparameters(); !cmp.Equal(got, start) {
		t.Errorf("hyperparameters %+v, want %+v", got, start)
	}
	noise := 0.5
	if got := mustFit(t, Observations{}, Options{Start: &start, FixedNoise: &noise}).Hyperparameters().NoiseVariance; got != noise {
		t.Errorf("noise variance %v, want %v", got, noise)
	}
	if _, err := Fit(context.Background(), Observations{}, Options{}); err == nil || !strings.Contains(err.Error(), "dimension is unknown") {
		t.Errorf("error %v, want one about the dimension", err)
	}
}

func TestFitErrors(t *testing.T) {
	x := [][]float64{{0}, {1}}
	negative := -1.0
	tests := []struct {
		want string
		obs  Observations
		o    Options
	}{
		{"X[1][0] is NaN", Observations{X: [][]float64{{0}, {math.NaN()}}, Y: []float64{0, 1}}, Options{}},
		{"Y[0] is +Inf", Observations{X: x, Y: []float64{math.Inf(1), 1}}, Options{}},
		{"NoiseVariance[1] is -1", Observations{X: x, Y: []float64{0, 1}, NoiseVariance: []float64{0, -1}}, Options{}},
		{"Y reaches the magnitude 1e+200", Observations{X: x, Y: []float64{0, 1e200}}, Options{}},
		{"Options.FixedNoise is -1", Observations{X: x, Y: []float64{0, 1}}, Options{FixedNoise: &negative}},
		{"Options.Tied[0] is 1, want an index from 0 to 0", Observations{X: x, Y: []float64{0, 1}}, Options{Tied: []int{1}}},
		{"Options.Tied gives no input the length scale 0, but one 1", Observations{X: [][]float64{{0, 0}}, Y: []float64{1}}, Options{Tied: []int{1, 1}}},
		{"Options.Tolerance is -1", Observations{X: x, Y: []float64{0, 1}}, Options{Tolerance: -1}},
		{"Options.Start.SignalVariance is 0", Observations{X: x, Y: []float64{0, 1}}, Options{Start: &Hyperparameters{LengthScales: []float64{1}}}},
		{"jitter up to", Observations{X: x, Y: []float64{0, 1}}, Options{Kernel: indefinite{}, FixedNoise: new(float64)}},
	}
	for _, test := range tests {
		if _, err := Fit(context.Background(), test.obs, test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q", err, test.want)
		}
	}
}

func TestFitTiedPanics(t *testing.T) {
	defer func() {
		if got := recover(); got != panicDimension {
			t.Errorf("panic %v, want %q", got, panicDimension)
		}
	}()
	_, _ = Fit(context.Background(), Observations{X: [][]float64{{0}}, Y: []float64{0}}, Options{Tied: []int{0, 0}})
}

func TestFitPanics(t *testing.T) {
	defer func() {
		if got := recover(); got != panicDimension {
			t.Errorf("panic %v, want %q", got, panicDimension)
		}
	}()
	start := someHyperparameters(2)
	_, _ = Fit(context.Background(), Observations{X: [][]float64{{0}}, Y: []float64{0}}, Options{Start: &start})
}

// cancelling is a kernel that cancels a context when it is asked.
type cancelling struct {
	Matern52

	cancel context.CancelFunc
}

func (c cancelling) Correlation(r2 float64) (k, dk float64) {
	c.cancel()
	return c.Matern52.Correlation(r2)
}

func TestFitIsCancelled(t *testing.T) {
	obs := randomObservations(newRand(15), 20, 2)
	for _, name := range []string{"before", "during"} {
		ctx, cancel := context.WithCancel(context.Background())
		o := Options{}
		if name == "before" {
			cancel()
		} else {
			o.Kernel = cancelling{cancel: cancel}
		}
		if g, err := Fit(ctx, obs, o); g != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled %s: %v, %v, want context.Canceled", name, g, err)
		}
		cancel()
	}
}

// Of the 95 % intervals 95 % must cover the function, over functions drawn from
// the prior, if the hyperparameters are the true ones. Estimated ones make the
// intervals too narrow, but with enough data by little.
func TestIntervalCoverage(t *testing.T) {
	const functions, n, probes = 60, 100, 25
	truth := Hyperparameters{Mean: -2, SignalVariance: 3, LengthScales: []float64{0.3, 0.5}, NoiseVariance: 0.1}
	covered := make(map[string]int)
	for s := range uint64(functions) {
		f, all := sample(s, Matern52{}, truth, randomPoints(newRand(s+500), n+probes, 2))
		obs := Observations{X: all.X[:n], Y: all.Y[:n]}
		for name, g := range map[string]*GP{
			"true":      mustNew(t, nil, truth, obs),
			"estimated": mustFit(t, obs, Options{Restarts: 1, Seed: s}),
		} {
			for i := n; i < n+probes; i++ {
				mean, variance := g.Predict(all.X[i])
				if math.Abs(f[i]-mean) <= 1.96*math.Sqrt(variance) {
					covered[name+", function"]++
				}
				if math.Abs(all.Y[i]-mean) <= 1.96*math.Sqrt(variance+g.Hyperparameters().NoiseVariance) {
					covered[name+", observation"]++
				}
			}
		}
	}
	// The standard error of a share is at most about 0.01.
	for name, low := range map[string]float64{
		"true, function": 0.93, "true, observation": 0.93,
		"estimated, function": 0.90, "estimated, observation": 0.92,
	} {
		if share := float64(covered[name]) / (functions * probes); share < low || share > 0.975 {
			t.Errorf("%s: 95 %% intervals cover %.1f %%", name, 100*share)
		}
	}
}

// brokenKernel panics at every pair of different points.
type brokenKernel struct{ Matern52 }

func (brokenKernel) Correlation(r2 float64) (k, dk float64) {
	if r2 > 0 {
		panic("broken kernel")
	}
	return 1, 0
}

// A panic in a parallel climb can be recovered from by the caller.
func TestFitPanicReachesTheCaller(t *testing.T) {
	defer func() {
		if r := recover(); r != "broken kernel" {
			t.Errorf("recovered %v", r)
		}
	}()
	_, err := Fit(t.Context(), Observations{X: [][]float64{{0}, {1}}, Y: []float64{1, 2}}, Options{Kernel: brokenKernel{}})
	t.Errorf("no panic, error %v", err)
}

// countingKernel counts the correlations asked for.
type countingKernel struct {
	Matern52

	calls *atomic.Int64
}

func (k countingKernel) Correlation(r2 float64) (c, dc float64) {
	k.calls.Add(1)
	return k.Matern52.Correlation(r2)
}

// A refit is cheap: an evaluation asks for n(n−1)/2 correlations, and so does New.
// projectedNorm returns the largest coordinate of P(x − grad) − x in magnitude,
// where P projects onto the box.
func projectedNorm(x, grad, lower, upper []float64) float64 {
	var norm float64
	for i, g := range grad {
		norm = max(norm, math.Abs(min(max(x[i]-g, lower[i]), upper[i])-x[i]))
	}
	return norm
}

func TestRefitEvaluations(t *testing.T) {
	const n = 60
	obs := checkpoints(1, n, 4)
	o := Options{NoiseSlopes: true}
	start := mustFit(t, obs, o).Hyperparameters()
	extended := checkpoints(1, n+4, 4)
	evaluations := func(o Options) int {
		k := countingKernel{calls: new(atomic.Int64)}
		o.Kernel, o.Start, o.Restarts, o.NoiseSlopes = k, &start, -1, true
		g := mustFit(t, extended, o)
		p := newTestProblem(t, Matern52{}, DefaultPrior(4), extended, o)
		f := newLogPosterior(p)
		before, err := f.Value(p.logs(start))
		require.NoError(t, err)
		after, err := f.Value(p.logs(g.Hyperparameters()))
		require.NoError(t, err)
		if after > before+1e-9 {
			t.Errorf("%+v: the negative log posterior rose from %v to %v", o, before, after)
		}
		return int(k.calls.Load())/((n+4)*(n+3)/2) - 2 // for the mean, and for the result
	}
	full, tolerant, single := evaluations(Options{}), evaluations(Options{Tolerance: 0.01}), evaluations(Options{MaxEvaluations: 1})
	if single != 1 || tolerant >= full || tolerant > 12 || evaluations(Options{MaxEvaluations: 3}) != 3 {
		t.Errorf("%d evaluations, %d with a tolerance, %d of 1", full, tolerant, single)
	}
}

// categorical returns observations of one continuous parameter and one of three
// levels as indicators.
func categorical(seed uint64, n int) Observations {
	rng := newRand(seed)
	obs := Observations{}
	for range n {
		x, level := rng.Float64(), rng.IntN(3)
		point := []float64{x, 0, 0, 0}
		point[1+level] = 1
		obs.X = append(obs.X, point)
		obs.Y = append(obs.Y, math.Sin(5*x)+0.4*float64(level)*x+0.05*rng.NormFloat64())
	}
	return obs
}

func TestTiedGradient(t *testing.T) {
	obs := categorical(1, 40)
	f := newLogPosterior(newTestProblem(t, Matern52{}, DefaultPrior(2), obs, Options{Tied: []int{1, 0, 0, 0}, NoiseSlopes: true}))
	value := func(theta []float64) float64 {
		v, err := f.Value(theta)
		require.NoError(t, err)
		return v
	}
	rng := newRand(2)
	for range 3 {
		theta := f.random(rng)
		if want := 1 + 2 + 1 + 4; len(theta) != want {
			t.Fatalf("%d unknowns, want %d", len(theta), want)
		}
		want := fd.Gradient(nil, value, theta, &fd.Settings{Formula: fd.Central, Step: 1e-5})
		value(theta)
		got := make([]float64, len(theta))
		f.Gradient(got)
		if !floats.EqualApprox(got, want, 1e-5) {
			t.Errorf("at θ = %v: gradient %v, finite difference %v", theta, got, want)
		}
	}
}

// Tied length scales are equal, and the best of all that are.
func TestFitTied(t *testing.T) {
	obs := categorical(3, 50)
	g := mustFit(t, obs, Options{Tied: []int{0, 1, 1, 1}, Prior: &LogNormalPrior{}})
	h := g.Hyperparameters()
	if h.LengthScales[1] != h.LengthScales[2] || h.LengthScales[1] != h.LengthScales[3] || h.LengthScales[0] == h.LengthScales[1] {
		t.Errorf("length scales %v, want the last three equal", h.LengthScales)
	}
	for _, factor := range []float64{0.8, 1.25} {
		other := h.clone()
		for j := 1; j < 4; j++ {
			other.LengthScales[j] *= factor
		}
		if v := mustNew(t, nil, other, obs).LogMarginalLikelihood(); v > g.LogMarginalLikelihood() {
			t.Errorf("log likelihood %v with the tied length scale times %v, %v without", v, factor, g.LogMarginalLikelihood())
		}
	}
	// Without ties there are more unknowns, for a higher likelihood.
	free := mustFit(t, obs, Options{Prior: &LogNormalPrior{}, Start: &h, Restarts: -1})
	if free.LogMarginalLikelihood() < g.LogMarginalLikelihood()-1e-9 {
		t.Errorf("log likelihood %v without ties, %v with", free.LogMarginalLikelihood(), g.LogMarginalLikelihood())
	}
	// The order of the indices does not matter, and a start is moved to the ties.
	start := h.clone()
	start.LengthScales[1] *= 2
	start.LengthScales[2] /= 2
	again := mustFit(t, obs, Options{Tied: []int{1, 0, 0, 0}, Prior: &LogNormalPrior{}, Start: &start, Restarts: -1})
	compare(t, again, g, randomPoints(newRand(4), 5, 4), 1e-3)
}

// Where values without noise depend on one of several inputs alone, and linearly, the others are found not to matter:
// far from all observations the prediction is as sure as next to them.
func TestFitIsSureOfIrrelevantInputs(t *testing.T) {
	const d, n = 4, 16
	rng := newRand(1)
	var obs Observations
	for range n {
		x := make([]float64, d)
		for j := range x {
			x[j] = rng.Float64()
		}
		obs.X, obs.Y = append(obs.X, x), append(obs.Y, x[0])
	}
	gp, err := Fit(t.Context(), obs, Options{FixedNoise: new(1e-9)})
	require.NoError(t, err)
	for corner := range 1 << d {
		x := make([]float64, d)
		for j := range x {
			x[j] = float64(corner >> j & 1)
		}
		mean, variance := gp.Predict(x)
		if sd := math.Sqrt(variance); sd > 2e-3 || math.Abs(mean-x[0]) > 2e-3 {
			t.Errorf("prediction at %v is %g ± %g, want %g", x, mean, sd, x[0])
		}
	}
}
