package objectiveperturbation

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// The records of tiny are ten times as large as in the case, so that float32 holds them;
// the norm bound 10 scales them back.
var tiny = &dataset.Dataset{
	Name: "tiny", Rows: 4, Dim: 2,
	RowStart: []int{0, 2, 4, 6, 8},
	Indices:  []int32{0, 1, 0, 1, 0, 1, 0, 1},
	Values:   []float32{6, 2, -3, 8, 1, -9, 5, 5},
	Labels:   []float32{1, -1, 1, -1},
}

// TestTinyCase compares an example that was solved independently, in Python with SciPy: n
// = 4, λ = 0.05, u = (1.2, −0.7), the original calibration, whose two branches meet
// between ε = 1.5 and 2. The derivatives in ε follow from the implicit function theorem
// on the optimality condition
//
//	∇L(θ) + τθ + u/(nβ) = 0,  L(θ) the mean loss:
//
// with W = ∇²L + τI and g = b′/n + τ′θ it is θ′ = −W⁻¹g and L′ = ∇L·θ′, and
// θ″ = −W⁻¹(b″/n + τ″θ + 2τ′θ′ + T[θ′]θ′), L″ = θ′·∇²L·θ′ + ∇L·θ″.
func TestTinyCase(t *testing.T) {
	const n, lambda, c = 4, 0.05, 0.25
	u := []float64{1.2, -0.7}
	examples, err := linear.NewExamples(tiny, 10)
	require.NoError(t, err)
	risk := linear.Risk{Examples: examples, Loss: linear.Logistic{}}
	var start []float64
	for _, tt := range []struct {
		eps                          float64
		branch                       int
		beta, delta, theta0, theta1  float64
		l, dl, d2l, dtheta0, dtheta1 float64
	}{
		{0.25, 1, 0.0625, 0.9190754996, -4.744287802, 2.487381899, 2.235866571, -0.5399661344, -0.01229690642, 0.2453671148, -1.258659705},
		{0.5, 1, 0.125, 0.4194008722, -4.67770622, 2.172079816, 2.100902689, -0.537981217, 0.02996461369, 0.2863341551, -1.260406546},
		{1.0, 1, 0.25, 0.170050729, -4.518076132, 1.55456293, 1.839787134, -0.498175837, 0.1281432508, 0.3467732242, -1.192487697},
		{1.5, 1, 0.375, 0.0873652293, -4.336410522, 0.9951088011, 1.609678875, -0.4178672596, 0.1804416656, 0.3750966261, -1.034097326},
		{2.0, 2, 0.1890697838, 0, -26.73528144, 11.01073604, 10.81294372, -39.33856068, 208.0773133, 83.90521419, -48.97064899},
		{4.0, 2, 1.189069784, 0, -2.134795141, -0.6690572621, 0.7792392228, -0.254084001, 0.293562965, 1.295647173, -0.3625808673},
		{8.0, 2, 3.189069784, 0, -0.2961057662, -1.29098773, 0.4789402231, -0.02149794255, 0.007819102239, 0.167429924, -0.06888410121},
	} {
		m := privacy.ObjectivePerturbation{DatasetSize: n, Regularization: lambda, Curvature: c, Epsilon: tt.eps, Calibration: privacy.Chaudhuri}
		o := Objective(risk, m, u)
		minimum, err := o.Minimize(t.Context(), start, 1e-13)
		require.NoError(t, err)
		theta := minimum.Theta
		start = theta // the next one is warm

		// β and τ on the two branches, with their derivatives in ε.
		beta, dBeta, dTau, d2Tau := tt.eps/4, 0.25, 0.0, 0.0
		if e := math.Expm1(tt.eps / 4); tt.branch == 1 {
			dTau = -c * (e + 1) / (4 * n * e * e)
			d2Tau = c * (e + 1) * (e + 2) / (16 * n * e * e * e)
		} else {
			beta, dBeta = (tt.eps-2*math.Log1p(c/(n*lambda)))/2, 0.5
		}
		var factor mat.Cholesky
		if !o.FactorizeTo(&factor, theta) {
			t.Fatal("no factor")
		}
		solve := func(v []float64) []float64 {
			x := mat.NewVecDense(len(v), nil)
			require.NoError(t, factor.SolveVecTo(x, mat.NewVecDense(len(v), v)))
			return x.RawVector().Data
		}
		right := make([]float64, 2)
		floats.AddScaled(right, dBeta/(beta*beta*n), u) // −b′/n
		floats.AddScaled(right, -dTau, theta)
		dTheta := solve(right)

		third := make([]float64, 2)
		risk.ThirdProductTo(third, theta, dTheta)
		floats.Scale(-1, third)
		floats.AddScaled(third, -2*dBeta*dBeta/(beta*beta*beta*n), u) // −b″/n
		floats.AddScaled(third, -d2Tau, theta)
		floats.AddScaled(third, -2*dTau, dTheta)
		d2Theta := solve(third)

		gradient, curved := make([]float64, 2), make([]float64, 2)
		risk.GradientTo(gradient, theta)
		risk.HessianProductTo(curved, theta, dTheta)
		for _, v := range []struct {
			name      string
			got, want float64
		}{
			{"β", beta, tt.beta},
			{"τ − λ", o.Ridge - lambda, tt.delta},
			{"θ₀", theta[0], tt.theta0},
			{"θ₁", theta[1], tt.theta1},
			{"L", risk.Value(theta), tt.l},
			{"L′", floats.Dot(gradient, dTheta), tt.dl},
			{"L″", floats.Dot(curved, dTheta) + floats.Dot(gradient, d2Theta), tt.d2l},
			{"θ₀′", dTheta[0], tt.dtheta0},
			{"θ₁′", dTheta[1], tt.dtheta1},
		} {
			// The values have ten digits.
			if math.Abs(v.got-v.want) > 1e-9*max(1, math.Abs(v.want)) {
				t.Errorf("ε = %v: %s = %.12g, want %.10g", tt.eps, v.name, v.got, v.want)
			}
		}
	}
}

