package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// unitNoise returns draw number r under a seed.
func unitNoise(dim int, seed uint64, r int) []float64 {
	u := make([]float64, dim)
	objectiveperturbation.UnitNoise(u, random.New(seed, r, 0, 0))
	return u
}

// normal returns dense examples of norm 1 with independent normal features before they
// are scaled, feature j having the standard deviation j^−decay, and with labels from a
// logistic model.
func normal(tb testing.TB, rows, dim int, decay float64, seed uint64) *linear.Examples {
	tb.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	d := &dataset.Dataset{Name: "normal", Rows: rows, Dim: dim, Classes: 2, RowStart: []int{0}}
	truth, x := make([]float64, dim), make([]float64, dim)
	for j := range truth {
		truth[j] = 1.2 * float64(1-2*(j%2))
	}
	for range rows {
		for j := range x {
			x[j] = rng.NormFloat64() * math.Pow(float64(j+1), -decay)
		}
		floats.Scale(1/floats.Norm(x, 2), x)
		label := float32(-1)
		if rng.Float64() < 1/(1+math.Exp(-floats.Dot(x, truth))) {
			label = 1
		}
		for j, v := range x {
			d.Indices = append(d.Indices, int32(j))
			d.Values = append(d.Values, float32(v))
		}
		d.RowStart = append(d.RowStart, len(d.Indices))
		d.Labels = append(d.Labels, label)
	}
	e, err := linear.NewExamples(d, 1)
	require.NoError(tb, err)
	return e
}

// The records of tiny are ten times as large as in the case below, so that float32 holds
// them; the norm bound 10 scales them back.
func tiny(t *testing.T) *linear.Examples {
	t.Helper()
	e, err := linear.NewExamples(&dataset.Dataset{
		Name: "tiny", Rows: 4, Dim: 2,
		RowStart: []int{0, 2, 4, 6, 8},
		Indices:  []int32{0, 1, 0, 1, 0, 1, 0, 1},
		Values:   []float32{6, 2, -3, 8, 1, -9, 5, 5},
		Labels:   []float32{1, -1, 1, -1},
	}, 10)
	require.NoError(t, err)
	return e
}

// TestTinyCase compares an example that was solved independently, in Python with
// SciPy: n = 4, λ = 0.05, u = (1.2, −0.7), the original calibration.
func TestTinyCase(t *testing.T) {
	p := Problem{
		Risk:           linear.Risk{Examples: tiny(t), Loss: linear.Logistic{}},
		Regularization: 0.05, Calibration: privacy.Chaudhuri, Tolerance: 1e-13,
	}
	u := []float64{1.2, -0.7}
	for _, tt := range []struct {
		eps                         float64
		branch                      int
		beta, delta, theta0, theta1 float64
		l, dl, d2l                  float64
		dtheta0, dtheta1            float64
	}{
		{0.25, 1, 0.0625, 0.9190754996, -4.744287802, 2.487381899, 2.235866571, -0.5399661344, -0.01229690642, 0.2453671148, -1.258659705},
		{0.5, 1, 0.125, 0.4194008722, -4.67770622, 2.172079816, 2.100902689, -0.537981217, 0.02996461369, 0.2863341551, -1.260406546},
		{1.0, 1, 0.25, 0.170050729, -4.518076132, 1.55456293, 1.839787134, -0.498175837, 0.1281432508, 0.3467732242, -1.192487697},
		{1.5, 1, 0.375, 0.0873652293, -4.336410522, 0.9951088011, 1.609678875, -0.4178672596, 0.1804416656, 0.3750966261, -1.034097326},
		{2.0, 2, 0.1890697838, 0, -26.73528144, 11.01073604, 10.81294372, -39.33856068, 208.0773133, 83.90521419, -48.97064899},
		{4.0, 2, 1.189069784, 0, -2.134795141, -0.6690572621, 0.7792392228, -0.254084001, 0.293562965, 1.295647173, -0.3625808673},
		{8.0, 2, 3.189069784, 0, -0.2961057662, -1.29098773, 0.4789402231, -0.02149794255, 0.007819102239, 0.167429924, -0.06888410121},
	} {
		s, err := p.Solve(t.Context(), u, tt.eps, nil)
		require.NoError(t, err)
		d, err := p.Derivatives(u, s)
		require.NoError(t, err)
		c := Calibrate(p.Mechanism(tt.eps))
		boundary, _ := Boundary(p.Mechanism(tt.eps))
		if (tt.eps > boundary) != (tt.branch == 2) {
			t.Errorf("ε = %v is not in branch %d: boundary %v", tt.eps, tt.branch, boundary)
		}
		for _, v := range []struct {
			name      string
			got, want float64
		}{
			{"β", c.Beta, tt.beta},
			{"τ − λ", c.Tau - 0.05, tt.delta},
			{"θ₀", s.Theta[0], tt.theta0},
			{"θ₁", s.Theta[1], tt.theta1},
			{"L", p.Evaluate(s.Theta).Train.Loss, tt.l},
			{"L′", d.Loss, tt.dl},
			{"L″", d.Loss2, tt.d2l},
			{"θ₀′", d.Theta[0], tt.dtheta0},
			{"θ₁′", d.Theta[1], tt.dtheta1},
		} {
			// The values have ten digits.
			if math.Abs(v.got-v.want) > 6e-10*max(1, math.Abs(v.want)) {
				t.Errorf("ε = %v: %s = %.12g, want %.10g", tt.eps, v.name, v.got, v.want)
			}
		}
	}
}

