package surrogate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/internal/require"
)

func newRand(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 1))
}

// randomPoints returns n uniform points of [0, 1]^d.
func randomPoints(rng *rand.Rand, n, d int) [][]float64 {
	x := make([][]float64, n)
	for i := range x {
		x[i] = make([]float64, d)
		for j := range x[i] {
			x[i][j] = rng.Float64()
		}
	}
	return x
}

// randomObservations returns points with smooth outputs around 3, noise of
// standard deviation 0.1 and known noise variances from 0.001 to 0.011.
func randomObservations(rng *rand.Rand, n, d int) Observations {
	obs := Observations{X: randomPoints(rng, n, d), Y: make([]float64, n), NoiseVariance: make([]float64, n)}
	for i, x := range obs.X {
		obs.Y[i] = 3 + 0.1*rng.NormFloat64()
		for j, v := range x {
			obs.Y[i] += math.Sin(float64(3+j)*v) / float64(1+j)
		}
		obs.NoiseVariance[i] = 0.001 + 0.01*rng.Float64()
	}
	return obs
}

// someHyperparameters returns length scales from 0.3 upwards.
func someHyperparameters(d int) Hyperparameters {
	h := Hyperparameters{Mean: 2.5, SignalVariance: 1.7, NoiseVariance: 0.02}
	for j := range d {
		h.LengthScales = append(h.LengthScales, 0.3+0.2*float64(j))
	}
	return h
}

// naive is the posterior by explicit inversion of the covariance.
type naive struct {
	kernel  Kernel
	h       Hyperparameters
	obs     Observations
	inverse *mat.Dense
	logDet  float64
	y       *mat.VecDense // residuals
}

func newNaive(t *testing.T, kernel Kernel, h Hyperparameters, obs Observations) *naive {
	t.Helper()
	n := len(obs.X)
	if n == 0 {
		return &naive{kernel: kernel, h: h}
	}
	g := &naive{kernel: kernel, h: h, obs: obs, inverse: new(mat.Dense), y: mat.NewVecDense(n, nil)}
	k := mat.NewDense(n, n, nil)
	for i := range n {
		g.y.SetVec(i, obs.Y[i]-h.Mean)
		for j := range n {
			k.Set(i, j, g.covariance(obs.X[i], obs.X[j])+noiseCovariance(h, obs, i, j))
		}
	}
	require.NoError(t, g.inverse.Inverse(k))
	g.logDet, _ = mat.LogDet(k)
	return g
}

func (g *naive) covariance(a, b []float64) float64 {
	var r2 float64
	for j, l := range g.h.LengthScales {
		diff := (a[j] - b[j]) / l
		r2 += diff * diff
	}
	k, _ := g.kernel.Correlation(r2)
	return g.h.SignalVariance * k
}

func (g *naive) joint(x [][]float64) (mean []float64, cov *mat.Dense) {
	n, q := len(g.obs.X), len(x)
	prior := mat.NewDense(q, q, nil)
	for a := range q {
		mean = append(mean, g.h.Mean)
		for b := range q {
			prior.Set(a, b, g.covariance(x[a], x[b]))
		}
	}
	if n == 0 {
		return mean, prior
	}
	cross := mat.NewDense(q, n, nil)
	for a := range q {
		for i := range n {
			cross.Set(a, i, g.covariance(x[a], g.obs.X[i]))
		}
	}
	var gain, m mat.Dense
	gain.Mul(cross, g.inverse)
	m.Mul(&gain, g.y)
	for a := range q {
		mean[a] += m.At(a, 0)
	}
	cov = new(mat.Dense)
	cov.Mul(&gain, cross.T())
	cov.Sub(prior, cov)
	return mean, cov
}

func (g *naive) logMarginalLikelihood() float64 {
	return -mat.Inner(g.y, g.inverse, g.y)/2 - g.logDet/2 - float64(len(g.obs.X))/2*math.Log(2*math.Pi)
}

func mustNew(tb testing.TB, kernel Kernel, h Hyperparameters, obs Observations) *GP {
	tb.Helper()
	g, err := New(kernel, h, obs)
	require.NoError(tb, err)
	return g
}

