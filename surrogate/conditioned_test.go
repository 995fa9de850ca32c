package surrogate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/internal/require"
)

// randomNormals returns s rows of b standard normals.
func randomNormals(rng *rand.Rand, s, b int) [][]float64 {
	z := make([][]float64, s)
	for i := range z {
		z[i] = make([]float64, b)
		for j := range z[i] {
			z[i][j] = rng.NormFloat64()
		}
	}
	return z
}

func mustCondition(tb testing.TB, g *GP, points, normals [][]float64) *Conditioned {
	tb.Helper()
	c, err := g.Condition(points, normals)
	require.NoError(tb, err)
	return c
}

// The definition: the joint normal distribution at the base points and x, drawn
// at the base points, and conditioned on the draw.
func TestConditionMatchesNaive(t *testing.T) {
	const d, b, samples, tol = 3, 7, 4, 1e-9
	for _, n := range []int{0, 60} {
		rng := newRand(uint64(n))
		obs, h := checkpoints(1, n, d), noisyHyperparameters(d)
		g := mustNew(t, nil, h, obs)
		points, normals := randomPoints(rng, b, d), randomNormals(rng, samples, b)
		c := mustCondition(t, g, points, normals)
		if c.Samples() != samples {
			t.Fatalf("%d samples, want %d", c.Samples(), samples)
		}

		naive := newNaive(t, Matern52{}, h, obs)
		for _, x := range append(randomPoints(rng, 8, d), points[2]) {
			mean, cov := naive.joint(append(points[:b:b], x))
			covBB := mat.NewSymDense(b, nil)
			for i := range b {
				for j := range i + 1 {
					covBB.SetSym(i, j, cov.At(i, j))
				}
				covBB.SetSym(i, i, covBB.At(i, i)+firstJitter*h.SignalVariance)
			}
			var chol mat.Cholesky
			if !chol.Factorize(covBB) {
				t.Fatal("covariance at the base points is singular")
			}
			var l mat.TriDense
			chol.LTo(&l)
			cross := mat.NewVecDense(b, nil)
			for i := range b {
				cross.SetVec(i, cov.At(i, b))
			}
			var gain mat.VecDense
			require.NoError(t, chol.SolveVecTo(&gain, cross))
			means := make([]float64, samples)
			variance := c.Predict(means, x)
			if want := cov.At(b, b) - mat.Dot(&gain, cross); !scalar.EqualWithinAbs(variance, want, tol) {
				t.Errorf("n = %d at %v: variance %v, want %v", n, x, variance, want)
			}
			for s, z := range normals {
				var draw mat.VecDense
				draw.MulVec(&l, mat.NewVecDense(b, z))
				want := mean[b] + mat.Dot(&gain, &draw)
				if !scalar.EqualWithinAbs(means[s], want, tol) {
					t.Errorf("n = %d at %v: mean %d is %v, want %v", n, x, s, means[s], want)
				}
				for i, v := range c.BaseValues(s) {
					if want := mean[i] + draw.AtVec(i); !scalar.EqualWithinAbs(v, want, tol) {
						t.Errorf("n = %d: value %d of sample %d is %v, want %v", n, i, s, v, want)
					}
				}
			}
		}
		// Every copy interpolates its values.
		for i, x := range points {
			means := make([]float64, samples)
			if variance := c.Predict(means, x); variance > 1e-6 {
				t.Errorf("variance %v at base point %d", variance, i)
			}
			for s, mean := range means {
				if want := c.BaseValues(s)[i]; !scalar.EqualWithinAbs(mean, want, 1e-3) {
					t.Errorf("mean %v at base point %d of sample %d, want %v", mean, i, s, want)
				}
			}
		}
	}
}

