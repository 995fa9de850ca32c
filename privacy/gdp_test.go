package privacy

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

func TestGaussianMu(t *testing.T) {
	for _, tc := range []struct{ eps, delta, mu float64 }{
		{0.1, 1e-5, 0.03252078406}, {1, 1e-5, 0.2680511232}, {3, 1e-5, 0.7191174352},
		{10, 1e-5, 2.00044562}, {1, 1e-6, 0.2367043807}, {10, 1e-6, 1.848132206},
	} {
		if got := gaussian.Mu(tc.eps, math.Log(tc.delta)); privacytest.RelErr(got, tc.mu) > 1e-9 {
			t.Errorf("eps %g, delta %g: mu %.10g, want %.10g", tc.eps, tc.delta, got, tc.mu)
		}
		got, err := GaussianMu(tc.eps, tc.delta)
		if err != nil || privacytest.RelErr(got, tc.mu) > 1e-9 {
			t.Errorf("eps %g, delta %g: GaussianMu %.10g, %v, want %.10g", tc.eps, tc.delta, got, err, tc.mu)
		}
		if back := gaussian.Epsilon(got, math.Log(tc.delta)); back > tc.eps {
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

func TestSharedGaussian(t *testing.T) {
	tb := privacytest.SharedVectors(t, "gaussian_analytic_public.csv")
	for _, row := range tb.Rows {
		mu := tb.Float(row, "sensitivity") / tb.Float(row, "sigma")
		delta, eps := tb.Float(row, "delta"), tb.Float(row, "epsilon")
		switch kind := tb.Text(row, "kind"); kind {
		case "eps_from_sigma":
			g := epsilonOf(t, GDP{}, Gaussian{tb.Float(row, "sensitivity"), tb.Float(row, "sigma"), AddRemove}, 1, delta)
			tb.Compare("epsilon", g.Epsilon, eps)
			if privacytest.RelErr(g.Epsilon, eps) > 1e-12 || g.EpsilonLower != g.Epsilon {
				t.Errorf("%v: epsilon %.17g", row, g.Epsilon)
			}
		case "sigma_from_eps":
			sigma := tb.Float(row, "sensitivity") / gaussian.Mu(eps, math.Log(delta))
			tb.Compare("sigma", sigma, tb.Float(row, "sigma"))
			if privacytest.RelErr(sigma, tb.Float(row, "sigma")) > 1e-12 {
				t.Errorf("%v: sigma %.17g", row, sigma)
			}
		case "delta_from_eps":
			got, _ := gaussian.Profile(mu, eps)
			tb.Compare("delta", math.Exp(got), delta)
			if privacytest.RelErr(math.Exp(got), delta) > 1e-12 {
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
	want := gaussian.Epsilon(math.Sqrt(5*(3*0.0625+2*0.16)), math.Log(1e-6))
	if privacytest.RelErr(got.Epsilon, want) > 1e-14 {
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
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, require.ErrOf(c.Epsilon(10, 1e-6)))
	}
}