// Three points, Matérn 5/2; values computed independently with 8 digits.
func TestThreePoints(t *testing.T) {
	g := mustNew(t, nil,
		Hyperparameters{SignalVariance: 1, LengthScales: []float64{0.4}, NoiseVariance: 0.01},
		Observations{X: [][]float64{{0}, {0.5}, {1}}, Y: []float64{1, -0.5, 0.3}})
	tests := []struct{ x, mean, variance float64 }{
		{0, 0.98535617, 0.0098822962},
		{0.25, 0.21273757, 0.18218245},
		{0.8, -0.10350879, 0.16856094},
		{3, 0.00046115709, 0.99999938},
	}
	const tol = 5e-9
	for _, test := range tests {
		mean, variance := g.Predict([]float64{test.x})
		if math.Abs(mean-test.mean) > tol || math.Abs(variance-test.variance) > tol {
			t.Errorf("at %v: mean %.9g, variance %.9g, want %v, %v", test.x, mean, variance, test.mean, test.variance)
		}
	}
	if got := g.LogMarginalLikelihood(); math.Abs(got - -3.7806379) > 5e-8 {
		t.Errorf("log marginal likelihood %.9g, want -3.7806379", got)
	}
}

// The noise enters as the sum of the homoscedastic and the known part.
func TestKnownNoise(t *testing.T) {
	obs := Observations{X: [][]float64{{0}, {0.5}, {1}}, Y: []float64{1, -0.5, 0.3}, NoiseVariance: []float64{0.004, 0.004, 0.004}}
	g := mustNew(t, Matern52{}, Hyperparameters{SignalVariance: 1, LengthScales: []float64{0.4}, NoiseVariance: 0.006}, obs)
	if got := g.LogMarginalLikelihood(); math.Abs(got - -3.7806379) > 5e-8 {
		t.Errorf("log marginal likelihood %.9g, want -3.7806379", got)
	}
}

// shifted is Matérn 5/2 with r² increased by 1e-7, rescaled to correlation 1 at
// 0: with the signal variance multiplied by scale it is the covariance of the
// example run.
type shifted struct{}

const shift = 1e-7

func (shifted) Name() string { return "shifted" }

func (shifted) scale() float64 {
	k, _ := Matern52{}.Correlation(shift)
	return k
}

func (s shifted) Correlation(r2 float64) (k, dk float64) {
	k, dk = Matern52{}.Correlation(r2 + shift)
	return k / s.scale(), dk / s.scale()
}