// The minimiser fulfils the optimality condition of the definition, for all rules
// and with the same unit noise.
func TestObjectiveIsCoupled(t *testing.T) {
	data := dataset.Generated(300, 1)
	examples, err := linear.NewExamples(data, 4)
	require.NoError(t, err)
	u := make([]float64, data.Dim)
	UnitNoise(u, random.New(1, 0, 0, 0))
	for _, loss := range []linear.Loss{linear.Logistic{}, linear.Huber{Width: 0.5}} {
		risk := linear.Risk{Examples: examples, Loss: loss}
		for _, rule := range []privacy.ObjectiveCalibration{privacy.RankOne, privacy.Chaudhuri, privacy.ContinuousChaudhuri} {
			for _, epsilon := range []float64{0.1, 1, 10} {
				m := privacy.ObjectivePerturbation{
					DatasetSize: 300, Regularization: 1e-3, Curvature: loss.Curvature(), Epsilon: epsilon, Calibration: rule,
				}
				minimum, err := Objective(risk, m, u).Minimize(t.Context(), nil, 0)
				require.NoError(t, err)
				beta, tau := m.Calibrate()
				rest := make([]float64, data.Dim)
				risk.GradientTo(rest, minimum.Theta)
				floats.AddScaled(rest, tau, minimum.Theta)
				floats.AddScaled(rest, 1/(300*beta), u)
				if norm := floats.Norm(rest, 2); norm > 1.01e-10 {
					t.Errorf("%T, rule %v, ε = %v: the optimality condition fails by %v", loss, rule, epsilon, norm)
				}
			}
		}
	}
}

// The norm is Gamma distributed and the direction uniform.
func TestUnitNoiseDistribution(t *testing.T) {
	const runs = 20000
	for _, d := range []int{1, 2, 3, 20} {
		stream := random.New(uint64(d), 3, 0, 0)
		norms := make([]float64, runs)
		u := make([]float64, d)
		mean, second := make([]float64, d), mat.NewSymDense(d, nil)
		var fourth float64
		for r := range runs {
			UnitNoise(u, stream)
			norms[r] = floats.Norm(u, 2)
			floats.Scale(1/norms[r], u)
			floats.AddScaled(mean, 1.0/runs, u)
			second.SymRankOne(second, 1.0/runs, mat.NewVecDense(d, u))
			fourth += math.Pow(u[0], 4) / runs
		}

		// Kolmogorov and Smirnov: √n·D exceeds 2.2 once in 8000 times.
		slices.Sort(norms)
		gamma := distuv.Gamma{Alpha: float64(d), Beta: 1}
		largest := 0.0
		for i, x := range norms {
			p := gamma.CDF(x)
			largest = max(largest, math.Abs(p-float64(i)/runs), math.Abs(p-float64(i+1)/runs))
		}
		if largest*math.Sqrt(runs) > 2.2 {
			t.Errorf("d = %d: distance of the norm from Gamma(d, 1) is %v/√n", d, largest*math.Sqrt(runs))
		}

		// Moments of a uniform direction v: E v = 0, E vvᵀ = I/d, E v₁⁴ = 3/(d(d+2)).
		// Five standard errors, as there are up to 230 of them.
		e := float64(d)
		m4, m22 := 3/(e*(e+2)), 1/(e*(e+2))
		for i := range d {
			if math.Abs(mean[i]) > 5*math.Sqrt(1/(e*runs)) {
				t.Errorf("d = %d: mean of coordinate %d is %v", d, i, mean[i])
			}
			for j := range i + 1 {
				want, variance := 0.0, m22
				if i == j {
					want, variance = 1/e, m4-1/(e*e)
				}
				if math.Abs(second.At(i, j)-want) > 5*math.Sqrt(variance/runs)+1e-12 {
					t.Errorf("d = %d: second moment (%d, %d) is %v, want %v", d, i, j, second.At(i, j), want)
				}
			}
		}
		m8 := 105 / (e * (e + 2) * (e + 4) * (e + 6))
		if math.Abs(fourth-m4) > 5*math.Sqrt((m8-m4*m4)/runs)+1e-12 {
			t.Errorf("d = %d: fourth moment %v, want %v", d, fourth, m4)
		}
	}
}

