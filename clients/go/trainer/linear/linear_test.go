package linear

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
	"github.com/dpareto/dpareto/internal/require"
)

// datasets returns three small datasets: one of ones only, one of any values, and a dense one.
func datasets(rows int) map[string]*dataset.Dataset {
	ones := dataset.Generated(rows, 1)
	values := *ones
	values.Values = make([]float32, len(ones.Indices))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range values.Values {
		values.Values[i] = float32(rng.NormFloat64())
	}
	matrix := &dataset.Dataset{Name: "matrix", Rows: rows, Dim: 9, Classes: 2, Labels: ones.Labels, Dense: make([]float32, 9*rows)}
	for i := range matrix.Dense {
		matrix.Dense[i] = float32(rng.NormFloat64())
	}
	return map[string]*dataset.Dataset{"ones": ones, "values": &values, "matrix": matrix}
}

// dense returns the feature vector of row i.
func dense(d *dataset.Dataset, i int) []float64 {
	x := make([]float64, d.Dim)
	indices, values := d.Row(i)
	if d.Dense != nil {
		for k, value := range values {
			x[k] = float64(value)
		}
	}
	for k, index := range indices {
		x[index] = 1
		if values != nil {
			x[index] = float64(values[k])
		}
	}
	return x
}

func randomVector(dim int, scale float64, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 9))
	v := make([]float64, dim)
	for i := range v {
		v[i] = scale * rng.NormFloat64()
	}
	return v
}

func newRisk(t testing.TB, d *dataset.Dataset, bound float64, loss Loss) Risk {
	t.Helper()
	examples, err := NewExamples(d, bound)
	require.NoError(t, err)
	return Risk{Examples: examples, Loss: loss}
}

func TestHuberValues(t *testing.T) {
	// Evaluated by hand from the definition, h = 1/2.
	for _, tt := range []struct{ z, value, first, second float64 }{
		{-1, 2, -1, 0},
		{0.4, 0.6, -1, 0},
		{0.5, 0.5, -1, 1},
		{0.75, 0.28125, -0.75, 1},
		{1, 0.125, -0.5, 1},
		{1.5, 0, 0, 1},
		{1.6, 0, 0, 0},
	} {
		loss := Huber{Width: 0.5}
		first, second := loss.Derivatives(tt.z)
		if value := loss.Value(tt.z); math.Abs(value-tt.value) > 1e-15 || math.Abs(first-tt.first) > 1e-15 || second != tt.second {
			t.Errorf("z = %v: %v, %v, %v, want %v, %v, %v", tt.z, value, first, second, tt.value, tt.first, tt.second)
		}
	}
}

func TestLogisticValues(t *testing.T) {
	// log(1 + e^(−z)), −1/(1 + e^z), e^z/(1 + e^z)² to 40 digits by mpmath 1.3.
	for _, tt := range []struct{ z, value, first, second float64 }{
		{0, 0.69314718055994530942, -0.5, 0.25},
		{2, 0.12692801104297249644, -0.11920292202211755594, 0.10499358540350651735},
		{-2, 2.1269280110429724964, -0.88079707797788244406, 0.10499358540350651735},
		{40, 4.2483542552915889863e-18, -4.2483542552915889772e-18, 4.2483542552915889592e-18},
		{-40, 40, -1, 4.2483542552915889592e-18},
	} {
		first, second := Logistic{}.Derivatives(tt.z)
		value := Logistic{}.Value(tt.z)
		for _, pair := range [][2]float64{{value, tt.value}, {first, tt.first}, {second, tt.second}} {
			if math.Abs(pair[0]-pair[1]) > 1e-15*math.Abs(pair[1]) {
				t.Errorf("z = %v: %v, %v, %v, want %v, %v, %v", tt.z, value, first, second, tt.value, tt.first, tt.second)
				break
			}
		}
	}
	for _, z := range []float64{-1e9, -800, 800, 1e9} {
		first, second := Logistic{}.Derivatives(z)
		if value := (Logistic{}).Value(z); value != max(-z, 0) || math.IsNaN(first) || second != 0 {
			t.Errorf("z = %v: %v, %v, %v", z, value, first, second)
		}
	}
}