// Over many normals, mean and variance of the copies mix to the posterior.
func TestConditionedMoments(t *testing.T) {
	const d, b, samples = 2, 6, 20000
	rng := newRand(3)
	g := mustNew(t, nil, noisyHyperparameters(d), checkpoints(2, 40, d))
	points := randomPoints(rng, b, d)
	c := mustCondition(t, g, points, randomNormals(rng, samples, b))
	moments := func(values func(s int) float64) (mean, variance float64) {
		for s := range samples {
			mean += values(s) / samples
		}
		for s := range samples {
			variance += (values(s) - mean) * (values(s) - mean) / samples
		}
		return mean, variance
	}
	check := func(name string, mean, variance, wantMean, wantVariance float64) {
		t.Helper()
		// Five standard errors.
		if math.Abs(mean-wantMean) > 5*math.Sqrt(wantVariance/samples) || math.Abs(variance-wantVariance) > 5*wantVariance*math.Sqrt(2./samples) {
			t.Errorf("%s: mean %v, variance %v, want %v, %v", name, mean, variance, wantMean, wantVariance)
		}
	}
	for i, x := range points {
		mean, variance := moments(func(s int) float64 { return c.BaseValues(s)[i] })
		wantMean, wantVariance := g.Predict(x)
		check(fmt.Sprintf("base point %d", i), mean, variance, wantMean, wantVariance)
	}
	means := make([]float64, samples)
	for _, x := range randomPoints(rng, 5, d) {
		left := c.Predict(means, x)
		mean, variance := moments(func(s int) float64 { return means[s] })
		wantMean, wantVariance := g.Predict(x)
		check(fmt.Sprintf("at %v", x), mean, variance, wantMean, wantVariance-left)
		if left >= wantVariance {
			t.Errorf("at %v: variance %v, %v before conditioning", x, left, wantVariance)
		}
	}
}

// Without base points the copy is the posterior.
func TestConditionOnNothing(t *testing.T) {
	const d = 3
	g := mustNew(t, nil, noisyHyperparameters(d), checkpoints(4, 30, d))
	c := mustCondition(t, g, nil, [][]float64{{}})
	var p Partial
	mean, grad := make([]float64, 1), make([]float64, d)
	dMean, dVariance := make([]float64, d), make([]float64, d)
	for _, x := range randomPoints(newRand(5), 5, d) {
		variance := c.PredictPartial(&p, mean, x)
		wantMean, wantVariance := g.PredictGradient(dMean, dVariance, x)
		if !scalar.EqualWithinAbs(mean[0], wantMean, 1e-12) || !scalar.EqualWithinAbs(variance, wantVariance, 1e-12) {
			t.Errorf("at %v: mean %v, variance %v, want %v, %v", x, mean[0], variance, wantMean, wantVariance)
		}
		if p.Gradient(grad, []float64{1}, 0); maxDifference(grad, dMean) > 1e-11 {
			t.Errorf("at %v: gradient of the mean %v, want %v", x, grad, dMean)
		}
		if p.Gradient(grad, []float64{0}, 1); maxDifference(grad, dVariance) > 1e-11 {
			t.Errorf("at %v: gradient of the variance %v, want %v", x, grad, dVariance)
		}
	}
	if got := c.BaseValues(0); len(got) != 0 {
		t.Errorf("base values %v without base points", got)
	}
}

func TestPartialGradient(t *testing.T) {
	const d, b, samples = 3, 5, 4
	for seed, kernel := range kernels {
		rng := newRand(uint64(seed))
		g := mustNew(t, kernel, noisyHyperparameters(d), checkpoints(6, 40, d))
		c := mustCondition(t, g, randomPoints(rng, b, d), randomNormals(rng, samples, b))
		weights := randomNormals(rng, 1, samples)[0]
		const varianceWeight = -1.3
		f := func(x []float64) float64 {
			means := make([]float64, samples)
			sum := varianceWeight * c.Predict(means, x)
			for s, w := range weights {
				sum += w * means[s]
			}
			return sum
		}
		var p Partial
		means, alone, got := make([]float64, samples), make([]float64, samples), make([]float64, d)
		for _, x := range randomPoints(rng, 10, d) {
			variance := c.PredictPartial(&p, means, x)
			if want := c.Predict(alone, x); variance != want || !cmp.Equal(means, alone) {
				t.Errorf("%s at %v: means %v, variance %v; Predict has %v, %v", kernel.Name(), x, means, variance, alone, want)
			}
			p.Gradient(got, weights, varianceWeight)
			want := fd.Gradient(nil, f, x, &fd.Settings{Formula: fd.Central, Step: 1e-5})
			for j := range got {
				if !scalar.EqualWithinAbsOrRel(got[j], want[j], 5e-6, 5e-6) {
					t.Errorf("%s at %v: gradient %v, finite difference %v", kernel.Name(), x, got, want)
					break
				}
			}
		}
	}
}