// The source of the numbers is in testdata/README.md.
func TestPublishedExample(t *testing.T) {
	type model struct {
		Y                     []float64 `json:"y"`
		SignalVariance        float64   `json:"signalVariance"`
		LengthScales          []float64 `json:"lengthScales"`
		NoiseVariance         float64   `json:"noiseVariance"`
		LogMarginalLikelihood float64   `json:"logMarginalLikelihood"`
		Mean                  float64   `json:"nextMean"`
		Variance              float64   `json:"nextVariance"`
	}
	var example struct {
		X       [][]float64  `json:"x"`
		Next    []float64    `json:"nextX"`
		Front   [][2]float64 `json:"front"`
		Privacy model        `json:"privacy"`
		Utility model        `json:"utility"`
	}
	data, err := os.ReadFile("testdata/dpareto_example.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &example))
	fit := func(m model, kernel Kernel, scale float64) *GP {
		return mustNew(t, kernel, Hyperparameters{
			SignalVariance: m.SignalVariance * scale,
			LengthScales:   m.LengthScales,
			NoiseVariance:  m.NoiseVariance,
		}, Observations{X: example.X, Y: m.Y})
	}
	privacy := fit(example.Privacy, shifted{}, shifted{}.scale())
	utility := fit(example.Utility, shifted{}, shifted{}.scale())

	// The prior variance of the example run at a new point is without the shift.
	for _, test := range []struct {
		name string
		g    *GP
		want model
		tol  float64 // the privacy model has no noise and is badly conditioned
	}{
		{"privacy", privacy, example.Privacy, 1e-6},
		{"utility", utility, example.Utility, 1e-9},
	} {
		if got := test.g.LogMarginalLikelihood(); !scalar.EqualWithinAbs(got, test.want.LogMarginalLikelihood, 1e-5) {
			t.Errorf("%s: log marginal likelihood %.9f, want %.9f", test.name, got, test.want.LogMarginalLikelihood)
		}
		mean, variance := test.g.Predict(example.Next)
		variance += test.want.SignalVariance - test.g.Hyperparameters().SignalVariance
		if !scalar.EqualWithinAbs(mean, test.want.Mean, test.tol) || !scalar.EqualWithinAbs(variance, test.want.Variance, test.tol) {
			t.Errorf("%s: mean %.10f, variance %.10f, want %.10f, %.10f", test.name, mean, variance, test.want.Mean, test.want.Variance)
		}
	}

	// Without the shift the likelihood of the privacy model was computed as
	// 19.8213; the utility model, which has noise, hardly changes.
	if got := fit(example.Privacy, Matern52{}, 1).LogMarginalLikelihood(); !scalar.EqualWithinAbs(got, 19.8213, 5e-5) {
		t.Errorf("privacy: log marginal likelihood without the shift %.6f, want 19.8213", got)
	}
	mean, variance := fit(example.Utility, Matern52{}, 1).Predict(example.Next)
	if !scalar.EqualWithinAbs(mean, example.Utility.Mean, 1e-6) || !scalar.EqualWithinAbs(variance, example.Utility.Variance, 1e-6) {
		t.Errorf("utility without the shift: mean %v, variance %v, want %v, %v", mean, variance, example.Utility.Mean, example.Utility.Variance)
	}

	// Every point of the front is the pair of predicted means at some data point.
	for _, point := range example.Front {
		found := false
		for _, x := range example.X {
			p, _ := privacy.Predict(x)
			u, _ := utility.Predict(x)
			found = found || (scalar.EqualWithinAbs(p, point[0], 1e-6) && scalar.EqualWithinAbs(u, point[1], 1e-6))
		}
		if !found {
			t.Errorf("no data point has the predicted means %v", point)
		}
	}
}

func TestPosteriorMatchesNaive(t *testing.T) {
	const tol = 1e-9
	for seed, kernel := range kernels {
		for _, d := range []int{1, 2, 5} {
			t.Run(fmt.Sprintf("%s/d=%d", kernel.Name(), d), func(t *testing.T) {
				rng := newRand(uint64(seed))
				// 100 points exceed the block size of the factorisation.
				obs := randomObservations(rng, 100, d)
				obs.X[7] = obs.X[3] // a duplicate
				h := someHyperparameters(d)
				g, want := mustNew(t, kernel, h, obs), newNaive(t, kernel, h, obs)
				if got, want := g.LogMarginalLikelihood(), want.logMarginalLikelihood(); !scalar.EqualWithinAbsOrRel(got, want, tol, tol) {
					t.Errorf("log marginal likelihood %v, want %v", got, want)
				}
				x := append(randomPoints(rng, 10, d), obs.X[3], obs.X[3])
				for j := range d {
					x[0][j] = 4 // far outside
				}
				wantMean, wantCov := want.joint(x)
				for a, p := range x {
					m, v := g.Predict(p)
					if !scalar.EqualWithinAbs(m, wantMean[a], tol) || !scalar.EqualWithinAbs(v, wantCov.At(a, a), tol) {
						t.Errorf("at %v: mean %v, variance %v, want %v, %v", p, m, v, wantMean[a], wantCov.At(a, a))
					}
				}
			})
		}
	}
}

func maxDifference(a, b []float64) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	var largest float64
	for i := range a {
		largest = max(largest, math.Abs(a[i]-b[i]))
	}
	return largest
}