func TestLossDerivatives(t *testing.T) {
	for name, loss := range map[string]Loss{"logistic": Logistic{}, "huber": Huber{Width: 0.5}, "wide huber": Huber{Width: 2}} {
		largest := 0.0
		for z := -6.013; z < 6; z += 0.037 { // misses the corners of the Huber loss
			first, second := loss.Derivatives(z)
			if want := fd.Derivative(loss.Value, z, &fd.Settings{Formula: fd.Central, Step: 1e-5}); math.Abs(first-want) > 1e-9 {
				t.Errorf("%s: ℓ′(%v) = %v, want %v", name, z, first, want)
			}
			derivative := func(z float64) float64 { d, _ := loss.Derivatives(z); return d }
			if want := fd.Derivative(derivative, z, &fd.Settings{Formula: fd.Central, Step: 1e-5}); math.Abs(second-want) > 1e-9 {
				t.Errorf("%s: ℓ″(%v) = %v, want %v", name, z, second, want)
			}
			curvature := func(z float64) float64 { _, d := loss.Derivatives(z); return d }
			third := fd.Derivative(curvature, z, &fd.Settings{Formula: fd.Central, Step: 1e-5})
			if got := loss.Third(z); math.Abs(got-third) > 1e-9 {
				t.Errorf("%s: ℓ‴(%v) = %v, want %v", name, z, got, third)
			}
			if first < -1 || first > 0 || second < 0 || second > loss.Curvature() {
				t.Errorf("%s: ℓ′(%v) = %v and ℓ″ = %v, want in [-1, 0] and [0, %v]", name, z, first, second, loss.Curvature())
			}
			largest = max(largest, second)
		}
		if largest < 0.999*loss.Curvature() {
			t.Errorf("%s: largest curvature %v, want nearly %v", name, largest, loss.Curvature())
		}
	}
}

// Records within the bound are divided by it, the others by their norm.
func TestExamplesAgainstDense(t *testing.T) {
	for name, d := range datasets(60) {
		for _, bound := range []float64{0.1, 3.65, math.Sqrt(14), 100} {
			examples := newRisk(t, d, bound, nil).Examples
			theta := randomVector(d.Dim, 1, 1)
			clipped := 0
			for i := range d.Rows {
				z := dense(d, i)
				norm := floats.Norm(z, 2)
				if norm > bound {
					clipped++
				}
				floats.Scale(float64(d.Labels[i])/max(bound, norm), z)
				if got, want := examples.Margin(i, theta), floats.Dot(z, theta); math.Abs(got-want) > 1e-13 {
					t.Errorf("%s, B = %v: margin %v, want %v", name, bound, got, want)
				}
				got, want := randomVector(d.Dim, 1, 2), randomVector(d.Dim, 1, 2)
				examples.AddScaled(got, -3, i)
				floats.AddScaled(want, -3, z)
				if !floats.EqualApprox(got, want, 1e-13) {
					t.Errorf("%s, B = %v: AddScaled differs by %v", name, bound, floats.Distance(got, want, 2))
				}
				squared := examples.SquaredNorm(i)
				if math.Abs(squared-floats.Dot(z, z)) > 1e-13 || squared > 1+1e-15 {
					t.Errorf("%s, B = %v: squared norm %v, want %v", name, bound, squared, floats.Dot(z, z))
				}
			}
			if bound == 0.1 && clipped != d.Rows || bound == 100 && clipped != 0 {
				t.Errorf("%s, B = %v: %d of %d rows are clipped", name, bound, clipped, d.Rows)
			}
		}
	}
}

func TestExamplesErrors(t *testing.T) {
	label := *dataset.Generated(3, 1)
	label.Labels = []float32{1, -1, 0}
	infinite := *dataset.Generated(1, 1)
	infinite.Values = make([]float32, len(infinite.Indices))
	infinite.Values[2] = float32(math.Inf(-1))
	for want, d := range map[string]*dataset.Dataset{
		"label of row 2 is 0":                  &label,
		"row 0 has a value that is not finite": &infinite,
		"is empty":                             dataset.Generated(0, 1),
	} {
		if _, err := NewExamples(d, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	for _, bound := range []float64{0, -1, math.Inf(1), math.NaN()} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("bound %v does not panic", bound)
				}
			}()
			_, _ = NewExamples(dataset.Generated(1, 1), bound)
		}()
	}
}

func TestEvaluateAgainstDense(t *testing.T) {
	for name, d := range datasets(500) {
		r := newRisk(t, d, 2, Logistic{})
		theta := randomVector(d.Dim, 1, 4)
		errorRate, loss := r.Examples.Evaluate(r.Loss, theta)
		var wrong, sum float64
		for i := range d.Rows {
			x := dense(d, i)
			score := floats.Dot(x, theta) / max(2, floats.Norm(x, 2))
			if (score > 0) != (d.Labels[i] > 0) {
				wrong++
			}
			sum += math.Log(1 + math.Exp(-score*float64(d.Labels[i])))
		}
		if want := wrong / float64(d.Rows); errorRate != want {
			t.Errorf("%s: error %v, want %v", name, errorRate, want)
		}
		if want := sum / float64(d.Rows); math.Abs(loss-want) > 1e-13 {
			t.Errorf("%s: loss %v, want %v", name, loss, want)
		}
		// The zero model takes everything for negative.
		errorRate, loss = r.Examples.Evaluate(r.Loss, make([]float64, d.Dim))
		if want := float64(datasettest.Positives(d.Labels)) / float64(d.Rows); errorRate != want || math.Abs(loss-math.Ln2) > 1e-14 {
			t.Errorf("%s: zero model: %v and %v, want %v and log 2", name, errorRate, loss, want)
		}
	}
}