// curvatures returns a fingerprint of the pieces of the Huber loss that the margins are
// in, 0 for other losses.
func curvatures(p Problem, s *Solution) (hash uint64) {
	if _, ok := p.Risk.Loss.(linear.Huber); !ok {
		return 0
	}
	for _, examples := range []*linear.Examples{p.Risk.Examples, p.HeldOut} {
		for i := range examples.Rows() {
			z := examples.Margin(i, s.Theta)
			first, second := p.Risk.Loss.Derivatives(z)
			hash = hash*31 + uint64(2*second) // 0 or 2 for the width 0.5
			if second == 0 {
				hash += uint64(-first)
			}
		}
	}
	return hash
}

// TestDerivatives compares with differences of converged solutions, for both losses,
// all calibrations and both branches.
func TestDerivatives(t *testing.T) {
	const rows, dim = 400, 6
	examples, heldOut := normal(t, rows, dim, 0, 1), normal(t, 100, dim, 0, 2)
	u := unitNoise(dim, 7, 0)
	for _, loss := range []linear.Loss{linear.Logistic{}, linear.Huber{Width: 0.5}} {
		for _, rule := range []struct {
			rule  privacy.ObjectiveCalibration
			split float64
		}{{privacy.RankOne, 0}, {privacy.RankOne, 0.3}, {privacy.Chaudhuri, 0}, {privacy.ContinuousChaudhuri, 0}} {
			p := Problem{
				Risk: linear.Risk{Examples: examples, Loss: loss}, HeldOut: heldOut,
				Regularization: 3e-3, Calibration: rule.rule, Split: rule.split, Tolerance: 1e-13,
			}
			boundary, _ := Boundary(p.Mechanism(1))
			for _, epsilon := range []float64{boundary / 5, boundary / 1.5, boundary * 1.7, boundary * 4} {
				solve := func(epsilon float64, start []float64) *Solution {
					t.Helper()
					s, err := p.Solve(t.Context(), u, epsilon, start)
					if err != nil {
						t.Fatalf("%T %+v: %v", loss, rule, err)
					}
					return s
				}
				s := solve(epsilon, nil)
				d, err := p.Derivatives(u, s)
				require.NoError(t, err)
				// Differences of fourth order: with a step h they are wrong by h⁴ and by
				// rounding/h, which matters where the slope is 1e-6 of the value. The
				// Huber loss has derivatives where no margin is at a kink within the
				// step.
				h := 1e-3 * epsilon
				for curvatures(p, solve(epsilon-2*h, s.Theta)) != curvatures(p, solve(epsilon+2*h, s.Theta)) {
					if h /= 2; h < 1e-5*epsilon {
						t.Fatalf("a margin at a kink near ε = %v", epsilon)
					}
				}
				differences := func(f func(s *Solution, d Derivatives) float64) float64 {
					at := func(k float64) float64 {
						moved := solve(epsilon+k*h, s.Theta)
						dm, err := p.Derivatives(u, moved)
						require.NoError(t, err)
						return f(moved, dm)
					}
					return (8*(at(1)-at(-1)) - (at(2) - at(-2))) / (12 * h)
				}
				for _, v := range []struct {
					name string
					got  float64
					f    func(s *Solution, d Derivatives) float64
				}{
					{"L′", d.Loss, func(s *Solution, _ Derivatives) float64 { return p.Evaluate(s.Theta).Train.Loss }},
					{"L″", d.Loss2, func(_ *Solution, d Derivatives) float64 { return d.Loss }},
					{"held-out′", d.HeldOut, func(s *Solution, _ Derivatives) float64 { return p.Evaluate(s.Theta).HeldOut.Loss }},
					{"θ′", d.Theta[0], func(s *Solution, _ Derivatives) float64 { return s.Theta[0] }},
					{"θ″", d.Theta2[0], func(_ *Solution, d Derivatives) float64 { return d.Theta[0] }},
				} {
					if want := differences(v.f); math.Abs(v.got-want) > 1e-8*math.Abs(want)+3e-15/h {
						t.Errorf("%T %+v ε = %.3g (boundary %.3g): %s = %.12g, differences %.12g (%.1e)", loss, rule, epsilon, boundary, v.name, v.got, want, v.got/want-1)
					}
				}
			}
		}
	}
}