func TestPredictGradient(t *testing.T) {
	const d = 3
	for seed, kernel := range kernels {
		rng := newRand(uint64(seed))
		obs := randomObservations(rng, 30, d)
		g := mustNew(t, kernel, someHyperparameters(d), obs)
		x := append(randomPoints(rng, 20, d), obs.X[4], []float64{1.5, -0.3, 0.5})
		for _, p := range x {
			dMean, dVariance := make([]float64, d), make([]float64, d)
			mean, variance := g.PredictGradient(dMean, dVariance, p)
			if m, v := g.Predict(p); m != mean || v != variance {
				t.Errorf("%s at %v: mean, variance %v, %v; Predict has %v, %v", kernel.Name(), p, mean, variance, m, v)
			}
			settings := &fd.Settings{Formula: fd.Central, Step: 1e-5}
			wantMean := fd.Gradient(nil, func(x []float64) float64 { m, _ := g.Predict(x); return m }, p, settings)
			wantVariance := fd.Gradient(nil, func(x []float64) float64 { _, v := g.Predict(x); return v }, p, settings)
			// Matérn 3/2 has a jump in the second derivative at a data point, which
			// the central difference sees as an error of the order of the step.
			const tol = 2e-6
			if diff := maxDifference(dMean, wantMean); diff > tol {
				t.Errorf("%s at %v: mean gradient %v, finite difference %v", kernel.Name(), p, dMean, wantMean)
			}
			if diff := maxDifference(dVariance, wantVariance); diff > tol {
				t.Errorf("%s at %v: variance gradient %v, finite difference %v", kernel.Name(), p, dVariance, wantVariance)
			}
		}
	}
}

func TestAppendMatchesNew(t *testing.T) {
	const n, d, tol = 70, 2, 1e-9
	for seed, kernel := range kernels {
		rng := newRand(uint64(seed))
		obs := randomObservations(rng, n, d)
		h := someHyperparameters(d)
		g := mustNew(t, kernel, h, Observations{})
		for i := range n {
			before := snapshot(g)
			next, err := g.Append(obs.X[i], obs.Y[i], obs.NoiseVariance[i])
			require.NoError(t, err)
			// A second branch from the same posterior must not disturb the first.
			require.NoError(t, require.ErrOf(g.Append([]float64{0.5, 0.5}, 100, 0)))
			if diff := cmp.Diff(before, snapshot(g)); diff != "" {
				t.Fatalf("receiver changed: %s", diff)
			}
			g = next
			want := mustNew(t, kernel, h, Observations{X: obs.X[:i+1], Y: obs.Y[:i+1], NoiseVariance: obs.NoiseVariance[:i+1]})
			compare(t, g, want, randomPoints(rng, 3, d), tol)
		}
	}
}

func snapshot(g *GP) [][]float64 {
	var s [][]float64
	for _, v := range append(slices.Clone(g.scaled), g.residual, g.noise.known, flatten(g.factor), g.whitened, g.weights, g.hyper.LengthScales) {
		s = append(s, append([]float64{}, v...))
	}
	return s
}

// compare checks that two posteriors agree at x to an absolute tolerance.
func compare(t *testing.T, got, want *GP, x [][]float64, tol float64) {
	t.Helper()
	if a, b := got.LogMarginalLikelihood(), want.LogMarginalLikelihood(); !scalar.EqualWithinAbsOrRel(a, b, tol, tol) {
		t.Errorf("log marginal likelihood %v, want %v", a, b)
	}
	for _, p := range x {
		m, v := got.Predict(p)
		wantM, wantV := want.Predict(p)
		if !scalar.EqualWithinAbs(m, wantM, tol) || !scalar.EqualWithinAbs(v, wantV, tol) {
			t.Errorf("at %v: mean %v, variance %v, want %v, %v", p, m, v, wantM, wantV)
		}
	}
}

