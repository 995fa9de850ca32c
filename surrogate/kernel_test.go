package surrogate

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats/scalar"
)

var kernels = []Kernel{Matern52{}, SquaredExponential{}}

// Matérn 5/2 at ℓ = 0.4 and distances 0.2, 0.4, 0.8; the values were computed
// independently with 8 digits. The squared exponential is the
// closed form evaluated in 40-digit decimal arithmetic.
func TestKernelValues(t *testing.T) {
	tests := []struct {
		kernel Kernel
		r      float64
		want   float64
		tol    float64
	}{
		{Matern52{}, 0, 1, 0},
		{Matern52{}, 0.5, 0.82864914, 5e-9},
		{Matern52{}, 1, 0.52399411, 5e-9},
		{Matern52{}, 2, 0.13866022, 5e-9},
		{SquaredExponential{}, 0, 1, 0},
		{SquaredExponential{}, 1, 0.60653065971263342360, 1e-15},
	}
	for _, test := range tests {
		if got, _ := test.kernel.Correlation(test.r * test.r); math.Abs(got-test.want) > test.tol {
			t.Errorf("%s: k(r=%v) = %.17g, want %.17g", test.kernel.Name(), test.r, got, test.want)
		}
	}
}

func TestKernelDerivative(t *testing.T) {
	for _, kernel := range kernels {
		correlation := func(r2 float64) float64 {
			k, _ := kernel.Correlation(r2)
			return k
		}
		for _, r2 := range []float64{1e-3, 0.04, 0.3, 1, 2.5, 9, 40} {
			want := fd.Derivative(correlation, r2, &fd.Settings{Formula: fd.Central, Step: 1e-5 * r2})
			if _, got := kernel.Correlation(r2); !scalar.EqualWithinAbsOrRel(got, want, 1e-8, 1e-8) {
				t.Errorf("%s: dk(r²=%v) = %v, finite difference %v", kernel.Name(), r2, got, want)
			}
		}
		// A one-sided difference at 0, where √r² is not differentiable:
		// k = 1 + dk·r² + O(r³).
		const r2 = 1e-8
		if _, got := kernel.Correlation(0); !scalar.EqualWithinAbs(got, (correlation(r2)-1)/r2, 1e-3) {
			t.Errorf("%s: dk(0) = %v, finite difference %v", kernel.Name(), got, (correlation(r2)-1)/r2)
		}
	}
}

// A correlation decreases from 1 to 0, and stays defined however far.
func TestKernelShape(t *testing.T) {
	names := make(map[string]bool)
	for _, kernel := range kernels {
		names[kernel.Name()] = true
		last := 1.0
		for r := 0.05; r < 30; r += 0.05 {
			k, dk := kernel.Correlation(r * r)
			if k >= last || k < 0 || dk > 0 {
				t.Fatalf("%s: k(r=%v) = %v after %v, derivative %v", kernel.Name(), r, k, last, dk)
			}
			last = k
		}
		if k, dk := kernel.Correlation(1e12); k != 0 || dk != 0 {
			t.Errorf("%s: at r² = 1e12 k, dk = %v, %v, want 0, 0", kernel.Name(), k, dk)
		}
	}
	if len(names) != len(kernels) {
		t.Errorf("names %v are not distinct", names)
	}
}

// The fast exponential of Matérn 5/2 agrees with package math up to rounding, for all distances.
func TestMatern52Rounding(t *testing.T) {
	for r := 1e-9; r < 400; r *= 1.001 {
		z := math.Sqrt(5) * r
		e := math.Exp(-z)
		if z > 708 {
			e = 0 // smaller numbers have fewer digits
		}
		k, dk := Matern52{}.Correlation(r * r)
		want, dwant := (1+z+z*z/3)*e, -5./6*(1+z)*e
		if math.Abs(k-want) > 1e-13*want || math.Abs(dk-dwant) > -1e-13*dwant {
			t.Errorf("at distance %g: %g and %g, want %g and %g", r, k, dk, want, dwant)
		}
	}
	if k, dk := (Matern52{}).Correlation(math.NaN()); !math.IsNaN(k) || !math.IsNaN(dk) {
		t.Errorf("at NaN: %g and %g", k, dk)
	}
}
