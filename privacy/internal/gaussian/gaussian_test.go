package gaussian

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

func TestMills(t *testing.T) {
	// Against the asymptotic series, which is exact to float64 for large y, and
	// by continuity of the two formulas at y = 2.
	for _, y := range []float64{1e3, 1e4, 1e8} {
		y2 := 1 / (y * y)
		if want := (1 - y2*(1-3*y2*(1-5*y2*(1-7*y2)))) / y; privacytest.RelErr(mills(y), want) > 1e-15 {
			t.Errorf("mills(%g) = %.17g, want %.17g", y, mills(y), want)
		}
		if want := y2 * (1 - 3*y2*(1-5*y2*(1-7*y2))); privacytest.RelErr(millsDeficit(y), want) > 1e-14 {
			t.Errorf("millsDeficit(%g) = %.17g, want %.17g", y, millsDeficit(y), want)
		}
	}
	below, above := math.Nextafter(2, 0), 2.0
	if privacytest.RelErr(mills(below), mills(above)) > 1e-15 || privacytest.RelErr(millsDeficit(below), millsDeficit(above)) > 1e-14 {
		t.Errorf("at 2: %.17g and %.17g, %.17g and %.17g",
			mills(below), mills(above), millsDeficit(below), millsDeficit(above))
	}
	for _, x := range []float64{-7.999, -8, -8.001, -1, 0, 1, 5} {
		if want := math.Log(0.5 * math.Erfc(-x/math.Sqrt2)); math.Abs(LogCDF(x)-want) > 1e-15*math.Max(1, x*x) {
			t.Errorf("log Φ(%g) = %.17g, want %.17g", x, LogCDF(x), want)
		}
	}
}

func TestGaussianEpsilon(t *testing.T) {
	// 50-digit evaluation of Balle and Wang's formula.
	for _, tc := range []struct{ mu, delta, eps float64 }{
		{1, 1e-6, 4.88655411746}, {1, 1e-5, 4.37717809568}, {0.1, 1e-6, 0.396857377644},
		{0.25, 1e-6, 1.06070186233}, {10, 1e-6, 96.7172719639}, {0.001, 1e-6, 0.00271821908881},
		{2e-6, 1e-6, 0}, {50, 1e-6, 1486.71604149},
	} {
		if got := Epsilon(tc.mu, math.Log(tc.delta)); privacytest.RelErr(got, tc.eps) > 5e-12 {
			t.Errorf("mu %g, delta %g: %.13g, want %.13g", tc.mu, tc.delta, got, tc.eps)
		}
	}
}

func TestGaussianRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 5000 {
		mu := math.Exp(rng.Float64()*24 - 12)
		logDelta := -0.01 - 690*rng.Float64()*rng.Float64()
		eps := Epsilon(mu, logDelta)
		if math.IsNaN(eps) || eps < 0 {
			t.Fatalf("mu %g, log delta %g: epsilon %g", mu, logDelta, eps)
		}
		if eps == 0 {
			continue
		}
		if back := Mu(eps, logDelta); privacytest.RelErr(back, mu) > 1e-10 {
			t.Errorf("mu %.15g, log delta %g: epsilon %.15g, back %.15g", mu, logDelta, eps, back)
		}
	}
}

// TestGaussianProfileBranches compares the two formulas where both are usable,
// and the slope with a difference quotient.
func TestGaussianProfileBranches(t *testing.T) {
	for _, mu := range []float64{0.2, 0.7, 1, 1.3, 3} {
		for eps := 0.1; eps < 8; eps += 0.3 {
			got, slope := Profile(mu, eps)
			first := LogCDF(mu/2 - eps/mu)
			want := first + math.Log1p(-math.Exp(eps+LogCDF(-mu/2-eps/mu)-first))
			if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
				t.Errorf("mu %g, eps %g: log delta %.15g, want %.15g", mu, eps, got, want)
			}
			const h = 1e-5
			up, _ := Profile(mu, eps+h)
			down, _ := Profile(mu, eps-h)
			if quotient := (up - down) / (2 * h); privacytest.RelErr(slope, quotient) > 1e-6 {
				t.Errorf("mu %g, eps %g: slope %g, difference quotient %g", mu, eps, slope, quotient)
			}
		}
	}
}

// Far from zero the loss is N(μ²/2, μ²): ε = μ²/2 + μ·t with t close to the normal quantile
// of 1 − δ, 4.264890793922825 for δ = 1e-5.
func TestGaussianWithLargeMu(t *testing.T) {
	const quantile = 4.264890793922825
	for mu := 1e2; mu < 1e150; mu *= 31 {
		got := Epsilon(mu, math.Log(1e-5))
		if want := mu*mu/2 + mu*quantile; got > want*(1+1e-15) || got < want-3 && got < want*(1-1e-14) {
			t.Errorf("μ = %g: %.17g, want %.17g", mu, got, want)
		}
	}
	// The two ways of computing it agree where they meet.
	for _, delta := range []float64{0.9, 0.1, 1e-5, 1e-100, 1e-300} {
		below, above := Epsilon(largeMu, math.Log(delta)), Epsilon(math.Nextafter(largeMu, math.Inf(1)), math.Log(delta))
		if privacytest.RelErr(above, below) > 1e-12 {
			t.Errorf("delta %g: %.17g below, %.17g above", delta, below, above)
		}
	}
}

// What exceeds the range of floats is infinite, not small.
func TestGaussianEpsilonBeyondFloats(t *testing.T) {
	for _, mu := range []float64{1e155, 1e300, math.Inf(1)} {
		if epsilon := Epsilon(mu, -10); !math.IsInf(epsilon, 1) {
			t.Errorf("μ = %g: ε = %g", mu, epsilon)
		}
	}
}