// Without noise a duplicate makes the covariance singular: jitter must help,
// in New as in Append, and the posterior must still interpolate.
func TestNoiseFreeDuplicates(t *testing.T) {
	h := Hyperparameters{SignalVariance: 2, LengthScales: []float64{0.3}}
	base := Observations{X: [][]float64{{0.1}, {0.4}, {0.9}}, Y: []float64{1, 2, 3}}
	g := mustNew(t, nil, h, base)
	if g.jitter != 0 {
		t.Errorf("jitter %v for distinct points, want 0", g.jitter)
	}
	doubled := Observations{X: append(base.X, base.X...), Y: append(base.Y, base.Y...)}
	whole := mustNew(t, nil, h, doubled)
	for i, x := range base.X {
		var err error
		if g, err = g.Append(x, base.Y[i], 0); err != nil {
			t.Fatal(err)
		}
	}
	for name, g := range map[string]*GP{"New": whole, "Append": g} {
		if want := firstJitter * h.SignalVariance; g.jitter != want {
			t.Errorf("%s: jitter %v, want %v", name, g.jitter, want)
		}
		for i, x := range base.X {
			if mean, variance := g.Predict(x); math.Abs(mean-base.Y[i]) > 1e-6 || variance > 1e-6 {
				t.Errorf("%s at %v: mean %v, variance %v, want %v, 0", name, x, mean, variance, base.Y[i])
			}
		}
	}
	compare(t, g, whole, [][]float64{{0}, {0.25}, {0.7}}, 1e-6)
}

// Points so close that their covariance is positive definite by rounding only get jitter.
func TestNoiseFreeNeighbours(t *testing.T) {
	h := Hyperparameters{SignalVariance: 1, LengthScales: []float64{1}}
	near := Observations{X: [][]float64{{0}, {3e-8}}, Y: []float64{1, 1}}
	g, err := mustNew(t, SquaredExponential{}, h, Observations{X: near.X[:1], Y: near.Y[:1]}).Append(near.X[1], near.Y[1], 0)
	require.NoError(t, err)
	for name, g := range map[string]*GP{"New": mustNew(t, SquaredExponential{}, h, near), "Append": g} {
		if g.jitter != firstJitter {
			t.Errorf("%s: jitter %v, want %v", name, g.jitter, firstJitter)
		}
	}
}

// Contradictory noise-free outputs at one point are averaged.
func TestContradictoryDuplicates(t *testing.T) {
	g := mustNew(t, nil, Hyperparameters{SignalVariance: 1, LengthScales: []float64{0.3}},
		Observations{X: [][]float64{{0.5}, {0.5}}, Y: []float64{-1, 2}})
	if mean, variance := g.Predict([]float64{0.5}); math.Abs(mean-0.5) > 1e-6 || variance > 1e-6 {
		t.Errorf("mean %v, variance %v, want 0.5, 0", mean, variance)
	}
}

// indefinite is no correlation function: it grows with the distance.
type indefinite struct{}

func (indefinite) Name() string { return "indefinite" }

func (indefinite) Correlation(r2 float64) (k, dk float64) { return 1 + r2, 1 }

func assertJitterError(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.Is(err, ErrNotPositiveDefinite) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want ErrNotPositiveDefinite with %q", err, want)
	}
}

func TestNotPositiveDefinite(t *testing.T) {
	h := Hyperparameters{SignalVariance: 3, LengthScales: []float64{1}}
	_, err := New(indefinite{}, h, Observations{X: [][]float64{{0}, {1}}, Y: []float64{0, 1}})
	assertJitterError(t, err, "2 points, jitter up to 0.0003 = 0.0001 × signal variance tried")
	g := mustNew(t, indefinite{}, h, Observations{X: [][]float64{{0}}, Y: []float64{0}})
	_, err = g.Append([]float64{1}, 1, 0)
	assertJitterError(t, err, "jitter up to 0.0003")
}

