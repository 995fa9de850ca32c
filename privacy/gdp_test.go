package privacy

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMills(t *testing.T) {
	// Against the asymptotic series, which is exact to float64 for large y, and
	// by continuity of the two formulas at y = 2.
	for _, y := range []float64{1e3, 1e4, 1e8} {
		y2 := 1 / (y * y)
		if want := (1 - y2*(1-3*y2*(1-5*y2*(1-7*y2)))) / y; relErr(mills(y), want) > 1e-15 {
			t.Errorf("mills(%g) = %.17g, want %.17g", y, mills(y), want)
		}
		if want := y2 * (1 - 3*y2*(1-5*y2*(1-7*y2))); relErr(millsDeficit(y), want) > 1e-14 {
			t.Errorf("millsDeficit(%g) = %.17g, want %.17g", y, millsDeficit(y), want)
		}
	}
	below, above := math.Nextafter(2, 0), 2.0
	if relErr(mills(below), mills(above)) > 1e-15 || relErr(millsDeficit(below), millsDeficit(above)) > 1e-14 {
		t.Errorf("at 2: %.17g and %.17g, %.17g and %.17g",
			mills(below), mills(above), millsDeficit(below), millsDeficit(above))
	}
	for _, x := range []float64{-7.999, -8, -8.001, -1, 0, 1, 5} {
		if want := math.Log(0.5 * math.Erfc(-x/math.Sqrt2)); math.Abs(logNormalCDF(x)-want) > 1e-15*math.Max(1, x*x) {
			t.Errorf("log Φ(%g) = %.17g, want %.17g", x, logNormalCDF(x), want)
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
		if got := gaussianEpsilon(tc.mu, math.Log(tc.delta)); relErr(got, tc.eps) > 5e-12 {
			t.Errorf("mu %g, delta %g: %.13g, want %.13g", tc.mu, tc.delta, got, tc.eps)
		}
	}
	for _, tc := range []struct{ eps, delta, mu float64 }{
		{0.1, 1e-5, 0.03252078406}, {1, 1e-5, 0.2680511232}, {3, 1e-5, 0.7191174352},
		{10, 1e-5, 2.00044562}, {1, 1e-6, 0.2367043807}, {10, 1e-6, 1.848132206},
	} {
		if got := gaussianMu(tc.eps, math.Log(tc.delta)); relErr(got, tc.mu) > 1e-9 {
			t.Errorf("eps %g, delta %g: mu %.10g, want %.10g", tc.eps, tc.delta, got, tc.mu)
		}
		got, err := GaussianMu(tc.eps, tc.delta)
		if err != nil || relErr(got, tc.mu) > 1e-9 {
			t.Errorf("eps %g, delta %g: GaussianMu %.10g, %v, want %.10g", tc.eps, tc.delta, got, err, tc.mu)
		}
		if back := gaussianEpsilon(got, math.Log(tc.delta)); back > tc.eps {
			t.Errorf("eps %g, delta %g: epsilon of mu is %.17g", tc.eps, tc.delta, back)
		}
	}
}

func TestGaussianMuErrors(t *testing.T) {
	for _, tc := range []struct {
		eps, delta float64
		field      string
	}{{0, 1e-5, "epsilon"}, {math.NaN(), 1e-5, "epsilon"}, {math.Inf(1), 1e-5, "epsilon"}, {1, 0, "delta"}, {1, 1, "delta"}} {
		_, err := GaussianMu(tc.eps, tc.delta)
		if fields := FieldErrors(err); len(fields) != 1 || fields[0].Field != tc.field {
			t.Errorf("(%g, %g): %v, want an error for %s", tc.eps, tc.delta, err, tc.field)
		}
	}
}

func TestGaussianRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 5000 {
		mu := math.Exp(rng.Float64()*24 - 12)
		logDelta := -0.01 - 690*rng.Float64()*rng.Float64()
		eps := gaussianEpsilon(mu, logDelta)
		if math.IsNaN(eps) || eps < 0 {
			t.Fatalf("mu %g, log delta %g: epsilon %g", mu, logDelta, eps)
		}
		if eps == 0 {
			continue
		}
		if back := gaussianMu(eps, logDelta); relErr(back, mu) > 1e-10 {
			t.Errorf("mu %.15g, log delta %g: epsilon %.15g, back %.15g", mu, logDelta, eps, back)
		}
	}
}