func TestDerivativesAgainstFiniteDifferences(t *testing.T) {
	central := &fd.Settings{Formula: fd.Central, Step: 1e-5}
	for name, d := range datasets(30) {
		for _, loss := range []Loss{Logistic{}, Huber{Width: 0.7}} {
			r := newRisk(t, d, 1, loss)
			o := Objective{Risk: r, Ridge: 0.3, Linear: randomVector(d.Dim, 1, 6)}
			theta := randomVector(d.Dim, 2, 5)
			gradient := make([]float64, d.Dim)
			for what, f := range map[string]struct {
				value      func([]float64) float64
				gradientTo func(dst, theta []float64)
			}{"risk": {r.Value, r.GradientTo}, "objective": {o.Value, o.GradientTo}} {
				f.gradientTo(gradient, theta)
				if want := fd.Gradient(nil, f.value, theta, central); !floats.EqualApprox(gradient, want, 1e-8) {
					t.Errorf("%s, %T: gradient of the %s differs by %v", name, loss, what, floats.Distance(gradient, want, 2))
				}
			}

			hessian := mat.NewSymDense(d.Dim, nil)
			r.HessianTo(hessian, theta)
			jacobian := mat.NewDense(d.Dim, d.Dim, nil)
			fd.Jacobian(jacobian, r.GradientTo, theta, &fd.JacobianSettings{Formula: fd.Central, Step: 1e-5})
			if !mat.EqualApprox(hessian, jacobian, 1e-9) {
				t.Errorf("%s, %T: the Hessian differs from finite differences", name, loss)
			}

			v := randomVector(d.Dim, 1, 7)
			product, want := make([]float64, d.Dim), mat.NewVecDense(d.Dim, nil)
			r.HessianProductTo(product, theta, v)
			want.MulVec(hessian, mat.NewVecDense(d.Dim, v))
			if !floats.EqualApprox(product, want.RawVector().Data, 1e-13) {
				t.Errorf("%s, %T: the product differs from that with the matrix", name, loss)
			}

			// T[v]·v is the derivative of H(θ + tv)·v.
			r.ThirdProductTo(product, theta, v)
			const step = 1e-5
			ahead, behind := make([]float64, d.Dim), make([]float64, d.Dim)
			r.HessianProductTo(ahead, floats.AddScaledTo(make([]float64, d.Dim), theta, step, v), v)
			r.HessianProductTo(behind, floats.AddScaledTo(make([]float64, d.Dim), theta, -step, v), v)
			floats.Sub(ahead, behind)
			floats.Scale(1/(2*step), ahead)
			if !floats.EqualApprox(product, ahead, 1e-9) {
				t.Errorf("%s, %T: third product differs by %v", name, loss, floats.Distance(product, ahead, 2))
			}

			// The factor solves with H + τI.
			var factor mat.Cholesky
			if !o.FactorizeTo(&factor, theta) {
				t.Fatalf("%s, %T: no factor", name, loss)
			}
			solution := mat.NewVecDense(d.Dim, nil)
			require.NoError(t, factor.SolveVecTo(solution, mat.NewVecDense(d.Dim, v)))
			back := make([]float64, d.Dim)
			r.HessianProductTo(back, theta, solution.RawVector().Data)
			floats.AddScaled(back, o.Ridge, solution.RawVector().Data)
			if !floats.EqualApprox(back, v, 1e-11) {
				t.Errorf("%s, %T: W·(W⁻¹v) differs from v by %v", name, loss, floats.Distance(back, v, 2))
			}
		}
	}
}

func TestPanicsOnDimension(t *testing.T) {
	d := dataset.Generated(3, 1)
	r := newRisk(t, d, 1, Logistic{})
	short, long := make([]float64, d.Dim-1), make([]float64, d.Dim)
	for name, f := range map[string]func(){
		"value":            func() { r.Value(short) },
		"gradient":         func() { r.GradientTo(long, short) },
		"gradient dst":     func() { r.GradientTo(short, long) },
		"hessian":          func() { r.HessianTo(mat.NewSymDense(d.Dim-1, nil), long) },
		"hessian product":  func() { r.HessianProductTo(long, long, short) },
		"third product":    func() { r.ThirdProductTo(short, long, long) },
		"minimize linear":  func() { _, _ = Objective{Risk: r, Ridge: 1, Linear: short}.Minimize(t.Context(), nil, 0) },
		"minimize start":   func() { _, _ = Objective{Risk: r, Ridge: 1}.Minimize(t.Context(), short, 0) },
		"minimize ridge 0": func() { _, _ = Objective{Risk: r}.Minimize(t.Context(), nil, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			f()
		}()
	}
}
