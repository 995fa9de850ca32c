package surrogate

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/internal/require"
)

// The definition of a mixture, by many draws.
func TestScaleMixesGaussians(t *testing.T) {
	const draws = 200_000
	for _, kernel := range []Mixture{Matern52{}, SquaredExponential{}} {
		rng := newRand(1)
		scales := make([]float64, draws)
		for i := range scales {
			scales[i] = kernel.Scale(rng)
		}
		for _, r2 := range []float64{0, 0.01, 0.3, 1, 4, 20} {
			terms := make([]float64, draws)
			for i, s := range scales {
				terms[i] = math.Exp(-s * s * r2 / 2)
			}
			want, _ := kernel.Correlation(r2)
			got, sd := stat.MeanStdDev(terms, nil)
			if se := sd / math.Sqrt(draws); math.Abs(got-want) > 5*se+1e-12 {
				t.Errorf("%s: correlation %g by draws at r² = %g, want %g (standard error %g)", kernel.Name(), got, r2, want, se)
			}
		}
	}
}

// The moments of many paths are those of the joint posterior.
func TestPathsHaveMomentsOfPosterior(t *testing.T) {
	const d, q, count, frequencies, repeats = 2, 6, 400, 400, 25
	for _, n := range []int{0, 25} {
		obs, h := checkpoints(1, n, d), noisyHyperparameters(d)
		g := mustNew(t, nil, h, obs)
		rng := newRand(uint64(7 + n))
		x := randomPoints(rng, q, d)
		if n > 0 {
			x[0] = obs.X[3]
		}
		mean, cov := newNaive(t, Matern52{}, h, obs).joint(x)

		sums, products := make([]float64, q), mat.NewDense(q, q, nil)
		for range repeats { // with other frequencies
			p, err := g.Paths(rng, count, frequencies)
			require.NoError(t, err)
			values := make([]float64, q*count)
			p.Evaluate(values, x)
			for a := range q {
				for s := range count {
					sums[a] += values[a*count+s]
					for b := range q {
						products.Set(a, b, products.At(a, b)+(values[a*count+s]-mean[a])*(values[b*count+s]-mean[b]))
					}
				}
			}
		}
		const total = count * repeats
		for a := range q {
			sa := math.Sqrt(cov.At(a, a))
			if got := sums[a] / total; math.Abs(got-mean[a]) > 5*sa/math.Sqrt(total) {
				t.Errorf("n = %d: mean %g at point %d, want %g (standard deviation %g)", n, got, a, mean[a], sa)
			}
			for b := range q {
				scale := sa * math.Sqrt(cov.At(b, b))
				if got, want := products.At(a, b)/total, cov.At(a, b); math.Abs(got-want) > 0.06*scale {
					t.Errorf("n = %d: covariance %g of points %d and %d, want %g", n, got, a, b, want)
				}
			}
		}
	}
}

// With few observations of a known function without noise, paths go through them.
func TestPathsPassThroughObservations(t *testing.T) {
	rng := newRand(3)
	obs := Observations{X: randomPoints(rng, 12, 2)}
	for _, x := range obs.X {
		obs.Y = append(obs.Y, math.Sin(5*x[0])+x[1])
	}
	h := Hyperparameters{SignalVariance: 1, LengthScales: []float64{0.3, 0.5}}
	g := mustNew(t, nil, h, obs)
	const paths = 5
	p, err := g.Paths(rng, paths, 50)
	require.NoError(t, err)
	values := make([]float64, len(obs.X)*paths)
	p.Evaluate(values, obs.X)
	for i, y := range obs.Y {
		for s := range paths {
			if v := values[i*paths+s]; math.Abs(v-y) > 1e-6 {
				t.Errorf("path %d is %g at observation %d, want %g", s, v, i, y)
			}
		}
	}
}

// The noise that is drawn has the covariance that is fitted.
func TestDrawnNoise(t *testing.T) {
	const n, d, draws = 12, 2, 40_000
	obs, h := checkpoints(2, n, d), noisyHyperparameters(d)
	h.RunVariance = 0.2
	g := mustNew(t, nil, h, obs)
	want := mat.NewSymDense(n, nil)
	row := make([]float64, n)
	for i := range n {
		clear(row)
		g.noise.addCovariances(row[:i], i)
		row[i] = g.noise.variance(i) + 0.01
		for j, v := range row[:i+1] {
			want.SetSym(i, j, v)
		}
	}
	got, rng, e := mat.NewDense(n, n, nil), newRand(4), make([]float64, n)
	for range draws {
		g.noise.draw(e, 0.01, rng)
		for i := range n {
			for j := range n {
				got.Set(i, j, got.At(i, j)+e[i]*e[j]/draws)
			}
		}
	}
	for i := range n {
		for j := range n {
			scale := math.Sqrt(want.At(i, i) * want.At(j, j))
			if math.Abs(got.At(i, j)-want.At(i, j)) > 5*scale*math.Sqrt(2./draws) {
				t.Errorf("covariance %g of the noise of observations %d and %d, want %g", got.At(i, j), i, j, want.At(i, j))
			}
		}
	}
}

func TestPathsNeedMixture(t *testing.T) {
	g := mustNew(t, shifted{}, Hyperparameters{SignalVariance: 1, LengthScales: []float64{1}}, Observations{})
	if _, err := g.Paths(newRand(1), 1, 1); err == nil {
		t.Error("no error")
	}
}

func BenchmarkPaths(b *testing.B) {
	const d, n, q, count, frequencies = 10, 500, 11_000, 64, 512
	rng := newRand(1)
	obs := Observations{X: randomPoints(rng, n, d), Y: make([]float64, n)}
	for i := range obs.Y {
		obs.Y[i] = rng.NormFloat64()
	}
	h := Hyperparameters{SignalVariance: 1, NoiseVariance: 0.1, LengthScales: make([]float64, d)}
	for j := range h.LengthScales {
		h.LengthScales[j] = 0.5
	}
	g := mustNew(b, nil, h, obs)
	x, values := randomPoints(rng, q, d), make([]float64, q*count)
	for b.Loop() {
		p, err := g.Paths(rand.New(rand.NewPCG(1, 2)), count, frequencies)
		require.NoError(b, err)
		p.Evaluate(values, x)
	}
}