// TestGaussianProfileBranches compares the two formulas where both are usable,
// and the slope with a difference quotient.
func TestGaussianProfileBranches(t *testing.T) {
	for _, mu := range []float64{0.2, 0.7, 1, 1.3, 3} {
		for eps := 0.1; eps < 8; eps += 0.3 {
			got, slope := gaussianProfile(mu, eps)
			first := logNormalCDF(mu/2 - eps/mu)
			want := first + math.Log1p(-math.Exp(eps+logNormalCDF(-mu/2-eps/mu)-first))
			if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
				t.Errorf("mu %g, eps %g: log delta %.15g, want %.15g", mu, eps, got, want)
			}
			const h = 1e-5
			up, _ := gaussianProfile(mu, eps+h)
			down, _ := gaussianProfile(mu, eps-h)
			if quotient := (up - down) / (2 * h); relErr(slope, quotient) > 1e-6 {
				t.Errorf("mu %g, eps %g: slope %g, difference quotient %g", mu, eps, slope, quotient)
			}
		}
	}
}

func TestSharedGaussian(t *testing.T) {
	tb := sharedVectors(t, "gaussian_analytic_public.csv")
	for _, row := range tb.rows {
		mu := tb.float(row, "sensitivity") / tb.float(row, "sigma")
		delta, eps := tb.float(row, "delta"), tb.float(row, "epsilon")
		switch kind := tb.text(row, "kind"); kind {
		case "eps_from_sigma":
			g := epsilonOf(t, GDP{}, Gaussian{tb.float(row, "sensitivity"), tb.float(row, "sigma"), AddRemove}, 1, delta)
			if relErr(g.Epsilon, eps) > 1e-12 || g.EpsilonLower != g.Epsilon {
				t.Errorf("%v: epsilon %.17g", row, g.Epsilon)
			}
		case "sigma_from_eps":
			sigma := tb.float(row, "sensitivity") / gaussianMu(eps, math.Log(delta))
			if relErr(sigma, tb.float(row, "sigma")) > 1e-12 {
				t.Errorf("%v: sigma %.17g", row, sigma)
			}
		case "delta_from_eps":
			got, _ := gaussianProfile(mu, eps)
			if relErr(math.Exp(got), delta) > 1e-12 {
				t.Errorf("%v: delta %.17g", row, math.Exp(got))
			}
		default:
			t.Fatalf("unknown kind %q", kind)
		}
	}
}

func TestGDPComposes(t *testing.T) {
	a, b := Gaussian{1, 4, ReplaceOne}, Gaussian{2, 5, ReplaceOne}
	got := epsilonOf(t, GDP{}, Composition{{a, 3}, {b, 2}}, 5, 1e-6)
	want := gaussianEpsilon(math.Sqrt(5*(3*0.0625+2*0.16)), math.Log(1e-6))
	if relErr(got.Epsilon, want) > 1e-14 {
		t.Errorf("composition %g, want %g", got.Epsilon, want)
	}
	if rdp := epsilonOf(t, RDP{}, Composition{{a, 3}, {b, 2}}, 5, 1e-6); rdp.Epsilon < got.Epsilon {
		t.Errorf("Rényi %g below exact %g", rdp.Epsilon, got.Epsilon)
	}
	if _, err := (GDP{}).Curve(FixedSizeGaussian{10, 2, 1}); err == nil {
		t.Error("a subsampled Gaussian was accepted")
	}
}

func BenchmarkGDPEpsilon(b *testing.B) {
	c, err := GDP{}.Curve(Gaussian{1, 4, AddRemove})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Epsilon(10, 1e-6); err != nil {
			b.Fatal(err)
		}
	}
}

// Far from zero the loss is N(μ²/2, μ²): ε = μ²/2 + μ·t with t close to the normal quantile
// of 1 − δ, 4.264890793922825 for δ = 1e-5.
func TestGaussianWithLargeMu(t *testing.T) {
	const quantile = 4.264890793922825
	for mu := 1e2; mu < 1e150; mu *= 31 {
		got := gaussianEpsilon(mu, math.Log(1e-5))
		if want := mu*mu/2 + mu*quantile; got > want*(1+1e-15) || got < want-3 && got < want*(1-1e-14) {
			t.Errorf("μ = %g: %.17g, want %.17g", mu, got, want)
		}
	}
	// The two ways of computing it agree where they meet.
	for _, delta := range []float64{0.9, 0.1, 1e-5, 1e-100, 1e-300} {
		below, above := gaussianEpsilon(largeMu, math.Log(delta)), gaussianEpsilon(math.Nextafter(largeMu, math.Inf(1)), math.Log(delta))
		if relErr(above, below) > 1e-12 {
			t.Errorf("delta %g: %.17g below, %.17g above", delta, below, above)
		}
	}
}

// What exceeds the range of floats is infinite, not small.
func TestGaussianEpsilonBeyondFloats(t *testing.T) {
	for _, mu := range []float64{1e155, 1e300, math.Inf(1)} {
		if epsilon := gaussianEpsilon(mu, -10); !math.IsInf(epsilon, 1) {
			t.Errorf("μ = %g: ε = %g", mu, epsilon)
		}
	}
}