func TestPriorOnly(t *testing.T) {
	h := Hyperparameters{Mean: 4, SignalVariance: 2.5, LengthScales: []float64{0.2, 0.5}, NoiseVariance: 0.1}
	g := mustNew(t, nil, h, Observations{})
	dMean, dVariance := []float64{9, 9}, []float64{9, 9}
	mean, variance := g.PredictGradient(dMean, dVariance, []float64{0.3, 0.3})
	if mean != 4 || variance != 2.5 {
		t.Errorf("mean %v, variance %v, want 4, 2.5", mean, variance)
	}
	if want := []float64{0, 0}; !cmp.Equal(dMean, want) || maxDifference(dVariance, want) != 0 {
		t.Errorf("gradients %v, %v, want 0", dMean, dVariance)
	}
	if mean, variance := g.Predict([]float64{0.3, 0.3}); mean != 4 || variance != 2.5 {
		t.Errorf("mean %v, variance %v, want 4, 2.5", mean, variance)
	}
	if got := g.LogMarginalLikelihood(); got != 0 {
		t.Errorf("log marginal likelihood %v, want 0", got)
	}
}

func TestPermutationInvariance(t *testing.T) {
	const n, d = 40, 3
	rng := newRand(5)
	obs := randomObservations(rng, n, d)
	permuted := Observations{}
	for _, i := range rng.Perm(n) {
		permuted.X = append(permuted.X, obs.X[i])
		permuted.Y = append(permuted.Y, obs.Y[i])
		permuted.NoiseVariance = append(permuted.NoiseVariance, obs.NoiseVariance[i])
	}
	h := someHyperparameters(d)
	compare(t, mustNew(t, nil, h, permuted), mustNew(t, nil, h, obs), randomPoints(rng, 20, d), 1e-10)

	// Likewise for the inputs.
	swap := func(x []float64) []float64 { return []float64{x[2], x[0], x[1]} }
	swapped := Observations{Y: obs.Y, NoiseVariance: obs.NoiseVariance}
	for _, x := range obs.X {
		swapped.X = append(swapped.X, swap(x))
	}
	hSwapped := h
	hSwapped.LengthScales = swap(h.LengthScales)
	g, gSwapped := mustNew(t, nil, h, obs), mustNew(t, nil, hSwapped, swapped)
	for _, x := range randomPoints(rng, 20, d) {
		m, v := g.Predict(x)
		if ms, vs := gSwapped.Predict(swap(x)); !scalar.EqualWithinAbs(m, ms, 1e-10) || !scalar.EqualWithinAbs(v, vs, 1e-10) {
			t.Errorf("at %v: mean %v, variance %v; with inputs swapped %v, %v", x, m, v, ms, vs)
		}
	}
}

// An observation lowers the variance everywhere, and more noise lowers it less.
func TestVarianceDecreases(t *testing.T) {
	rng := newRand(6)
	g := mustNew(t, nil, someHyperparameters(2), randomObservations(rng, 20, 2))
	for _, x := range randomPoints(rng, 20, 2) {
		exact, err := g.Append(x, 1, 0)
		require.NoError(t, err)
		noisy, err := g.Append(x, 1, 1)
		require.NoError(t, err)
		for _, p := range append(randomPoints(rng, 10, 2), x) {
			_, before := g.Predict(p)
			_, afterExact := exact.Predict(p)
			_, afterNoisy := noisy.Predict(p)
			if afterExact > afterNoisy+1e-12 || afterNoisy > before+1e-12 {
				t.Errorf("variance at %v: %v, after a noisy observation %v, after an exact one %v", p, before, afterNoisy, afterExact)
			}
		}
	}
}