func TestPredictBatch(t *testing.T) {
	const d, tol = 2, 1e-10
	rng := newRand(7)
	for _, test := range []struct{ n, b, samples, q int }{
		{50, 9, 5, 150}, {50, 0, 1, 64}, {0, 3, 2, 65}, {0, 0, 1, 3}, {0, 0, 1, 65}, {20, 2, 3, 0},
	} {
		g := mustNew(t, nil, noisyHyperparameters(d), checkpoints(8, test.n, d))
		c := mustCondition(t, g, randomPoints(rng, test.b, d), randomNormals(rng, test.samples, test.b))
		x := randomPoints(rng, test.q, d)
		workspaces = sync.Pool{New: workspaces.New} // no memory of larger models
		means, variances := make([]float64, test.q*test.samples), make([]float64, test.q)
		c.PredictBatch(means, variances, x)
		want := make([]float64, test.samples)
		for a, p := range x {
			variance := c.Predict(want, p)
			got := means[a*test.samples : (a+1)*test.samples]
			if !scalar.EqualWithinAbs(variances[a], variance, tol) || maxDifference(got, want) > tol {
				t.Errorf("%+v at %v: means %v, variance %v, want %v, %v", test, p, got, variances[a], want, variance)
			}
		}
		if m, v := c.PredictWhitened(g.Whiten(x)); !slices.Equal(m, means) || !slices.Equal(v, variances) {
			t.Errorf("%+v: predictions at whitened points differ", test)
		}
	}
}

// Base points may repeat, and coincide with observations without noise.
func TestConditionOnDuplicates(t *testing.T) {
	const d, samples = 2, 8
	rng := newRand(9)
	x := randomPoints(rng, 40, d)
	obs := Observations{X: x}
	for _, p := range x {
		obs.Y = append(obs.Y, math.Sin(3*p[0])+p[1])
	}
	for _, noise := range []float64{0, 1e-9, 1e-4} {
		g := mustNew(t, nil, Hyperparameters{SignalVariance: 2, LengthScales: []float64{0.8, 0.9}, NoiseVariance: noise}, obs)
		near := []float64{x[5][0] + 1e-7, x[5][1]}
		points := append(randomPoints(rng, 3, d), x[0], x[1], x[1], x[5], near)
		c := mustCondition(t, g, points, randomNormals(rng, samples, len(points)))
		means := make([]float64, samples)
		for i, p := range points {
			variance := c.Predict(means, p)
			if variance > 1e-6 {
				t.Errorf("noise %v: variance %v at base point %d", noise, variance, i)
			}
			wantMean, wantVariance := g.Predict(p)
			for s, mean := range means {
				limit := 6*math.Sqrt(wantVariance) + 1e-3
				if v := c.BaseValues(s)[i]; !(math.Abs(v-wantMean) < limit) || !(math.Abs(mean-v) < 1e-3) {
					t.Errorf("noise %v: base point %d has value %v, mean %v; the posterior mean is %v", noise, i, v, mean, wantMean)
				}
			}
		}
	}
}