// For d = 3 a coordinate has the density (1 + |t|)·e^(−|t|)/4, unlike Laplace noise.
func TestUnitNoiseMarginal(t *testing.T) {
	const runs = 20000
	stream := random.New(8, 3, 0, 0)
	coordinates := make([]float64, runs)
	var u [3]float64
	for r := range coordinates {
		UnitNoise(u[:], stream)
		coordinates[r] = u[1]
	}
	slices.Sort(coordinates)
	largest := 0.0
	for i, x := range coordinates {
		// ∫ₓ^∞ (1 + t)·e^(−t)/4 dt = (2 + x)·e^(−x)/4 for x >= 0.
		p := (2 + math.Abs(x)) * math.Exp(-math.Abs(x)) / 4
		if x > 0 {
			p = 1 - p
		}
		largest = max(largest, math.Abs(p-float64(i)/runs), math.Abs(p-float64(i+1)/runs))
	}
	if largest*math.Sqrt(runs) > 2.2 {
		t.Errorf("distance of a coordinate from its marginal is %v/√n", largest*math.Sqrt(runs))
	}
}

// The noise below may not change: stored results depend on it.
func TestUnitNoiseGolden(t *testing.T) {
	u := make([]float64, 3)
	UnitNoise(u, random.New(1, 2, 0, 0))
	want := []float64{2.057388063794558, 1.132233009020385, -2.020612234431134}
	if !floats.EqualApprox(u, want, 1e-12) {
		t.Errorf("noise %.15f, want %.15f", u, want)
	}
	UnitNoise(nil, nil) // nothing to draw
}

// The ε that the mechanism claims bounds the log ratio of densities of the model on
// neighbouring records, here of one feature, where the model's density is the density of
// b at the noise that makes it the minimiser, times the derivative of b in θ.
func TestDensityRatio(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	largest := 0.0
	for range 300 {
		n := 1 + rng.IntN(4)
		z := make([]float64, n)
		for i := range z {
			z[i] = 2*rng.Float64() - 1
			if rng.IntN(2) == 0 {
				z[i] = math.Copysign(1, z[i])
			}
		}
		other := slices.Clone(z)
		other[0] = -z[0]
		m := privacy.ObjectivePerturbation{
			DatasetSize: int64(n), Regularization: math.Pow(10, -2+3*rng.Float64()), Curvature: 0.25,
			Epsilon: math.Pow(10, -1+2*rng.Float64()), Calibration: privacy.ObjectiveCalibration(rng.IntN(3)),
			Split: 0.02 + 0.9*rng.Float64(),
		}
		beta, tau := m.Calibrate()
		logDensity := func(z []float64, theta float64) float64 {
			b, slope := -float64(n)*tau*theta, float64(n)*tau
			for _, z := range z {
				first, second := linear.Logistic{}.Derivatives(theta * z)
				b -= first * z
				slope += second * z * z
			}
			return -beta*math.Abs(b) + math.Log(slope)
		}
		for theta := -5.0; theta < 5; theta += 0.05 {
			ratio := math.Abs(logDensity(z, theta) - logDensity(other, theta))
			largest = max(largest, ratio/m.Epsilon)
			if ratio > m.Epsilon*(1+1e-12) {
				t.Errorf("%+v, records %v and %v: log ratio %v at θ = %v", m, z, other, ratio, theta)
			}
		}
	}
	// In one dimension two logistic gradients differ by at most 1, where the proof
	// allows 2: the ratio can come to about a half of ε.
	if largest < 0.45 {
		t.Errorf("the largest log ratio is %v of ε: the test is too weak", largest)
	}
}

func TestObjectivePanics(t *testing.T) {
	examples, err := linear.NewExamples(tiny, 10)
	require.NoError(t, err)
	good := privacy.ObjectivePerturbation{DatasetSize: 4, Regularization: 1, Curvature: 0.25, Epsilon: 1}
	risk := linear.Risk{Examples: examples, Loss: linear.Logistic{}}
	for name, f := range map[string]func(){
		"size":      func() { m := good; m.DatasetSize = 5; Objective(risk, m, nil) },
		"curvature": func() { m := good; m.Curvature = 0.2; Objective(risk, m, nil) },
		"noise":     func() { Objective(risk, good, make([]float64, 3)) },
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
	if o := Objective(risk, good, nil); o.Linear != nil || o.Ridge < 1 {
		t.Errorf("objective without noise: %+v", o)
	}
}