func TestNewErrors(t *testing.T) {
	valid := Observations{X: [][]float64{{0, 0}, {1, 1}}, Y: []float64{1, 2}, NoiseVariance: []float64{0, 0}}
	unit := Hyperparameters{SignalVariance: 1, LengthScales: []float64{1, 1}}
	nan, inf := math.NaN(), math.Inf(1)
	tests := []struct {
		want string
		edit func(*Hyperparameters, *Observations)
	}{
		{"X[1][0] is NaN", func(_ *Hyperparameters, o *Observations) { o.X = [][]float64{{0, 0}, {nan, 1}} }},
		{"X[0][1] is -Inf", func(_ *Hyperparameters, o *Observations) { o.X = [][]float64{{0, -inf}, {1, 1}} }},
		{"Y[1] is +Inf", func(_ *Hyperparameters, o *Observations) { o.Y = []float64{0, inf} }},
		{"NoiseVariance[0] is NaN", func(_ *Hyperparameters, o *Observations) { o.NoiseVariance = []float64{nan, 0} }},
		{"NoiseVariance[1] is -1", func(_ *Hyperparameters, o *Observations) { o.NoiseVariance = []float64{0, -1} }},
		{"Hyperparameters.Mean is NaN", func(h *Hyperparameters, _ *Observations) { h.Mean = nan }},
		{"Hyperparameters.SignalVariance is 0", func(h *Hyperparameters, _ *Observations) { h.SignalVariance = 0 }},
		{"Hyperparameters.SignalVariance is +Inf", func(h *Hyperparameters, _ *Observations) { h.SignalVariance = inf }},
		{"Hyperparameters.LengthScales[1] is -2", func(h *Hyperparameters, _ *Observations) { h.LengthScales = []float64{1, -2} }},
		{"Hyperparameters.LengthScales[0] is NaN", func(h *Hyperparameters, _ *Observations) { h.LengthScales = []float64{nan, 1} }},
		{"Hyperparameters.NoiseVariance is -1", func(h *Hyperparameters, _ *Observations) { h.NoiseVariance = -1 }},
		{"Hyperparameters.NoiseSlopes[1] is NaN", func(h *Hyperparameters, _ *Observations) { h.NoiseSlopes = []float64{0, nan} }},
		{"Hyperparameters.NoiseDecay is -1", func(h *Hyperparameters, _ *Observations) { h.NoiseDecay = -1 }},
		{"Runs[1] is 0", func(_ *Hyperparameters, o *Observations) { o.Runs = []float64{1, 0} }},
		{"Groups[0] is -3", func(_ *Hyperparameters, o *Observations) { o.Groups = []int{-3, 0} }},
		{"Positions[1] is +Inf", func(_ *Hyperparameters, o *Observations) { o.Positions = []float64{0, inf} }},
	}
	for _, test := range tests {
		h, obs := unit, valid
		test.edit(&h, &obs)
		if _, err := New(nil, h, obs); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q", err, test.want)
		}
	}
	mustNew(t, nil, unit, valid)
}

func TestAppendErrors(t *testing.T) {
	g := mustNew(t, nil, someHyperparameters(2), Observations{})
	tests := []struct {
		x        []float64
		y, noise float64
		want     string
	}{
		{[]float64{0, math.NaN()}, 0, 0, "x[1] is NaN"},
		{[]float64{0, 0}, math.Inf(-1), 0, "y is -Inf"},
		{[]float64{0, 0}, 0, -0.5, "noiseVariance is -0.5"},
	}
	for _, test := range tests {
		if _, err := g.Append(test.x, test.y, test.noise); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q", err, test.want)
		}
	}
}

func TestShapePanics(t *testing.T) {
	h := someHyperparameters(2)
	g := mustNew(t, nil, h, Observations{})
	two := make([]float64, 2)
	tests := []struct {
		name, want string
		call       func()
	}{
		{"New with short Y", panicLength, func() { _, _ = New(nil, h, Observations{X: [][]float64{{0, 0}}}) }},
		{"New with short noise", panicLength, func() {
			_, _ = New(nil, h, Observations{X: [][]float64{{0, 0}}, Y: []float64{0}, NoiseVariance: []float64{}})
		}},
		{"New with ragged X", panicDimension, func() { _, _ = New(nil, h, Observations{X: [][]float64{{0}}, Y: []float64{0}}) }},
		{"New with short runs", panicLength, func() {
			_, _ = New(nil, h, Observations{X: [][]float64{{0, 0}}, Y: []float64{0}, Runs: []float64{}})
		}},
		{"New with long groups", panicLength, func() {
			_, _ = New(nil, h, Observations{X: [][]float64{{0, 0}}, Y: []float64{0}, Groups: []int{1, 1}})
		}},
		{"New with short positions", panicLength, func() {
			_, _ = New(nil, h, Observations{X: [][]float64{{0, 0}}, Y: []float64{0}, Positions: []float64{}})
		}},
		{"New with short slopes", panicDimension, func() {
			_, _ = New(nil, Hyperparameters{SignalVariance: 1, LengthScales: two, NoiseSlopes: []float64{0}}, Observations{})
		}},
		{"Extend", panicDimension, func() { _, _ = g.Extend(Observations{X: [][]float64{{0}}, Y: []float64{0}}) }},
		{"Noise", panicDimension, func() { g.Noise([]float64{0}) }},
		{"Append", panicDimension, func() { _, _ = g.Append([]float64{0}, 0, 0) }},
		{"Predict", panicDimension, func() { g.Predict([]float64{0}) }},
		{"PredictGradient x", panicDimension, func() { g.PredictGradient(two, two, []float64{0}) }},
		{"PredictGradient dMean", panicDimension, func() { g.PredictGradient(nil, two, two) }},
		{"PredictGradient dVariance", panicDimension, func() { g.PredictGradient(two, nil, two) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			defer func() {
				if got := recover(); got != test.want {
					t.Errorf("panic %v, want %q", got, test.want)
				}
			}()
			test.call()
		})
	}
}