func TestConditionErrors(t *testing.T) {
	h := someHyperparameters(1)
	g := mustNew(t, nil, h, Observations{})
	if _, err := g.Condition([][]float64{{0}, {math.NaN()}}, [][]float64{{0, 0}}); err == nil || err.Error() != "surrogate: points[1][0] is NaN, want a finite number" {
		t.Errorf("error %v, want one about points[1][0]", err)
	}
	if _, err := g.Condition([][]float64{{0}}, [][]float64{{0}, {math.Inf(1)}}); err == nil || err.Error() != "surrogate: normals[1][0] is +Inf, want a finite number" {
		t.Errorf("error %v, want one about normals[1][0]", err)
	}
	if _, err := mustNew(t, indefinite{}, h, Observations{}).Condition([][]float64{{0}, {1}}, [][]float64{{0, 0}}); !errors.Is(err, ErrNotPositiveDefinite) {
		t.Errorf("error %v, want ErrNotPositiveDefinite", err)
	}
}

func TestConditionedPanics(t *testing.T) {
	g := mustNew(t, nil, someHyperparameters(2), Observations{})
	x, one, two := []float64{0, 0}, make([]float64, 1), make([]float64, 2)
	c := mustCondition(t, g, nil, [][]float64{{}})
	other, err := g.Append(x, 1, 0)
	require.NoError(t, err)
	var p Partial
	c.PredictPartial(&p, one, x)
	for _, test := range []struct {
		name, want string
		call       func()
	}{
		{"Condition without normals", panicLength, func() { _, _ = g.Condition(nil, nil) }},
		{"Condition with long normals", panicLength, func() { _, _ = g.Condition(nil, [][]float64{{1}}) }},
		{"Condition x", panicDimension, func() { _, _ = g.Condition([][]float64{{1}}, [][]float64{{1}}) }},
		{"Predict x", panicDimension, func() { c.Predict(one, one) }},
		{"Predict means", panicDimension, func() { c.Predict(two, x) }},
		{"PredictPartial x", panicDimension, func() { c.PredictPartial(&p, one, one) }},
		{"PredictPartial means", panicDimension, func() { c.PredictPartial(&p, two, x) }},
		{"Gradient grad", panicDimension, func() { p.Gradient(one, one, 1) }},
		{"Gradient weights", panicDimension, func() { p.Gradient(two, two, 1) }},
		{"PredictBatch means", panicLength, func() { c.PredictBatch(two, one, [][]float64{x}) }},
		{"PredictBatch variances", panicLength, func() { c.PredictBatch(one, two, [][]float64{x}) }},
		{"PredictBatch x", panicDimension, func() { c.PredictBatch(one, one, [][]float64{one}) }},
		{"Whiten x", panicDimension, func() { g.Whiten([][]float64{one}) }},
		{"PredictWhitened of another posterior", panicPosterior, func() { c.PredictWhitened(other.Whiten([][]float64{x})) }},
	} {
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

// overlapping is a correlation a little too large between different points.
type overlapping struct{}

const excess = 5e-8

func (overlapping) Name() string { return "overlapping" }

func (overlapping) Correlation(r2 float64) (k, dk float64) {
	if r2 == 0 {
		return 1, 0
	}
	return 1 + excess, 0
}

// Where the usual jitter is not enough, the covariance gets ten times as much: it begins again
// from what it was.
func TestConditionWithMoreJitter(t *testing.T) {
	g := mustNew(t, overlapping{}, Hyperparameters{SignalVariance: 1, LengthScales: []float64{1}}, Observations{})
	c := mustCondition(t, g, [][]float64{{0}, {1}}, [][]float64{{0, 0}})
	const jitter = 10 * firstJitter
	first := math.Sqrt(1 + jitter)
	second := (1 + excess) / first
	want := []float64{first, second, math.Sqrt(1 + jitter - second*second)}
	if diff := maxDifference(flatten(c.factor), want); diff > 1e-11 {
		t.Errorf("factor %v, want %v", flatten(c.factor), want)
	}
}
