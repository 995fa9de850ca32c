package bayesopt

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/internal/require"
)

// pairs draws utilities of n candidates on p pairs of data sets with correlation k.
func pairs(rng *rand.Rand, kernel *mat.SymDense, p int, k, noise float64) (first, second *mat.Dense) {
	n := kernel.SymmetricDim()
	var factor mat.Cholesky
	jittered := mat.NewSymDense(n, nil)
	jittered.CopySym(kernel)
	for i := range n {
		jittered.SetSym(i, i, 1+1e-9)
	}
	if !factor.Factorize(jittered) {
		panic("no covariance")
	}
	var lower mat.TriDense
	factor.LTo(&lower)
	draw := func() *mat.VecDense {
		z := mat.NewVecDense(n, nil)
		for i := range n {
			z.SetVec(i, rng.NormFloat64())
		}
		var f mat.VecDense
		f.MulVec(&lower, z)
		return &f
	}
	first, second = mat.NewDense(p, n, nil), mat.NewDense(p, n, nil)
	for i := range p {
		common, a, b := draw(), draw(), draw()
		for j := range n {
			base := math.Sqrt(k) * common.AtVec(j)
			first.Set(i, j, base+math.Sqrt(1-k)*a.AtVec(j)+noise*rng.NormFloat64())
			second.Set(i, j, base+math.Sqrt(1-k)*b.AtVec(j)+noise*rng.NormFloat64())
		}
	}
	return first, second
}

// The likelihood by rotation equals the one of the Kronecker product, written out.
func TestCorrelationLikelihood(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	const n, noise = 6, 0.2
	kernel := squaredExponential(randomPoints(rng, n, 2), 0.5)
	first, second := pairs(rng, kernel, 3, 0.7, noise)
	grid := []float64{0, 0.3, 0.7, 0.99}
	e, err := EstimateCorrelation(first, second, kernel, noise, grid)
	require.NoError(t, err)
	for g, k := range grid {
		covariance := mat.NewSymDense(2*n, nil)
		for i := range n {
			for j := i; j < n; j++ {
				v := kernel.At(i, j)
				covariance.SetSym(i, j, v)
				covariance.SetSym(n+i, n+j, v)
			}
			for j := range n {
				covariance.SetSym(i, n+j, k*kernel.At(i, j))
			}
		}
		for i := range 2 * n {
			covariance.SetSym(i, i, covariance.At(i, i)+noise*noise)
		}
		var factor mat.Cholesky
		if !factor.Factorize(covariance) {
			t.Fatal("no covariance")
		}
		want := 0.0
		for p := range 3 {
			y := mat.NewVecDense(2*n, append(append([]float64{}, first.RawRowView(p)...), second.RawRowView(p)...))
			var solved mat.VecDense
			require.NoError(t, factor.SolveVecTo(&solved, y))
			want -= 0.5 * (mat.Dot(y, &solved) + factor.LogDet() + 2*n*math.Log(2*math.Pi))
		}
		if got := e.LogLikelihoods[g]; math.Abs(got-want) > 1e-6 {
			t.Errorf("k1 = %g: %.9g, want %.9g", k, got, want)
		}
	}
}

// On data of the model the estimate is near the truth; on the paper's grid it is 0.95,
// where that ends, if k1 is 0.999.
func TestEstimateCorrelation(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	const noise = 0.01
	kernel := squaredExponential(randomPoints(rng, 30, 2), 0.3)
	for _, truth := range []float64{0.7, 0.9, 0.999} {
		first, second := pairs(rng, kernel, 40, truth, noise)
		e, err := EstimateCorrelation(first, second, kernel, noise, CorrelationGrid(20))
		if err != nil || e.AtEdge || math.Abs(math.Log10((1-e.Correlation)/(1-truth))) > 0.25 {
			t.Errorf("k1 = %g: estimate %g, at the edge %t, %v", truth, e.Correlation, e.AtEdge, err)
		}
		e, err = EstimateCorrelation(first, second, kernel, noise, PaperCorrelationGrid())
		if err != nil || truth == 0.999 && !(e.Correlation == 0.95 && e.AtEdge) {
			t.Errorf("k1 = %g on the paper's grid: %g, at the edge %t, %v", truth, e.Correlation, e.AtEdge, err)
		}
	}
}

func TestCorrelationGrid(t *testing.T) {
	grid := CorrelationGrid(12)
	for j, want := range map[int]float64{3: 0.9, 7: 0.99, 11: 0.999} {
		if math.Abs(grid[j]-want) > 1e-15 {
			t.Errorf("value %d is %.17g, want %g", j, grid[j], want)
		}
	}
	if paper := PaperCorrelationGrid(); len(paper) != 19 || paper[0] != 0.05 || paper[18] != 0.95 {
		t.Errorf("the paper's grid is %v", paper)
	}
}

func TestStandardise(t *testing.T) {
	first, second := mat.NewDense(1, 2, []float64{1, 2}), mat.NewDense(1, 2, []float64{3, 6})
	mean, deviation := Standardise(first, second)
	if mean != 3 || math.Abs(deviation-math.Sqrt(14.0/3)) > 1e-12 || math.Abs(second.At(0, 1)-3/deviation) > 1e-12 || first.At(0, 0) != -second.At(0, 1)*2/3 {
		t.Errorf("mean %g, deviation %g, %v, %v", mean, deviation, first.RawMatrix().Data, second.RawMatrix().Data)
	}
	constant := mat.NewDense(1, 2, []float64{5, 5})
	if _, deviation = Standardise(constant, mat.NewDense(1, 2, []float64{5, 5})); deviation != 0 || constant.At(0, 0) != 0 {
		t.Errorf("constant utilities become %g, deviation %g", constant.At(0, 0), deviation)
	}
}

func TestEstimateCorrelationErrors(t *testing.T) {
	f := mat.NewDense(1, 2, nil)
	for _, grid := range [][]float64{nil, {1}, {-0.1}} {
		if _, err := EstimateCorrelation(f, f, identity(2), 0.1, grid); err == nil {
			t.Errorf("grid %v", grid)
		}
	}
	if _, err := EstimateCorrelation(f, f, identity(2), 0, []float64{0.5}); err == nil {
		t.Error("no noise")
	}
	for _, other := range []struct {
		rows, columns, kernel int
	}{{1, 2, 3}, {1, 3, 2}, {2, 2, 2}} {
		func() {
			defer func() {
				if got := recover(); got != "bayesopt: dimension mismatch" {
					t.Errorf("%+v: panic %v", other, got)
				}
			}()
			_, _ = EstimateCorrelation(f, mat.NewDense(other.rows, other.columns, nil), identity(other.kernel), 0.1, []float64{0.5})
		}()
	}
}