// A GP keeps no memory of its arguments and gives none away.
func TestGPIsIsolated(t *testing.T) {
	rng := newRand(8)
	obs, h := randomObservations(rng, 10, 2), someHyperparameters(2)
	g := mustNew(t, nil, h, obs)
	before := snapshot(g)
	obs.X[0][0], obs.Y[0], obs.NoiseVariance[0], h.LengthScales[0] = 9, 9, 9, 9
	g.Hyperparameters().LengthScales[1] = 9
	if diff := cmp.Diff(before, snapshot(g)); diff != "" {
		t.Errorf("the GP changed: %s", diff)
	}
}

// Posteriors of different sizes share workspaces; used at the same time they
// must give what they give alone.
func TestConcurrentPredictions(t *testing.T) {
	rng := newRand(10)
	small := mustNew(t, nil, someHyperparameters(2), randomObservations(rng, 5, 2))
	large := mustNew(t, nil, someHyperparameters(2), randomObservations(rng, 60, 2))
	x := randomPoints(rng, 50, 2)
	type prediction struct{ mean, variance float64 }
	run := func() []prediction {
		var got []prediction
		for _, p := range x {
			for _, g := range []*GP{small, large} {
				m, v := g.Predict(p)
				got = append(got, prediction{m, v})
			}
		}
		return got
	}
	want := run()
	results := make(chan []prediction)
	const workers = 4
	for range workers {
		go func() { results <- run() }()
	}
	for range workers {
		if got := <-results; !cmp.Equal(got, want, cmp.AllowUnexported(prediction{})) {
			t.Error("concurrent predictions differ")
		}
	}
}

// What extends a posterior has no copy of its factor, and a factor takes half of a square.
func TestFactorMemory(t *testing.T) {
	const n = 300
	rng := newRand(7)
	g := mustNew(t, nil, someHyperparameters(2), randomObservations(rng, n, 2))
	next, err := g.Append([]float64{0.5, 0.5}, 1, 0)
	require.NoError(t, err)
	c := mustCondition(t, next, randomPoints(rng, 3, 2), randomNormals(rng, 1, 3))
	for name, factor := range map[string]triangle{"Append": next.factor, "Condition": c.factor} {
		for i, row := range g.factor {
			if &factor[i][0] != &row[0] {
				t.Fatalf("%s copies row %d", name, i)
			}
		}
	}
	for i, row := range c.factor {
		if len(row) != i+1 {
			t.Errorf("row %d has %d entries", i, len(row))
		}
	}
	size := 0
	for _, block := range newLower(n).blocks {
		size += len(block.Data)
	}
	if most := n * (n + blockSize) / 2; size > most {
		t.Errorf("a factor takes %d numbers, want at most %d", size, most)
	}
}

// flatten returns the rows of a triangle one after the other.
func flatten(t triangle) []float64 {
	var all []float64
	for _, row := range t {
		all = append(all, row...)
	}
	return all
}
